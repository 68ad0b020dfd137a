"""Query answers under unit `user`: adding or removing one user keeps the recorded bound."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from taciturn.accounting.units import Unit
from taciturn.data.ratings import Csr, Ratings
from taciturn.mechanisms.grid import ValueGrid
from taciturn.queries import per_user
from taciturn.queries import user_sums as module
from taciturn.queries.executor import RatingQuery
from taciturn.queries.features import NORM, AxisFeatures
from taciturn.queries.per_user import weights
from taciturn.queries.totals import COUNT_BITS
from taciturn.queries.user_sums import ReleasedItems, UserSums, clipping_shares
from taciturn.queries.values import GridValues
from tests.instruction_sets import on_every_set
from tests.queries.helpers import (
    GRIDS,
    Floats,
    LongFeatures,
    assert_bounded,
    constant_values,
    every_pair,
    largest_ratio,
    random_items,
    rated,
    squared_ratios,
    user_sums,
    user_totals,
    values_of,
)

ONE = 1 << COUNT_BITS

Neighbours = list[GridValues]
"""Values of all users, of all without one user's ratings, and of all without that user."""


def without(ratings: Ratings, user: int) -> Ratings:
    """Ratings without a user, who is not in the list of users either."""
    rest = ratings.select(ratings.rows() != user).by_user
    others = np.arange(ratings.shape[0]) != user
    return Ratings(
        user_ids=ratings.user_ids.filter(pl.Series(others)),
        item_ids=ratings.item_ids,
        scale=ratings.scale,
        by_user=Csr(np.delete(rest.starts, user), rest.columns, rest.codes),
    )


def neighbours(ratings: Ratings, values: GridValues, user: int) -> Neighbours:
    """The values, those without a user's ratings, and those without the user altogether."""
    others = ratings.rows() != user
    steps = values.steps[others]
    return [
        values,
        values_of(ratings.select(others), values.view, steps),
        values_of(without(ratings, user), values.view, steps),
    ]


def assert_protected(spec: RatingQuery, datasets: Neighbours) -> None:
    one, silent, absent = datasets
    assert_bounded(spec, one, silent)
    assert_bounded(spec, one, absent)
    assert largest_ratio(spec, silent, absent) == 0
    assert {query.unit for query in spec.queries} == {Unit.USER}


@settings(max_examples=60)
@given(rated(), st.data())
def test_no_user_moves_totals_more_than_recorded(
    some: tuple[Ratings, GridValues], data: st.DataObject
) -> None:
    ratings, values = some
    user = data.draw(st.integers(0, ratings.shape[0] - 1))
    spec = user_totals(ratings.shape[1], values.view.grid)
    assert_protected(spec, neighbours(ratings, values, user))


@settings(max_examples=80)
@given(
    rated(),
    st.data(),
    st.integers(0, 2**32),
    st.integers(1, 6),
    st.sampled_from([0.01, 1.0, 30.0]),
    st.none() | st.integers(1, 100),
    st.floats(-100, 100),
    st.sampled_from([0, 2]),
)
def test_no_user_moves_sums_more_than_recorded(
    some: tuple[Ratings, GridValues],
    data: st.DataObject,
    seed: int,
    width: int,
    length: float,
    threshold: int | None,
    mean: float,
    features: int,
) -> None:
    ratings, values = some
    random = np.random.default_rng(seed)
    items = random_items(random, ratings.shape[1], width, length, mean, features)
    user = data.draw(st.integers(0, ratings.shape[0] - 1))
    spec = user_sums(items, threshold, grid=values.view.grid)
    datasets = neighbours(ratings, values, user)
    on_every_set(lambda: assert_protected(spec, datasets))


def worst_case(
    count: int, threshold: int = 40, constant: float = 1.9
) -> tuple[UserSums, Neighbours]:
    """A spec, and neighbours that differ by a user with `count` ratings far from predictions.

    Item profiles are zero and the regularization holds the user's bias, so that predictions are the
    mean, and the constant is the user's whole feature.
    """
    items = ReleasedItems(
        rows=np.zeros((count, 3)),
        regularization=np.array([1e12, 1.0, 1.0]),
        constant=constant,
        mean=1.0,
    )
    ratings, spec = every_pair(2, count), user_sums(items, threshold)
    return spec, neighbours(ratings, constant_values(ratings, spec.view, 2**31 - 1), 0)


@pytest.mark.parametrize("count", [1, 2, 3, 16, 300, 3000])
def test_the_worst_case_comes_close_to_the_bounds(count: int) -> None:
    """The bound of sums by item is attained if the share of the contribution is on the grid.

    Otherwise a share of 2^16/(2√n) steps is rounded down, and so is a weighted feature, NORM/(2√n)
    steps long. The losses are at most 2√n/2^16 and 2√n/NORM, together 0.9 % for 3,000 ratings.
    """
    spec, (one, *others) = worst_case(count)
    lost = 2 * math.sqrt(count) * (2.0**-16 + 1 / NORM)
    for other in others:
        assert_bounded(spec, one, other)
        by_item, products, covariances, squares = squared_ratios(spec, one, other)
        assert (1 - lost) ** 2 <= by_item <= 1
        assert products == squares == 1
        # Zero items leave both factors at their prior; a user with four ratings has full weight.
        assert count < 4 or (1 - 2.0**-15) ** 2 < covariances <= 1
        if count in (1, 16):
            assert by_item == 1


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("count", [1, 2, 3, 16, 300, 3000])
def test_the_worst_case_attains_the_bounds_of_totals(count: int, grid: ValueGrid) -> None:
    ratings, spec = every_pair(2, count), user_totals(count, grid)
    end = max(grid.lowest, grid.highest, key=abs)
    one, *others = neighbours(ratings, constant_values(ratings, spec.view, end), 0)
    for other in others:
        by_item, of_users = squared_ratios(spec, one, other)
        # A weight of 2^26/√n steps is rounded by less than one; the other bound is √3, rounded up.
        assert (1 - math.sqrt(count) / ONE) ** 2 <= by_item <= 1
        assert 1 - 1e-14 < of_users <= 1


def test_a_forgotten_weight_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(per_user, "weights", lambda counts: np.full(counts.shape, ONE))
    ratings, spec = every_pair(2, 16), user_totals(16)
    one, *others = neighbours(ratings, constant_values(ratings, spec.view, 0), 0)
    for other in others:
        assert largest_ratio(spec, one, other) == 16


def test_a_forgotten_share_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def unclipped(squares: npt.NDArray[np.int64], bound: int) -> npt.NDArray[np.int64]:
        return np.full(squares.shape, 1 << 16)

    monkeypatch.setattr(module, "clipping_shares", unclipped)
    spec, (one, *others) = worst_case(16)
    for other in others:
        by_item, *rest = squared_ratios(spec, one, other)
        assert by_item == 4 * 16 and max(rest) <= 1


def test_covariances_above_the_prior_are_caught_or_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A covariance that the solver got wrong adds nothing; a wrong bound is caught."""
    spec, (one, other, _) = worst_case(16)
    solve = ReleasedItems.solve_users

    def wrong(self: ReleasedItems, *arguments: Any, **options: Any) -> Floats:
        rows = solve(self, *arguments, **options)
        options["inverse"] *= 1.01
        return rows

    monkeypatch.setattr(ReleasedItems, "solve_users", wrong)
    assert squared_ratios(spec, one, other)[2] <= 1
    monkeypatch.setattr(module, "_bounded_sum", _unbounded_sum)
    assert squared_ratios(spec, one, other)[2] > 1


def _unbounded_sum(
    weights: Floats, columns: npt.NDArray[np.float32], scales: Floats, width: int, threads: int
) -> npt.NDArray[np.int64]:
    both = np.column_stack([weights, columns * weights[:, None] * scales]) * (1 << 24)
    return np.asarray(np.trunc(both).astype(np.int64).sum(axis=0))


def test_a_threshold_that_is_not_applied_is_caught() -> None:
    """Contributions are clipped as a whole, so only the mean squares exceed their bound."""
    spec, (one, *others) = worst_case(16)
    spec._errors.threshold += 1
    for other in others:
        *_, squares = squared_ratios(spec, one, other)
        assert squares > 1


def test_features_that_are_too_long_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AxisFeatures", LongFeatures)
    spec, (one, *others) = worst_case(16)
    for other in others:
        by_item, products, *_ = squared_ratios(spec, one, other)
        assert by_item > 1.8**2 and products > 1.8**4


def test_features_are_clipped_even_if_they_are_not_divided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def undivided(rows: Floats, shrink: Floats, base: Floats) -> AxisFeatures:
        return AxisFeatures(rows, np.ones_like(shrink), base)

    monkeypatch.setattr(module, "AxisFeatures", undivided)
    spec, (one, *others) = worst_case(16)
    for other in others:
        assert_bounded(spec, one, other)


def test_weights_never_exceed_their_bound() -> None:
    """In whole numbers, n·w² ≤ 2^52 means w² ≤ ⌊2^52/n⌋. Weights are the largest possible."""
    counts = np.arange(1, 10**6 + 1)
    found, most = weights(counts), ONE**2 // counts
    assert (found**2 <= most).all() and ((found + 1) ** 2 > most).all()
    assert weights(np.array([0, 4, 0])).tolist() == [0, ONE // 2, 0]


@given(st.integers(1, 2**40))
@example(2**40)
@example(2**31 - 1)
def test_weights_of_very_many_ratings_are_within_their_bound(count: int) -> None:
    found = int(weights(np.array([count]))[0])
    assert count * found**2 <= ONE**2
    assert 0 <= math.isqrt(ONE**2 // count) - found <= 1


@given(st.integers(0, 2**45), st.integers(1, 2**15 - 1))
@example(2**45, 2**15 - 1)
@example((2**15 - 1) ** 2, 2**15 - 1)
@example(0, 1)
def test_shares_never_exceed_their_bound(squares: int, bound: int) -> None:
    """In whole numbers, share²·squares ≤ (2^16·bound)². Shares are the largest possible."""
    share = int(clipping_shares(np.array([squares]), bound)[0])
    most = (bound << 16) ** 2
    assert share <= 1 << 16 and share**2 * squares <= most
    assert share >= (1 << 16) - 1 or (share + 2) ** 2 * squares > most
