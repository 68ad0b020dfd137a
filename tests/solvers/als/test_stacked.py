"""Rows from all gradients together: averages, posterior means and regressions of prior means."""

from typing import Any

import numpy as np
import pytest

from taciturn.model import assumptions
from taciturn.solvers.als.stacked import RowPrior, StackedGradients
from taciturn.solvers.descent import DescentSteps, Rows, Vector

ROWS, STEPS = 40, DescentSteps(factors=2, iterations=5)
GROWTH = 0.5, 2.0


def no_regression(count: int = ROWS) -> RowPrior:
    """Prior means that are all zero."""
    return RowPrior(traits=np.zeros((count, 1)), added=np.ones(1))


def random_curvature(random: np.random.Generator) -> Rows:
    parts = random.normal(size=(3, 6))
    curvature: Rows = parts @ parts.T / 6
    return curvature


def stacked(
    truth: Rows, counts: Vector, curvatures: list[Rows], random: np.random.Generator
) -> StackedGradients:
    """Gradients at random rows whose errors are smallest at the same true rows."""
    found = StackedGradients.none(*truth.shape)
    for curvature in curvatures:
        rows = random.normal(size=truth.shape)
        off = rows - truth
        off[:, 0] /= STEPS.constant
        found = found.updated(
            rows,
            counts[:, None] * (off @ curvature),
            counts,
            curvature,
            constant=STEPS.constant,
            growth=GROWTH,
        )
    return found


def test_averages_have_the_stated_weights() -> None:
    random = np.random.default_rng(0)
    truth, counts = random.normal(size=(ROWS, 3)), random.uniform(1, 50, ROWS)
    curvatures = [random_curvature(random) for _ in range(6)]
    found = stacked(truth, counts, curvatures, random)
    shares = np.empty((6, 3))
    for column, growth in enumerate((0.5, 2.0, 2.0)):
        taken = [(1 + growth) / (t + growth) for t in range(1, 7)]
        shares[:, column] = [
            taken[t] * np.prod([1 - each for each in taken[t + 1 :]]) for t in range(6)
        ]
    assert np.allclose(shares.sum(axis=0), 1) and np.all(np.diff(shares, axis=0) > 0)
    assert found.steps == 6 and np.allclose(found.noise, (shares**2).sum(axis=0))
    whole = truth.copy()
    whole[:, 0] /= STEPS.constant
    expected = sum(
        share * (counts[:, None] * (whole @ curvature))
        for share, curvature in zip(shares, curvatures, strict=True)
    )
    assert np.allclose(found.sums, expected)


@pytest.mark.parametrize("is_noisy", [False, True])
def test_rows_are_posterior_means(is_noisy: bool) -> None:
    """As a dense computation has them; noise is exact where the curvature is diagonal."""
    random = np.random.default_rng(1)
    truth, counts = random.normal(size=(ROWS, 3)), random.uniform(1, 50, ROWS)
    curvature = np.diag([0.3, 0.2, 0.1]) if is_noisy else random_curvature(random)
    noise, weight = 2.0 * is_noisy, random.uniform(0.2, 1, ROWS)
    found = stacked(truth, counts, [curvature] * 4, random)
    rows = found.rows(STEPS, no_regression(), noise=noise, counts=counts, weight=weight)
    prior = np.diag(STEPS.priors**2)
    for row in range(ROWS):
        data = counts[row] * curvature
        errors = weight[row] * assumptions.RESIDUAL**2 * data + np.diag(noise**2 * found.noise)
        gain = prior @ data @ np.linalg.inv(data @ prior @ data + errors)
        mean = gain @ found.sums[row]
        mean[0] *= STEPS.constant
        assert np.allclose(rows[row], mean)


def test_prior_means_follow_their_regressors() -> None:
    """Rows of which little is known move to what the others say about their traits."""
    random, count = np.random.default_rng(2), 4000
    counts = np.exp(random.uniform(0, 6, count))
    prior = RowPrior.by_count(counts)
    slopes = np.array([0.3, -0.4, 0.1])
    whitened = (prior.traits @ slopes)[:, None] + 0.3 * random.normal(size=(count, 3))
    truth = STEPS.from_whitened(whitened)
    found = stacked(truth, counts, [np.diag([0.3, 0.2, 0.1])] * 3, random)
    settings: dict[str, Any] = {"noise": 3.0, "counts": counts, "weight": 1.0}
    errors = [
        float(
            np.sqrt(np.mean((STEPS.whitened(found.rows(STEPS, each, **settings)) - whitened) ** 2))
        )
        for each in (prior, no_regression(count))
    ]
    assert errors[0] < 0.4 < 0.6 < errors[1]


def test_offsets_and_precisions_are_obeyed() -> None:
    random = np.random.default_rng(3)
    truth, counts = random.normal(size=(ROWS, 3)), random.uniform(1, 5, ROWS)
    found = stacked(truth, counts, [np.diag([0.3, 0.2, 0.1])] * 2, random)
    offset = random.normal(size=truth.shape)
    prior = RowPrior(
        traits=np.zeros((ROWS, 1)),
        added=np.ones(1),
        offset=offset,
        precision=np.where(np.arange(ROWS) < 20, 1e12, 1e-12),
    )
    rows = found.rows(STEPS, prior, noise=0.0, counts=counts, weight=1.0)
    assert np.allclose(rows[:20], offset[:20], atol=1e-6)
    assert np.allclose(rows[20:], truth[20:], atol=1e-6)
