"""Calibration of noise to a budget: the exact privacy curve inverted, rounded towards privacy."""

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
from taciturn.errors import InvalidParameter

MARGIN = 1e-12
"""Relative margin in μ for rounding errors of a ledger that composes to it."""


def calibrate(epsilon: float, delta: float) -> float:
    """Largest μ whose certificate at `delta` does not exceed `epsilon`.

    Rounded towards privacy, with a margin for rounding errors of a ledger that composes to it.
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


def training_epsilon(mu: float, delta: float, count: int) -> float:
    """ε at `delta` of each of `count` equal trainings that share μ, rounded down.

    Noise that is calibrated to it in each training composes to at most μ. It has four decimals or,
    below 0.1, four significant digits. The sampler's error, which each training pays from its own
    budget, is not included.
    """
    count = validate.positive_integer("count", count, "it is the number of trainings")
    most = check_mu(mu) / math.sqrt(count)
    exact = epsilon_upper(delta, most)
    digits = max(4, 3 - math.floor(math.log10(exact))) if exact > 0 else 0
    scale = 10.0**digits
    steps = math.floor(exact * scale)
    while steps > 0 and calibrate(steps / scale, delta) > most:
        steps -= 1
    if steps <= 0:
        raise InvalidParameter(
            f"the budget is too small for {count:,} trainings at delta = {delta:g}; use a smaller "
            "delta or fewer trainings"
        )
    return steps / scale


def noise_multiplier(mu: float, count: int = 1) -> float:
    """Ratio σ/Δ with which `count` equal releases compose to at most μ.

    √count/μ, raised by more than its rounding error.
    """
    count = validate.positive_integer("count", count, "it is the number of releases")
    return math.sqrt(count) / check_mu(mu) * (1 + 2.0**-50)
