"""From a budget to noise: the exact curve inverted, rounded towards privacy."""

import math

from taciturn._internal import validate
from taciturn._internal.roots import root
from taciturn.accounting.gaussian import (
    check_delta,
    check_epsilon,
    check_mu,
    epsilon_upper,
    log_delta,
)

MARGIN = 1e-12
"""Relative room left in μ for the rounding of a ledger that adds up to it."""


def calibrate(epsilon: float, delta: float) -> float:
    """Return the largest μ whose certificate at `delta` does not exceed `epsilon`.

    It is rounded towards privacy, with room for the rounding of a ledger that adds up to it.
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    log_inverse = -math.log(delta)
    # The zCDP bound μ²/2 + μ√(2 ln 1/δ) = ε lies on the private side of the exact curve.
    lower = 2 * epsilon / (math.sqrt(2 * log_inverse) + math.sqrt(2 * log_inverse + 2 * epsilon))
    target = math.log(delta)
    upper = lower
    while log_delta(epsilon, upper) <= target:
        upper *= 2
    mu = root(lambda m: log_delta(epsilon, m) - target, lower, upper)
    step = MARGIN
    while epsilon_upper(delta, mu * (1 + 1e-12)) > epsilon:
        mu *= 1 - step
        step *= 2
    return mu


def noise_multiplier(mu: float, count: int = 1) -> float:
    """Return the σ/Δ at which `count` equal releases spend at most μ together.

    It is √count/μ, raised by more than its rounding error.
    """
    count = validate.positive_integer("count", count, "it is the number of releases")
    return math.sqrt(count) / check_mu(mu) * (1 + 2.0**-50)
