"""Exact accounting of Gaussian mechanisms by Gaussian differential privacy (GDP).

A Gaussian mechanism with L2 sensitivity Δ and noise scale σ is exactly (Δ/σ)-GDP, and mechanisms
whose ratios, or the sum of whose squared ratios, were fixed in advance compose to
μ² = Σ (Δ/σ)². A μ-GDP release is (ε, δ)-DP exactly when

    δ ≥ Φ(−a) − e^ε Φ(−b),     a = ε/μ − μ/2,   b = a + μ,

with Φ the standard normal distribution function. The difference suffers from cancellation, so it
is computed through Mills' ratio R(x) = Φ(−x)/φ(x). Because e^ε φ(b) = φ(a),

    δ = φ(a) (R(a) − R(b)),    R(a) − R(b) = ∫ₐᵇ (1 − t R(t)) dt,

which stays accurate for δ as small as 1e-300 and for ε from 1e-4 to 1e4.
See docs/proofs/gaussian-accounting.md. Nothing here reads private data.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, ndtr, ndtri

from taciturn._internal import validate
from taciturn._internal.roots import root
from taciturn._internal.spelling import parameter
from taciturn.errors import InvalidParameter

DELTA_RELATIVE_ERROR = 1e-11
"""Bound on the relative error of `delta`, tested against 80-digit arithmetic."""

MU_MIN, MU_MAX = 1e-100, 1e8
"""Range of μ that is accounted for. Below it squares underflow; far below its upper end nothing is
protected (at μ = 10 an attacker is almost always right)."""

EPSILON_MIN, EPSILON_MAX = 1e-9, 1e9
"""Range of ε that a budget may have."""

DELTA_MIN, DELTA_MAX = 1e-200, 0.1
"""Smallest δ that is accounted for, and the largest δ of a stated guarantee."""

_UNIT_ROUNDOFF = 2.0**-53
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


def delta(epsilon: float, mu: float) -> float:
    """Exact δ of a μ-GDP release at `epsilon` ≥ 0, rounded to nearest."""
    return math.exp(log_delta(epsilon, mu))


def log_delta(epsilon: float, mu: float) -> float:
    """Exact ln δ of a μ-GDP release at `epsilon` ≥ 0, for a δ that underflows."""
    mu = check_mu(mu)
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise InvalidParameter(
            f"epsilon must be a non-negative finite number, got {epsilon}; "
            "use 0 for the total variation"
        )
    return _log_delta_at(epsilon / mu - mu / 2, mu)


def epsilon(delta: float, mu: float) -> float:
    """Exact ε of a μ-GDP release at `delta`, rounded to nearest.

    Accepts any positive δ, even below `DELTA_MIN`, since one step's share of δ may be that small.
    """
    delta, mu = validate.probability("delta", delta, "for example 1e-5"), check_mu(mu)
    return mu * (_threshold(delta, mu) + mu / 2)


def epsilon_upper(delta: float, mu: float) -> float:
    """Upper bound on the exact ε, within about 1e-10 of it, for certificates."""
    delta, mu = check_delta(delta), check_mu(mu)
    threshold = _threshold(delta, mu)
    target = math.log(delta) - DELTA_RELATIVE_ERROR
    step = 4 * _UNIT_ROUNDOFF * max(1.0, abs(threshold))
    while _log_delta_at(threshold, mu) > target:
        threshold += step
        step *= 2
    return mu * (threshold + mu / 2) * (1 + 8 * _UNIT_ROUNDOFF)


def true_positive_rate(false_positive_rate: float, mu: float) -> float:
    """Maximum true-positive rate of any attacker at a given false-positive rate.

    The attacker knows everything except which of two neighbouring datasets was used. The bound
    Φ(Φ⁻¹(FPR) + μ) is exact for a μ-GDP release.
    """
    rate = validate.probability("false_positive_rate", false_positive_rate, "use 0.01 for 1%")
    return float(ndtr(ndtri(rate) + check_mu(mu)))


def compose(ratios: Sequence[tuple[float, float]]) -> float:
    """Composed μ = √Σ count·ratio² of (ratio, count) pairs, rounded to nearest."""
    for ratio, count in ratios:
        check_mu(ratio)
        validate.positive("count", count, "it is the number of releases")
    mu = math.sqrt(math.fsum(count * ratio * ratio for ratio, count in ratios))
    return check_mu(mu)


def round_up(mu: float) -> float:
    """Raise `mu`, the result of `compose` or another sum, by more than its rounding error.

    Each term has a relative error of at most 4 unit roundoffs u (from the ratio, the square and the
    product). The correctly rounded sum and root add one each. The root is off by less than 4u.
    """
    return mu * (1 + 8 * _UNIT_ROUNDOFF)


def check_epsilon(
    value: object, name: str = "epsilon", hint: str = "a common choice is 1"
) -> float:
    """Validated ε; raises with advice if it is out of range."""
    epsilon = validate.positive(name, value, hint)
    if not EPSILON_MIN <= epsilon <= EPSILON_MAX:
        raise InvalidParameter(
            f"{parameter(name)} must be between {EPSILON_MIN:g} and {EPSILON_MAX:g}, got {value}; "
            f"{hint}"
        )
    return epsilon


def check_delta(
    value: object,
    name: str = "delta",
    hint: str = "choose it well below one over the number of users, for example 1e-5",
) -> float:
    """Validated δ; raises with advice if it is out of range."""
    delta = validate.probability(name, value, hint)
    if delta < DELTA_MIN:
        raise InvalidParameter(
            f"{parameter(name)} must be at least {DELTA_MIN:g}, got {value}; {hint}"
        )
    return delta


def check_stated_delta(value: object) -> float:
    """Validated δ of a stated guarantee; raises with advice if it is out of range."""
    delta = check_delta(value)
    if delta > DELTA_MAX:
        raise InvalidParameter(
            f"{parameter('delta')} must be at most {DELTA_MAX:g}, got {value}: it is roughly the "
            "probability that the guarantee fails; choose it well below one over the number of "
            "users"
        )
    return delta


def check_mu(value: object) -> float:
    """Validated μ; raises with advice if it is out of range."""
    mu = validate.positive("mu", value, "it is the sensitivity divided by the noise scale")
    if not MU_MIN <= mu <= MU_MAX:
        raise InvalidParameter(
            f"mu must be between {MU_MIN:g} and {MU_MAX:g}, got {value}; "
            "check the sensitivity and the noise scale"
        )
    return mu


@lru_cache(maxsize=1024)  # verifying, loading and composing recompute the same few thresholds
def _threshold(delta: float, mu: float) -> float:
    """Threshold a ≥ −μ/2 at which the privacy curve equals `delta`; −μ/2 means ε = 0."""
    target = math.log(delta)
    lowest = -mu / 2
    if _log_delta_at(lowest, mu) <= target:
        return lowest
    # ln δ ≤ −a²/2 for a ≥ 0 (the Chernoff bound) gives the upper end of the bracket.
    highest = math.sqrt(-2 * target) + 1e-9
    return root(lambda a: _log_delta_at(a, mu) - target, lowest, highest)


def _log_delta_at(a: float, mu: float) -> float:
    """Logarithm of δ: ln(Φ(−a) − e^{μ(a + μ/2)} Φ(−a − μ)) for a ≥ −μ/2."""
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
    """R(a) − R(a + μ), by quadrature where subtraction would lose accuracy."""
    if mu > 1:
        return _mills(a) - _mills(a + mu)
    nodes = a + mu / 2 * (_NODES + 1)
    return float(mu / 2 * (_WEIGHTS @ _mills_slope(nodes)))


def _mills_slope(t: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """−R′(t) = 1 − t R(t), by its asymptotic series where subtraction would lose accuracy."""
    near = 1 - t * (math.sqrt(math.pi / 2) * erfcx(t / math.sqrt(2)))
    inverse = 1 / np.maximum(t, 50.0) ** 2
    far = inverse * (1 - inverse * (3 - inverse * (15 - inverse * (105 - 945 * inverse))))
    return np.where(t < 50, near, far)
