"""Compiled posterior and inner products, compared with slow references."""

from typing import Any

import numpy as np
import pytest

from taciturn import _core
from taciturn.data.pattern import Axis
from taciturn.data.ratings import Ratings
from taciturn.solvers.als.posterior import (
    Design,
    NoisySums,
    Posterior,
    RowPrior,
    posterior,
    products,
)
from tests.instruction_sets import every_set, on_every_set
from tests.solvers.helpers import random_ratings


class Problem:
    """Random arguments of `posterior`."""

    def __init__(self, ratings: Ratings, measured: int, unknown: int, known: int) -> None:
        random = np.random.default_rng(measured)
        users, items = ratings.shape
        self.pattern = ratings.pattern.by_item
        self.noisy = NoisySums(
            features=random.normal(size=(users, measured)).astype(np.float32),
            sums=random.normal(size=(items, measured)) * 10,
            noise=random.uniform(1, 20, measured),
        )
        self.design = Design(
            unknown=random.normal(size=(users, unknown)),
            known=random.normal(size=(users, known)),
            shifts=random.normal(size=(items, known)),
            errors=random.uniform(0.5, 2, users),
        )
        half = random.normal(size=(unknown, unknown))
        self.prior = RowPrior(
            means=random.normal(size=(items, unknown)),
            covariance=half @ half.T + np.eye(unknown),
        )

    def solve(self, threads: int = 1) -> Posterior:
        return posterior(self.pattern, self.noisy, self.design, self.prior, threads)

    def reference(self) -> tuple[np.ndarray, np.ndarray]:
        """Condition the joint normal distribution of coefficients and noisy sums."""
        means, covariances = [], []
        for row in range(len(self.prior.means)):
            begin, end = self.pattern.starts[row : row + 2]
            counterparts = self.pattern.columns[begin:end]
            features = self.noisy.features[counterparts].astype(float)
            effect = features.T @ self.design.unknown[counterparts]
            assumed = features.T @ (self.design.known[counterparts] @ self.design.shifts[row])
            errors = np.diag(self.design.errors[counterparts])
            of_sums = features.T @ errors @ features + np.diag(self.noisy.noise)
            total = effect @ self.prior.covariance @ effect.T + of_sums
            gain = np.linalg.solve(total, effect @ self.prior.covariance).T
            surprise = self.noisy.sums[row] - assumed - effect @ self.prior.means[row]
            means.append(self.prior.means[row] + gain @ surprise)
            covariances.append(self.prior.covariance - gain @ effect @ self.prior.covariance)
        return np.array(means), np.array(covariances)


@every_set
@pytest.mark.parametrize(
    ("measured", "unknown", "known"),
    [(1, 1, 1), (3, 2, 1), (16, 5, 3), (17, 4, 9), (40, 17, 9), (33, 1, 31)],
)
def test_the_posterior_is_conditional_on_the_sums(measured: int, unknown: int, known: int) -> None:
    ratings = random_ratings(1, users=400, items=12)
    keep = ratings.by_user.columns != 3  # an item without ratings has its prior as posterior
    problem = Problem(ratings.select(keep), measured, unknown, known)
    found = problem.solve()
    means, covariances = problem.reference()
    assert np.allclose(found.means, means, rtol=1e-3, atol=1e-3)
    assert np.allclose(found.variances, np.einsum("npp->np", covariances), rtol=1e-3, atol=1e-5)
    assert np.allclose(found.total, covariances.sum(axis=0), rtol=1e-3, atol=1e-4)
    assert np.allclose(found.means[3], problem.prior.means[3])
    assert np.allclose(found.variances[3], np.diag(problem.prior.covariance))


@every_set
def test_the_posterior_does_not_depend_on_threads() -> None:
    problem = Problem(random_ratings(2, users=50, items=300), 20, 5, 3)
    one, three = problem.solve(1), problem.solve(3)
    assert np.array_equal(one.means, three.means) and np.array_equal(one.total, three.total)


def test_instruction_sets_differ_in_last_bits_only() -> None:
    problem = Problem(random_ratings(2, users=50, items=30), 20, 5, 3)
    every = on_every_set(problem.solve)
    slow = every["portable"]
    for fast in every.values():
        assert np.allclose(fast.means, slow.means, rtol=1e-5, atol=1e-6)
        assert np.allclose(fast.variances, slow.variances, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("axis", list(Axis))
def test_products_match_the_reference(axis: Axis) -> None:
    ratings = random_ratings(3, users=40, items=25)
    random = np.random.default_rng(0)
    rows = {axis: random.normal(size=(n, 7)) for axis, n in zip(Axis, (40, 25), strict=True)}
    pattern = ratings.pattern.along(axis)
    own, others = rows[axis], rows[axis.other]
    expected = np.einsum("nk,nk->n", own[pattern.entry_rows()], others[pattern.columns])
    assert np.allclose(products(pattern, own, others, threads=2), expected, atol=1e-5)


@every_set
def test_the_kernel_refuses_arrays_that_do_not_fit() -> None:
    ratings = random_ratings(3, users=4, items=3)
    starts, columns = ratings.by_item.starts, ratings.by_item.columns
    good: dict[str, Any] = {
        "table": np.ones((4, 32), dtype=np.float32),
        "design": 16,
        "sums": np.zeros((3, 2)),
        "noise": np.ones(2),
        "known": np.zeros((3, 1)),
        "precision": np.eye(2),
        "pull": np.zeros((3, 2)),
        "means": np.empty((3, 2)),
        "variances": np.empty((3, 2)),
        "total": np.zeros((2, 2)),
    }
    bad: dict[str, list[Any]] = {
        "table": [np.ones((4, 30), dtype=np.float32), np.ones((3, 32), dtype=np.float32)],
        "design": [8, 32],
        "sums": [np.zeros((3, 3)), np.zeros((2, 2))],
        "noise": [np.ones(17), -np.ones(2) * 1e9],
        "known": [np.zeros((3, 15))],
        "precision": [np.eye(3), -np.eye(2)],
        "pull": [np.zeros((3, 1))],
        "variances": [np.empty((2, 2))],
        "total": [np.zeros((1, 2))],
    }

    def solve(**changes: Any) -> None:
        _core.posterior_rows(starts, columns, **(good | changes), begin=0, end=3)

    solve()
    for name, values in bad.items():
        for value in values:
            with pytest.raises((ValueError, IndexError, RuntimeError)):
                solve(**{name: value})
