"""Query answers under unit `rating` if whole users are bounded: any ratings of one user change."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.accounting.events import Rows
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.mechanisms.grid import ValueGrid
from taciturn.queries import per_user
from taciturn.queries import user_sums as module
from taciturn.queries.executor import RatingQuery
from taciturn.queries.features import NORM
from taciturn.queries.totals import COUNT_BITS
from taciturn.queries.user_sums import ReleasedItems, UserSums
from taciturn.queries.values import GridValues, ValueView
from tests.queries.helpers import (
    GRIDS,
    Steps,
    assert_bounded,
    chosen_values,
    constant_values,
    every_pair,
    largest_ratio,
    random_items,
    squared_ratios,
    user_sums,
    user_totals,
)

ENDS = np.iinfo(np.int32)


def assert_any_change_is_bounded(spec: RatingQuery, one: GridValues, other: GridValues) -> None:
    assert_bounded(spec, one, other)
    assert {query.unit for query in spec.queries} == {Unit.RATING}
    assert {query.rows for query in spec.queries} == {Rows.CONTRIBUTIONS}


def changed(
    ratings: Ratings, view: ValueView, random: np.random.Generator, ends: tuple[int, int]
) -> list[GridValues]:
    """Values in two datasets that differ in all ratings of the first user."""
    table = random.integers(*ends, ratings.shape, endpoint=True).astype(np.int32)
    keep = random.random(len(ratings)) < 0.7
    mine = ratings.rows() == 0
    found = []
    for _ in range(2):
        table[0] = random.integers(*ends, ratings.shape[1], endpoint=True)
        keep[mine] = random.random(int(mine.sum())) < random.choice([0.0, 0.3, 1.0])
        found.append(chosen_values(ratings.select(keep), view, table.copy()))
    return found


@settings(max_examples=80)
@given(
    st.integers(0, 2**32),
    st.sampled_from([1, 2, 7, 60]),
    st.integers(1, 6),
    st.sampled_from([0.01, 1.0, 30.0]),
    st.none() | st.integers(1, 100),
    st.sampled_from([0, 2]),
    st.sampled_from(GRIDS),
)
def test_no_change_of_one_user_moves_sums_more_than_recorded(
    seed: int,
    items: int,
    width: int,
    length: float,
    threshold: int | None,
    features: int,
    grid: ValueGrid,
) -> None:
    random = np.random.default_rng(seed)
    released = random_items(random, items, width, length, features=features)
    spec = user_sums(released, threshold, grid=grid, unit=Unit.RATING)
    totals = user_totals(items, grid, Unit.RATING)
    ends = random.choice([0, 1])
    span = ((grid.lowest, grid.highest), (ENDS.min, ENDS.max))[ends]
    one, other = changed(every_pair(3, items), spec.view, random, span)
    assert_any_change_is_bounded(spec, one, other)
    assert_any_change_is_bounded(totals, one, other)


def flipped(count: int) -> tuple[UserSums, list[GridValues]]:
    """A user whose prediction errors are all large, of one sign or of the other."""
    items = ReleasedItems(
        rows=np.zeros((count, 3)),
        regularization=np.array([1e12, 1.0, 1.0]),
        constant=1.9,
        mean=3.0,
    )
    spec = user_sums(items, 20, unit=Unit.RATING)
    ratings, table = every_pair(2, count), np.zeros((2, count), dtype=np.int32)
    found = []
    for end in (ENDS.max, ENDS.min):
        table[0] = end
        found.append(chosen_values(ratings, spec.view, table.copy()))
    return spec, found


@pytest.mark.parametrize("count", [1, 16, 300])
def test_contributions_that_turn_around_attain_the_bound_of_sums(count: int) -> None:
    spec, (one, other) = flipped(count)
    lost = 2 * math.sqrt(count) * (2.0**-16 + 1 / NORM)
    assert_any_change_is_bounded(spec, one, other)
    by_item, *_ = squared_ratios(spec, one, other)
    assert (1 - lost) ** 2 - 1e-12 <= by_item <= 1


def test_features_in_other_directions_attain_the_bound_of_products() -> None:
    items = ReleasedItems(
        rows=np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        regularization=np.array([1e12, 1e-3, 1e-3]),
        constant=1e-6,
        mean=0.0,
    )
    spec = user_sums(items, 40, unit=Unit.RATING)
    ratings = every_pair(1, 2)
    values = [
        constant_values(ratings.select(np.arange(2) == place), spec.view, spec.view.grid.highest)
        for place in (0, 1)
    ]
    assert_any_change_is_bounded(spec, *values)
    assert 1 - 1e-3 < squared_ratios(spec, *values)[1] <= 1


def test_a_user_who_comes_attains_the_bound_of_squares() -> None:
    spec, (one, _) = flipped(16)
    absent = constant_values(every_pair(2, 16).select(np.arange(32) >= 16), spec.view, 0)
    silent = chosen_values(every_pair(2, 16), spec.view, np.zeros((2, 16), dtype=np.int32))
    assert_any_change_is_bounded(spec, one, absent)
    assert_any_change_is_bounded(spec, silent, absent)
    assert 1 - 1e-12 < squared_ratios(spec, one, absent)[3] <= 1


@pytest.mark.parametrize("grid", GRIDS)
def test_other_items_and_values_attain_the_bounds_of_totals(grid: ValueGrid) -> None:
    spec = user_totals(8, grid, Unit.RATING)
    ratings = every_pair(1, 8)
    first = np.arange(8) < 4
    one, other = (
        constant_values(ratings.select(keep), spec.view, end)
        for keep, end in ((first, grid.highest), (~first, grid.lowest))
    )
    assert_any_change_is_bounded(spec, one, other)
    weights, totals = squared_ratios(spec, one, other)
    assert 1 - 1e-7 < weights <= 1
    if grid.lowest == -grid.highest:
        assert 1 - 1e-5 < totals <= 1


@pytest.mark.parametrize("table", [0, 1])
def test_the_bound_of_unit_user_is_too_small(table: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: the noise of unit `user` is used for one rating."""
    original = per_user.for_any_change
    for each in (per_user, module):
        monkeypatch.setattr(
            each, "for_any_change", lambda query, unit, factor: original(query, unit, 1.0)
        )
    if table == 0:
        spec, (one, other) = flipped(16)
        assert largest_ratio(spec, one, other) == Fraction(4) / Fraction(1 + 2.0**-50) ** 2
    else:
        totals = user_totals(8, unit=Unit.RATING)
        first, ratings = np.arange(8) < 4, every_pair(1, 8)
        one, other = (
            constant_values(ratings.select(keep), totals.view, 1) for keep in (first, ~first)
        )
        assert squared_ratios(totals, one, other)[0] > 1.99


def test_totals_of_a_user_with_all_ratings_replaced() -> None:
    """The number of users does not change; their mean and mean square do."""
    spec, ratings = user_totals(4, unit=Unit.RATING), every_pair(2, 4)
    grid = spec.view.grid
    table: Steps = np.full((2, 4), grid.lowest, dtype=np.int32)
    one = chosen_values(ratings, spec.view, table.copy())
    table[0] = grid.highest
    other = chosen_values(ratings, spec.view, table)
    before, after = (spec.exact(each).tables[1] for each in (one, other))
    assert before[0, 0] == after[0, 0] == 2 << COUNT_BITS
    assert before[0, 1] != after[0, 1]
