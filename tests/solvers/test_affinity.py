"""Inference of interest: affinities, popularity, and folding in by implicit least squares."""

import mpmath
import numpy as np
import pytest

from taciturn.model.interest import Interest, InterestItems
from taciturn.solvers.descent import count_variances, shrunk_counts
from taciturn.solvers.interest.affinity import Measured, data_weight, item_vectors, whitened
from taciturn.solvers.interest.fold_in import folded_interests, implicit_rows
from taciturn.solvers.interest.part import Popularity
from tests.solvers.helpers import random_ratings


def test_interests_of_many_users_equal_those_of_each_alone() -> None:
    random = np.random.default_rng(2)
    ratings = random_ratings(4, users=30, items=20)
    items = InterestItems.of(random.normal(size=(20, 5)).astype(np.float32))
    interest = Interest(rating_weight=1.0, unseen_weight=0.3, regularization=0.05)
    pattern = ratings.pattern.by_user
    found = folded_interests(pattern, items, interest)
    for user in range(30):
        seen = pattern.columns[pattern.starts[user] : pattern.starts[user + 1]]
        assert np.allclose(found[user], items.coefficients(seen, interest), atol=1e-3)


def test_implicit_rows_minimise_their_objective() -> None:
    """The normal equations, written out for one row."""
    random = np.random.default_rng(5)
    pattern = random_ratings(4, users=6, items=15).pattern.by_user
    others = random.normal(size=(15, 3))
    targets = random.normal(size=pattern.entries).astype(np.float32)
    interest = Interest(rating_weight=1.0, unseen_weight=0.2, regularization=0.1)
    found = implicit_rows(pattern, others, interest, targets=targets)
    for row in range(6):
        entries = slice(pattern.starts[row], pattern.starts[row + 1])
        mine = others[pattern.columns[entries]]
        system = mine.T @ mine + 0.2 * others.T @ others
        system += 0.1 * (len(mine) + 0.2 * 15) * np.eye(3)
        expected = np.linalg.solve(system, mine.T @ targets[entries])
        assert np.allclose(found[row], expected, atol=1e-4)


def test_posterior_recovers_factors_from_exact_measurements() -> None:
    random = np.random.default_rng(0)
    factors, counts = random.normal(size=(200, 3)), random.uniform(50, 500, 200)
    slope, mean = random.normal(size=(3, 3)), random.normal(size=3)
    measured = Measured(
        sums=counts[:, None] * (mean + factors @ slope.T),
        counts=counts,
        noise=1e-6,
        mean=mean,
        slope=slope,
        scatter=np.zeros((3, 3)),
    )
    assert np.allclose(measured.posterior(), factors, atol=1e-3)


def test_posterior_of_noise_alone_is_almost_zero() -> None:
    random = np.random.default_rng(0)
    measured = Measured(
        sums=random.normal(size=(500, 2)) * 100,
        counts=np.full(500, 50.0),
        noise=100.0,
        mean=np.zeros(2),
        slope=np.eye(2),
        scatter=np.eye(2),
    )
    assert np.abs(measured.posterior()).max() < 1.5
    assert float((measured.posterior() ** 2).mean()) < 0.1 * 2**2


def test_whitened_rows_have_mean_zero_and_covariance_one() -> None:
    random = np.random.default_rng(1)
    counts = random.uniform(1, 9, 300)
    rows = whitened(random.normal(size=(300, 4)) @ random.normal(size=(4, 4)) + 3, counts)
    shares = counts / counts.sum()
    assert np.allclose(shares @ rows, 0, atol=1e-9)
    assert np.allclose((rows * shares[:, None]).T @ rows, np.eye(4), atol=1e-9)


def test_data_weight_grows_with_counts_and_falls_with_noise() -> None:
    counts = np.full(10, 100.0)
    usual = data_weight(counts, 5.0, 4)
    assert data_weight(2 * counts, 5.0, 4) > usual > data_weight(counts, 10.0, 4)
    assert usual > data_weight(counts, 5.0, 8)


def test_item_vectors_begin_with_popularity_in_order_of_counts() -> None:
    counts = np.array([3.0, 50.0, 10.0])
    vectors = item_vectors(counts, np.zeros((3, 2)))
    assert np.argsort(vectors[:, 0]).tolist() == [0, 2, 1]
    assert np.mean((vectors**2).sum(axis=1)) == pytest.approx(1)


def test_popularity_combines_tables_by_their_precision() -> None:
    counts = np.array([100.0, 400.0])
    first = Popularity.of_counts(counts + 10, 10.0, counts)
    both = first.with_counts(counts, 0.1)
    assert np.abs(both.counts - counts).max() < 0.1
    assert both.reliability > first.reliability > 0.9


@pytest.mark.parametrize("noise", [30.0, 1e3, 1e5])
def test_popularity_that_is_noise_is_not_reliable(noise: float) -> None:
    random = np.random.default_rng(0)
    counts = random.poisson(0.05, 400).astype(float)
    noisy = counts + noise * random.normal(size=400)
    believed = shrunk_counts(noisy, noise, 0.05)
    assert Popularity.of_counts(noisy, noise, believed).reliability < 0.01


def test_popularity_of_a_single_item_is_not_reliable() -> None:
    one = np.array([3.0])
    assert Popularity.of_counts(one, 1e6, one).reliability == pytest.approx(1e-3)


@pytest.mark.parametrize(
    ("count", "noise", "usual"),
    [(5, 1, 3), (3, 10, 0.7), (-40, 10, 0.7), (40, 1000, 0.05), (-3000, 1000, 0.05), (0, 30, 0.05)],
)
def test_posterior_of_a_count_equals_its_integral(count: float, noise: float, usual: float) -> None:
    """Normal likelihood times exponential prior, integrated with 60 digits."""
    with mpmath.workdps(60):

        def density(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.exp(-((mpmath.mpf(count) - x) ** 2) / (2 * noise**2) - x / usual)

        end = max(count, 0) + 60 * min(noise, usual) + (10 * noise if noise < 5 * usual else 0)
        places = [0, end / 1000, end / 100, end / 10, end]
        whole = mpmath.quad(density, places)
        mean = mpmath.quad(lambda x: x * density(x), places) / whole
        variance = mpmath.quad(lambda x: (x - mean) ** 2 * density(x), places) / whole
    counts = np.array([float(count)])
    assert shrunk_counts(counts, noise, usual)[0] == pytest.approx(float(mean), rel=1e-4)
    assert count_variances(counts, noise, usual)[0] == pytest.approx(float(variance), rel=2e-3)
