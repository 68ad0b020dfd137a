"""Lower confidence bounds on the privacy loss, from the success rate of an attacker.

The bounds hold for any attack. Proofs: docs/proofs/audit.md.
"""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtr, ndtri
from scipy.stats import binom

from taciturn._internal import validate
from taciturn.errors import InvalidParameter

MU_MAX = 40.0
"""Largest bound on μ that is reported; nothing is protected at this level."""

EPSILON_MAX = 100.0
"""Largest bound on ε from one run that is reported."""

_HALVINGS = 40


def check_confidence(confidence: float) -> float:
    """Check that a confidence is a probability, and return it."""
    return validate.probability("confidence", confidence, "0.95 is usual")


def rate_upper(errors: int, trials: int, confidence: float) -> float:
    """Clopper–Pearson upper bound on an error rate."""
    if not 0 <= errors <= trials or trials < 1:
        raise InvalidParameter(
            "errors must be from 0 to the number of trials, and trials at least 1"
        )
    return 1.0 if errors == trials else float(betaincinv(errors + 1, trials - errors, confidence))


def error_rates(
    false_positives: int, false_negatives: int, runs: int, confidence: float
) -> tuple[float, float]:
    """Joint upper bounds on both error rates, from `runs` runs on each neighbouring dataset."""
    each = 1 - (1 - check_confidence(confidence)) / 2
    return rate_upper(false_positives, runs, each), rate_upper(false_negatives, runs, each)


def mu_lower(false_positive_rate: float, false_negative_rate: float) -> float:
    """Smallest μ whose trade-off curve allows both error rates; 0 if every curve does.

    Every test against a μ-GDP release has Φ⁻¹(1 − FPR) − Φ⁻¹(FNR) ≤ μ. Scores need not be Gaussian.
    """
    if false_positive_rate >= 1 or false_negative_rate >= 1:
        return 0.0
    mu = float(-ndtri(false_positive_rate) - ndtri(false_negative_rate))
    return min(MU_MAX, max(0.0, mu))


def epsilon_lower(false_positive_rate: float, false_negative_rate: float, delta: float) -> float:
    """Smallest ε at δ that allows both error rates; 0 if every ε does."""
    best = 0.0
    for one, other in (
        (false_positive_rate, false_negative_rate),
        (false_negative_rate, false_positive_rate),
    ):
        if 1 - delta - other > one > 0:
            best = max(best, math.log((1 - delta - other) / one))
    return best


def gaussian_mu_lower(
    original: npt.NDArray[np.float64], changed: npt.NDArray[np.float64], confidence: float
) -> float:
    """Lower bound on the distance between two mean scores, in standard deviations.

    Assumes many runs, and Gaussian scores with the same variance on both neighbouring datasets.
    """
    runs = min(original.size, changed.size)
    if runs < 2:
        return 0.0
    standard_deviation = math.sqrt((original.var(ddof=1) + changed.var(ddof=1)) / 2)
    distance = float(changed.mean() - original.mean())
    if standard_deviation == 0:
        return MU_MAX if distance > 0 else 0.0
    mu = distance / standard_deviation
    error = math.sqrt(2 / runs + mu**2 / (4 * (runs - 1)))
    return min(MU_MAX, max(0.0, mu - float(ndtri(check_confidence(confidence))) * error))


def one_run_epsilon(
    canaries: int, guesses: int, correct: int, *, delta: float, confidence: float
) -> float:
    """Lower bound on ε at δ from one run, after Steinke, Nasr and Jagielski (2023).

    A fair coin put each canary in one of two states. The attacker guessed `guesses` of the coins, a
    number fixed in advance, and `correct` of the guesses were right.
    """
    _check_guesses(canaries, guesses, correct)
    level = 1 - check_confidence(confidence)
    return _largest_refuted(
        lambda epsilon: _probability(canaries, guesses, correct, epsilon, delta) <= level,
        EPSILON_MAX,
    )


def _probability(canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """Upper bound on the probability of at least `correct` correct guesses under (ε, δ)-DP.

    The bound is P[B ≥ correct] + 2·canaries·δ·max_i P[correct > B ≥ correct − i]/i, where B is the
    number of heads among `guesses` coins with probability of heads e^ε/(1 + e^ε).
    """
    heads = 1 / (1 + math.exp(-epsilon))
    tail = float(binom.sf(correct - 1, guesses, heads))
    if correct == 0:
        return tail
    below = np.cumsum(binom.pmf(np.arange(correct - 1, -1, -1), guesses, heads))
    slope = float((below / np.arange(1, correct + 1)).max())
    return min(1.0, tail + 2 * canaries * delta * slope)


def one_run_mu(canaries: int, guesses: int, correct: int, *, confidence: float) -> float:
    """Lower bound on μ from one run, after Mahloujifar, Melis and Chaudhuri (2024).

    Like `one_run_epsilon`, but uses the whole trade-off curve of a μ-GDP release.
    """
    _check_guesses(canaries, guesses, correct)
    level = 1 - check_confidence(confidence)
    return _largest_refuted(lambda mu: _is_refuted(canaries, guesses, correct, mu, level), MU_MAX)


def _is_refuted(canaries: int, guesses: int, correct: int, mu: float, level: float) -> bool:
    """True if a μ-GDP release gives `correct` correct guesses with probability below `level`.

    Proof by contradiction. Suppose the probability is `level`. Let r_i and h_i be the expected
    fractions of canaries guessed right and wrong, restricted to runs with at least i correct
    guesses. Then h_{i−1} ≥ Φ(Φ⁻¹(r_i) − μ). Recursing down to i = 0, r_0 + h_0 must not exceed the
    fraction of canaries that are guessed.
    """
    right, wrong = level * correct / canaries, level * (guesses - correct) / canaries
    total = guesses / canaries
    for i in range(correct - 1, -1, -1):
        before = wrong
        wrong = max(wrong, float(ndtr(ndtri(min(right, 1.0)) - mu)))
        right += i / (guesses - i) * (wrong - before)
        if right + wrong > total:
            return True
    return False


def _largest_refuted(is_refuted: Callable[[float], bool], most: float) -> float:
    """Largest refuted value, rounded down, found by bisection; refutation is monotone."""
    if not is_refuted(0.0):
        return 0.0
    low, high = 0.0, most
    if is_refuted(high):
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_refuted(middle) else (low, middle)
    return low


def _check_guesses(canaries: int, guesses: int, correct: int) -> None:
    if not 0 <= correct <= guesses <= canaries or guesses < 1:
        raise InvalidParameter(
            "guesses must be from 1 to the number of canaries, and correct from 0 to guesses"
        )
