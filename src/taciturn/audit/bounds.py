"""What is surely leaked, given how often an attacker was right: lower bounds with confidence.

Nothing here knows how the attacker decides. docs/proofs/audit.md says why each bound holds.
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
"""Bounds on μ end here: far beyond, nothing is hidden."""

EPSILON_MAX = 100.0
"""Bounds on ε from one run end here."""

_HALVINGS = 40


def check_confidence(confidence: float) -> float:
    """Return a confidence, or raise with advice."""
    return validate.probability("confidence", confidence, "0.95 is usual")


def rate_upper(errors: int, trials: int, confidence: float) -> float:
    """Return an upper bound on the chance of an error, after Clopper and Pearson."""
    if not 0 <= errors <= trials or trials < 1:
        raise InvalidParameter("errors must be some of at least one trial")
    return 1.0 if errors == trials else float(betaincinv(errors + 1, trials - errors, confidence))


def error_rates(
    false_positives: int, false_negatives: int, runs: int, confidence: float
) -> tuple[float, float]:
    """Return upper bounds on both error rates that hold together, from `runs` in each world."""
    each = 1 - (1 - check_confidence(confidence)) / 2
    return rate_upper(false_positives, runs, each), rate_upper(false_negatives, runs, each)


def mu_lower(false_positive_rate: float, false_negative_rate: float) -> float:
    """Return the least μ whose trade-off curve allows both error rates; 0 if any does.

    Every test against a μ-GDP release has Φ⁻¹(1 − FPR) − Φ⁻¹(FNR) ≤ μ; no score need be Gaussian.
    """
    if false_positive_rate >= 1 or false_negative_rate >= 1:
        return 0.0
    mu = float(-ndtri(false_positive_rate) - ndtri(false_negative_rate))
    return min(MU_MAX, max(0.0, mu))


def epsilon_lower(false_positive_rate: float, false_negative_rate: float, delta: float) -> float:
    """Return the least ε at δ that allows both error rates; 0 if any does."""
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
    """Return a lower bound on the distance of two means in deviations.

    Assumes that scores are Gaussian with the same variance in both worlds, and many.
    """
    runs = min(original.size, changed.size)
    if runs < 2:
        return 0.0
    deviation = math.sqrt((original.var(ddof=1) + changed.var(ddof=1)) / 2)
    distance = float(changed.mean() - original.mean())
    if deviation == 0:
        return MU_MAX if distance > 0 else 0.0
    mu = distance / deviation
    error = math.sqrt(2 / runs + mu**2 / (4 * (runs - 1)))
    return min(MU_MAX, max(0.0, mu - float(ndtri(check_confidence(confidence))) * error))


def one_run_epsilon(
    canaries: int, guesses: int, correct: int, *, delta: float, confidence: float
) -> float:
    """Return a lower bound on ε at δ from one run, after Steinke, Nasr and Jagielski (2023).

    Each of some canaries was in one of two states by a fair coin; the attacker guessed a number of
    coins that was fixed beforehand, and some guesses were correct.
    """
    _check_guesses(canaries, guesses, correct)
    level = 1 - check_confidence(confidence)
    return _largest_refuted(
        lambda epsilon: _chance(canaries, guesses, correct, epsilon, delta) <= level, EPSILON_MAX
    )


def _chance(canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """Return a bound on the chance of so many correct guesses under (ε, δ)-DP.

    At most P[B ≥ correct] + 2·canaries·δ·max_i P[correct > B ≥ correct − i]/i, where B counts
    heads of `guesses` coins that show heads with chance e^ε/(1 + e^ε).
    """
    heads = 1 / (1 + math.exp(-epsilon))
    tail = float(binom.sf(correct - 1, guesses, heads))
    if correct == 0:
        return tail
    below = np.cumsum(binom.pmf(np.arange(correct - 1, -1, -1), guesses, heads))
    slope = float((below / np.arange(1, correct + 1)).max())
    return min(1.0, tail + 2 * canaries * delta * slope)


def one_run_mu(canaries: int, guesses: int, correct: int, *, confidence: float) -> float:
    """Return a lower bound on μ from one run, after Mahloujifar, Melis and Chaudhuri (2024).

    Like `one_run_epsilon`, against the whole trade-off curve of a μ-GDP release.
    """
    _check_guesses(canaries, guesses, correct)
    level = 1 - check_confidence(confidence)
    return _largest_refuted(lambda mu: _is_refuted(canaries, guesses, correct, mu, level), MU_MAX)


def _is_refuted(canaries: int, guesses: int, correct: int, mu: float, level: float) -> bool:
    """Return whether a μ-GDP release gives so many correct guesses with a chance below `level`.

    If the chance were `level`, then with r and h the expected shares of canaries that are guessed
    right and wrong when at least i guesses are correct, h at i − 1 is at least Φ(Φ⁻¹(r) − μ) with r
    at i. Followed down to i = 0, all guesses together must not be more than there are.
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
    """Return the end of the values that are refuted, rounded down; small ones are first."""
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
        raise InvalidParameter("guesses are about some canaries, and some of them are correct")
