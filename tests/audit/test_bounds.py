"""Lower bounds of audits, compared with other implementations and on attackers with known μ."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest, norm

from taciturn.accounting import gaussian
from taciturn.audit import bounds
from taciturn.audit.one_run import best_guesses
from taciturn.errors import InvalidParameter

DELTA = 1e-5


@pytest.mark.parametrize(
    ("errors", "trials"), [(0, 10), (3, 10), (10, 10), (40, 1000), (999, 1000)]
)
def test_rate_bounds_equal_those_of_scipy(errors: int, trials: int) -> None:
    for confidence in (0.9, 0.975, 0.9995):
        oracle = binomtest(errors, trials, alternative="less").proportion_ci(confidence).high
        assert bounds.rate_upper(errors, trials, confidence) == pytest.approx(oracle, abs=1e-9)


def test_a_thousand_runs_prove_at_most_epsilon_5_6() -> None:
    rates = bounds.error_rates(0, 0, 1000, 0.95)
    assert bounds.epsilon_lower(*rates, DELTA) == pytest.approx(5.6, abs=0.01)
    assert bounds.mu_lower(*rates) == pytest.approx(2 * norm.isf(1 - 0.025 ** (1 / 1000)))


def test_random_guesses_give_a_bound_of_zero() -> None:
    for wrong in ((500, 500), (1000, 0), (0, 1000), (1000, 1000), (900, 900)):
        rates = bounds.error_rates(*wrong, 1000, 0.95)
        assert bounds.mu_lower(*rates) == 0 and bounds.epsilon_lower(*rates, DELTA) == 0


def test_bounds_of_many_runs_rarely_exceed_the_truth() -> None:
    """Ideal Gaussian scores, threshold in the middle: too high in at most 5% of audits."""
    random, mu, runs, audits = np.random.default_rng(1), 1.5, 300, 1000
    truth = gaussian.epsilon(DELTA, mu)
    high = np.zeros(3)
    for _ in range(audits):
        first, second = random.normal(size=runs), random.normal(mu, size=runs)
        wrong = int((first > mu / 2).sum()), int((second <= mu / 2).sum())
        rates = bounds.error_rates(*wrong, runs, 0.95)
        high += [
            bounds.mu_lower(*rates) > mu,
            bounds.epsilon_lower(*rates, DELTA) > truth,
            bounds.gaussian_mu_lower(first, second, 0.95) > mu,
        ]
    allowed = binom.ppf(0.9999, audits, 0.05)
    assert (high <= allowed).all()
    assert high[2] > 10  # the bound that assumes Gaussian scores is nearly tight


def guesses_of(random: np.random.Generator, canaries: int, guesses: int, mu: float) -> int:
    """Number of correct guesses among the most confident ones, for ideal Gaussian canaries."""
    coins = random.integers(0, 2, canaries) * 2 - 1
    scores = random.normal(size=canaries) + coins * mu / 2
    chosen = np.argsort(-np.abs(scores))[:guesses]
    return int((np.sign(scores[chosen]) == coins[chosen]).sum())


@pytest.mark.parametrize(
    ("guesses", "mu"), [(100, 1.0), pytest.param(500, 0.3, marks=pytest.mark.slow), (20, 3.0)]
)
def test_bounds_of_one_run_rarely_exceed_the_truth(guesses: int, mu: float) -> None:
    random, audits = np.random.default_rng(2), 200
    truth = gaussian.epsilon(DELTA, mu)
    high = np.zeros(2)
    for _ in range(audits):
        correct = guesses_of(random, 500, guesses, mu)
        known = 500, guesses, correct
        high += [
            bounds.one_run_epsilon(*known, delta=DELTA, confidence=0.9) > truth,
            bounds.one_run_mu(*known, confidence=0.9) > mu,
        ]
    assert (high <= binom.ppf(0.9999, audits, 0.1)).all()


@pytest.mark.slow
def test_bounds_of_one_run_are_close_to_the_truth() -> None:
    """For μ = 1 (ε = 4.38) and 10,000 canaries, they are about 2.3 and 3.0 in terms of ε."""
    random, canaries, mu = np.random.default_rng(3), 10_000, 1.0
    guesses = best_guesses(canaries, mu, 0.95)
    found = np.zeros(2)
    for _ in range(10):
        known = canaries, guesses, guesses_of(random, canaries, guesses, mu)
        epsilon = bounds.one_run_epsilon(*known, delta=DELTA, confidence=0.95)
        found += epsilon, bounds.one_run_mu(*known, confidence=0.95)
    assert found[0] / 10 == pytest.approx(2.3, abs=0.25)
    assert gaussian.epsilon(DELTA, found[1] / 10) == pytest.approx(3.0, abs=0.2)


def test_one_run_with_negligible_delta_equals_randomised_response() -> None:
    """Then each guess is correct with probability e^ε/(1 + e^ε)."""
    epsilon = bounds.one_run_epsilon(1000, 100, 90, delta=1e-300, confidence=0.95)
    probability = 1 / (1 + np.exp(-epsilon))
    assert binom.sf(89, 100, probability) == pytest.approx(0.05, rel=1e-6)


def test_more_correct_guesses_prove_more() -> None:
    found = [bounds.one_run_mu(300, 60, correct, confidence=0.95) for correct in range(61)]
    assert found == sorted(found) and found[30] == 0 < found[60] < bounds.MU_MAX


@pytest.mark.parametrize("known", [(10, 11, 5), (10, 5, 6), (10, 0, 0), (10, 5, -1)])
def test_impossible_guesses_are_refused(known: tuple[int, int, int]) -> None:
    with pytest.raises(InvalidParameter, match="guesses"):
        bounds.one_run_mu(*known, confidence=0.95)
    with pytest.raises(InvalidParameter, match="confidence"):
        bounds.one_run_mu(10, 5, 5, confidence=1.0)
