"""Little data and small budgets: noise-aware inference is no worse than saying nothing."""

from functools import cache

import numpy as np
import pytest

from benchmarks.small import Task, measure

pytestmark = pytest.mark.slow

SEEDS = 6


@cache
def errors(ratings: int, is_dense: bool, epsilon: float) -> list[dict[str, float]]:
    return [measure(Task(ratings, is_dense, epsilon, seed)) for seed in range(SEEDS)]


@pytest.mark.parametrize("solver", ["als", "bias"])
@pytest.mark.parametrize("unit", ["value", "rating", "user"])
@pytest.mark.parametrize("epsilon", [0.01, 0.1])
@pytest.mark.parametrize("is_dense", [True, False])
def test_noise_alone_is_not_taken_for_ratings(
    is_dense: bool, epsilon: float, unit: str, solver: str
) -> None:
    """Noise exceeds the sums of 100 ratings by far: the middle of the scale is hard to beat."""
    ratios = [each[f"{unit}:{solver}"] / each["middle"] for each in errors(100, is_dense, epsilon)]
    assert np.mean(ratios) < 1.02


@pytest.mark.parametrize("unit", ["value", "rating", "user"])
@pytest.mark.parametrize("is_dense", [True, False])
def test_factors_do_no_harm_where_users_have_few_ratings(is_dense: bool, unit: str) -> None:
    """With little noise, factors would fit the noise of single ratings."""
    ratios = [each[f"{unit}:als"] / each[f"{unit}:bias"] for each in errors(1000, is_dense, 20)]
    assert np.mean(ratios) < 1.01
