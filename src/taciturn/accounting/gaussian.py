"""Exact accounting of Gaussian mechanisms: Gaussian differential privacy.

A Gaussian mechanism of L2 sensitivity Δ and noise scale σ is exactly (Δ/σ)-GDP, and mechanisms of
ratios fixed in advance compose to μ² = Σ (Δ/σ)². A μ-GDP release is (ε, δ)-DP exactly when

    δ ≥ Φ(−a) − e^ε Φ(−b),     a = ε/μ − μ/2,   b = a + μ,

with Φ the standard normal distribution function. The difference cancels badly, so it is computed
through Mills' ratio R(x) = Φ(−x)/φ(x). Because e^ε φ(b) = φ(a),

    δ = φ(a) (R(a) − R(b)),    R(a) − R(b) = ∫ₐᵇ (1 − t R(t)) dt,

which stays accurate when δ is as small as 1e-300 and when ε is anything from 1e-4 to 1e4.
See docs/proofs/gaussian-accounting.md. Nothing here reads private data.
"""

import math

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, ndtr, ndtri

from taciturn._internal import validate
from taciturn._internal.roots import root
from taciturn.errors import InvalidParameter

DELTA_RELATIVE_ERROR = 1e-11
"""Bound on the relative error of `delta`, tested against 80-digit arithmetic."""

MU_MIN, MU_MAX = 1e-100, 1e8
"""Range of μ accounted for: below it squares underflow, and long before its end nothing is hidden
(at μ = 10 an attacker is all but certain)."""

EPSILON_MIN, EPSILON_MAX = 1e-9, 1e9
"""Range of ε that a budget may ask for."""

DELTA_MIN, DELTA_MAX = 1e-200, 0.1
"""Smallest δ that is accounted for, and the largest that a guarantee may be stated at."""

_UNIT_ROUNDOFF = 2.0**-53
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


def delta(epsilon: float, mu: float) -> float:
    """Return the exact δ of a μ-GDP release at `epsilon` ≥ 0, rounded to nearest."""
    return math.exp(log_delta(epsilon, mu))


def log_delta(epsilon: float, mu: float) -> float:
    """Return ln δ of a μ-GDP release at `epsilon` ≥ 0; useful where δ itself underflows."""
    mu = check_mu(mu)
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise InvalidParameter(
            f"epsilon must be a non-negative finite number, got {epsilon}; "
            "use 0 for the total variation"
        )
    return _log_delta_at(epsilon / mu - mu / 2, mu)


def epsilon(delta: float, mu: float) -> float:
    """Return the exact ε of a μ-GDP release at `delta`, rounded to nearest.

    Takes any positive δ, smaller than `DELTA_MIN` too: a step's share of one may be.
    """
    delta, mu = validate.probability("delta", delta, "for example 1e-5"), check_mu(mu)
    return mu * (_threshold(delta, mu) + mu / 2)


def epsilon_upper(delta: float, mu: float) -> float:
    """Return an ε, never below the exact one and within about 1e-10 of it, for certificates."""
    delta, mu = check_delta(delta), check_mu(mu)
    threshold = _threshold(delta, mu)
    target = math.log(delta) - DELTA_RELATIVE_ERROR
    step = 4 * _UNIT_ROUNDOFF * max(1.0, abs(threshold))
    while _log_delta_at(threshold, mu) > target:
        threshold += step
        step *= 2
    return mu * (threshold + mu / 2) * (1 + 8 * _UNIT_ROUNDOFF)


def true_positive_rate(false_positive_rate: float, mu: float) -> float:
    """Return the best true-positive rate of any attacker at a given false-positive rate.

    The attacker knows everything but which of two neighbouring data sets was used; the bound
    Φ(Φ⁻¹(FPR) + μ) is exact for a μ-GDP release.
    """
    rate = validate.probability("false_positive_rate", false_positive_rate, "use 0.01 for 1 %")
    return float(ndtr(ndtri(rate) + check_mu(mu)))


def compose(ratios: list[tuple[float, int]]) -> float:
    """Return μ = √Σ count·ratio² for (ratio, count) pairs, rounded to nearest."""
    for ratio, count in ratios:
        check_mu(ratio)
        validate.positive_integer("count", count, "it is the number of releases")
    mu = math.sqrt(math.fsum(count * ratio * ratio for ratio, count in ratios))
    return check_mu(mu)


def round_up(mu: float) -> float:
    """Return `mu`, the result of `compose` or another sum, raised by more than its rounding error.

    Each term carries a relative error of at most 4 unit roundoffs u (the ratio, the square, the
    product), the correctly rounded sum and root one each: below 4u for the root.
    """
    return mu * (1 + 8 * _UNIT_ROUNDOFF)


def check_epsilon(
    value: object, name: str = "epsilon", hint: str = "a common choice is 1"
) -> float:
    """Return a valid ε or raise with advice."""
    epsilon = validate.positive(name, value, hint)
    if not EPSILON_MIN <= epsilon <= EPSILON_MAX:
        raise InvalidParameter(
            f"{name} must be between {EPSILON_MIN:g} and {EPSILON_MAX:g}, got {value}; {hint}"
        )
    return epsilon


def check_delta(
    value: object,
    name: str = "delta",
    hint: str = "choose it well below one over the number of people, for example 1e-5",
) -> float:
    """Return a valid δ or raise with advice."""
    delta = validate.probability(name, value, hint)
    if delta < DELTA_MIN:
        raise InvalidParameter(f"{name} must be at least {DELTA_MIN:g}, got {value}; {hint}")
    return delta


def check_stated_delta(value: object) -> float:
    """Return a δ that a guarantee may be stated at, or raise with advice."""
    delta = check_delta(value)
    if delta > DELTA_MAX:
        raise InvalidParameter(
            f"delta must be at most {DELTA_MAX:g}, got {value}: it is close to the chance that the "
            "guarantee fails outright; choose it well below one over the number of users"
        )
    return delta


def check_mu(value: object) -> float:
    """Return a valid μ or raise with advice."""
    mu = validate.positive("mu", value, "it is the sensitivity divided by the noise scale")
    if not MU_MIN <= mu <= MU_MAX:
        raise InvalidParameter(
            f"mu must be between {MU_MIN:g} and {MU_MAX:g}, got {value}; "
            "check the sensitivity and the noise scale"
        )
    return mu


def _threshold(delta: float, mu: float) -> float:
    """Return the a ≥ −μ/2 at which the curve passes through `delta`; −μ/2 stands for ε = 0."""
    target = math.log(delta)
    lowest = -mu / 2
    if _log_delta_at(lowest, mu) <= target:
        return lowest
    # ln δ ≤ −a²/2 for a ≥ 0 (the Chernoff bound), hence an upper end of the bracket.
    highest = math.sqrt(-2 * target) + 1e-9
    return root(lambda a: _log_delta_at(a, mu) - target, lowest, highest)


def _log_delta_at(a: float, mu: float) -> float:
    """Return ln(Φ(−a) − e^{μ(a + μ/2)} Φ(−a − μ)) for a ≥ −μ/2."""
    if a > 1e10:
        return -math.inf
    if a < -1:
        below = float(ndtr(a)) + math.exp(-a * a / 2 - _HALF_LOG_TWO_PI) * _mills(a + mu)
        return math.log1p(-below)
    difference = _mills_difference(a, mu)
    return math.log(difference) - a * a / 2 - _HALF_LOG_TWO_PI if difference > 0 else -math.inf


def _mills(x: float) -> float:
    return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))


def _mills_difference(a: float, mu: float) -> float:
    """Return R(a) − R(a + μ), by quadrature where the difference would cancel."""
    if mu > 1:
        return _mills(a) - _mills(a + mu)
    nodes = a + mu / 2 * (_NODES + 1)
    return float(mu / 2 * (_WEIGHTS @ _mills_slope(nodes)))


def _mills_slope(t: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return −R′(t) = 1 − t R(t), by its asymptotic series where the difference would cancel."""
    near = 1 - t * (math.sqrt(math.pi / 2) * erfcx(t / math.sqrt(2)))
    inverse = 1 / np.maximum(t, 50.0) ** 2
    far = inverse * (1 - inverse * (3 - inverse * (15 - inverse * (105 - 945 * inverse))))
    return np.where(t < 50, near, far)
