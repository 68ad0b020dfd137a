"""Query answers under unit `rating`: adding or removing one rating keeps the recorded bound."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import ValueGrid
from taciturn.queries.error_pass import ErrorPass
from taciturn.queries.features import AxisFeatures
from taciturn.queries.prediction_errors import PredictionErrorSums, pass_axis
from taciturn.queries.totals import COUNT_BITS, RatingTotals, scaled_powers
from taciturn.queries.values import GridValues, ValueView, on_grid
from tests.queries.helpers import (
    GRIDS,
    LongFeatures,
    assert_bounded,
    chosen_values,
    constant_values,
    every_pair,
    pass_view,
    same_tables,
    squared_ratios,
)
from tests.solvers.helpers import random_ratings

GRID = GRIDS[0]

anything = st.integers(-(2**31), 2**31 - 1)


def random_features(
    shape: tuple[int, int], width: int, random: np.random.Generator
) -> list[AxisFeatures]:
    return [
        AxisFeatures(
            random.normal(size=(count, width)) * 3 / math.sqrt(width),
            random.uniform(0.1, 2, size=count),
            random.uniform(-4, 4, size=count),
        )
        for count in shape
    ]


def sums(
    both: list[AxisFeatures],
    threshold: int | None = None,
    *,
    grid: ValueGrid = GRID,
    **options: Any,
) -> PredictionErrorSums:
    users, items = both
    view = ValueView(grid=grid, axis=pass_axis((len(users), len(items))))
    errors = ErrorPass(view, threshold=threshold, **options)
    return PredictionErrorSums(
        purpose="test", errors=errors, users=users, items=items, pattern=None
    )


shapes = st.tuples(st.integers(1, 6), st.integers(1, 6))


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[Ratings, GridValues, GridValues]:
    """Ratings, their values, and the values without one of the ratings.

    Values may be off the grid. Users and items may have no ratings.
    """
    shape, grid = draw(shapes), draw(st.sampled_from(GRIDS))
    count = math.prod(shape)
    keep = np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    place = draw(st.integers(0, count - 1))
    ratings, without = every_pair(*shape), keep.copy()
    keep[place], without[place] = True, False
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    table = random.integers(grid.lowest - 30, grid.highest + 30, shape).astype(np.int32)
    table[divmod(place, shape[1])] = draw(anything | st.integers(grid.lowest, grid.highest))
    view, some = pass_view(ratings, grid), ratings.select(keep)
    return (
        some,
        chosen_values(some, view, table),
        chosen_values(ratings.select(without), view, table),
    )


@settings(max_examples=80)
@given(
    neighbours(),
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.none() | st.integers(1, 100),
    st.integers(0, 1),
    st.booleans(),
)
def test_one_rating_never_moves_sums_more_than_recorded(
    both: tuple[Ratings, GridValues, GridValues],
    seed: int,
    width: int,
    threshold: int | None,
    first: int,
    portable: bool,
) -> None:
    ratings, one, other = both
    features = random_features(ratings.shape, width, np.random.default_rng(seed))
    spec = sums(features, threshold, grid=one.view.grid, first=first, portable=portable)
    assert_bounded(spec, one, other)
    assert {query.unit for query in spec.queries} == {Unit.RATING}
    tables = spec.exact(one).tables, spec.exact(other).tables
    for with_it, without in zip(*tables, strict=True):
        assert np.count_nonzero((with_it - without).any(axis=1)) <= 1


@settings(max_examples=80)
@given(neighbours())
def test_one_rating_never_moves_totals_more_than_recorded(
    both: tuple[Ratings, GridValues, GridValues],
) -> None:
    ratings, one, other = both
    grid = one.view.grid
    spec = RatingTotals(shape=ratings.shape, view=one.view)
    assert_bounded(spec, one, other)
    assert {query.unit for query in spec.queries} == {Unit.RATING}
    users, items, totals = spec.exact(one).tables
    pattern = ratings.pattern
    assert np.array_equal(users[:, 0], pattern.by_user.counts << COUNT_BITS)
    assert np.array_equal(items[:, 0], pattern.by_item.counts << COUNT_BITS)
    largest = max(abs(grid.lowest), abs(grid.highest))
    parts = np.clip(one.steps, grid.lowest, grid.highest) / largest
    exact = totals[0] / 2.0**COUNT_BITS
    # Each term is rounded by less than a step, a square by less than three.
    assert (
        np.abs(exact - [parts.size, parts.sum(), (parts**2).sum()]).max()
        <= 3 * parts.size / 2**COUNT_BITS
    )


@pytest.mark.parametrize("shape", [(5, 3), (3, 5)])
def test_totals_do_not_depend_on_the_order_of_values(shape: tuple[int, int]) -> None:
    ratings = random_ratings(1, *shape)
    found = []
    for axis in Axis:
        view = ValueView(grid=GRID, axis=axis)
        found.append(RatingTotals(shape=shape, view=view).exact(on_grid(ratings, view)))
    assert same_tables(*found)


def test_scaled_powers_are_fractions_of_the_largest_value() -> None:
    for grid in GRIDS:
        ends = np.array([-(2**31), grid.lowest, 0, grid.highest, 2**31 - 1], dtype=np.int32)
        first, second = scaled_powers(ends, grid)
        one = 1 << COUNT_BITS
        assert abs(first).max() == second.max() == one and second.min() >= 0
        assert first[0] == first[1] and first[3] == first[4]
        assert np.array_equal(np.sign(first), np.sign(np.clip(ends, grid.lowest, grid.highest)))


def worst_case(
    threshold: int | None,
    shape: tuple[int, int] = (4, 3),
    features: type[AxisFeatures] = AxisFeatures,
) -> tuple[PredictionErrorSums, GridValues, GridValues]:
    """A spec, and values with and without a rating far from its prediction.

    Features have the maximum norm; predictions are at the lowest end, the value at the highest.
    """
    ratings = every_pair(*shape)
    both = [
        features(np.eye(count, 7) * 1.5, np.ones(count), np.full(count, -99.0)) for count in shape
    ]
    spec = sums(both, threshold)
    without = ratings.select(np.arange(len(ratings)) != 5)
    one, other = (constant_values(some, spec.view, 2**31 - 1) for some in (ratings, without))
    return spec, one, other


@pytest.mark.parametrize("shape", [(4, 3), (3, 4)])
@pytest.mark.parametrize("threshold", [None, 1, 50])
def test_the_worst_case_attains_the_bounds(threshold: int | None, shape: tuple[int, int]) -> None:
    case = worst_case(threshold, shape)
    assert squared_ratios(*case) == [1, 1, 1]
    assert_bounded(*case)


@pytest.mark.parametrize("grid", GRIDS)
def test_the_worst_case_attains_the_bounds_of_totals(grid: ValueGrid) -> None:
    ratings = every_pair(4, 3)
    end, view = max(grid.lowest, grid.highest, key=abs), pass_view(ratings, grid)
    one, other = (
        constant_values(some, view, end) for some in (ratings, ratings.select(np.arange(12) != 5))
    )
    users, items, totals = squared_ratios(RatingTotals(shape=(4, 3), view=view), one, other)
    # The bound of the last table is √3, rounded up.
    assert users == items == 1 and 1 - 1e-14 < totals <= 1


def test_a_threshold_that_is_not_applied_is_caught() -> None:
    case = worst_case(20)
    case[0]._errors.threshold = 21
    assert min(squared_ratios(*case)) > 1


def test_features_that_are_too_long_are_caught() -> None:
    users, items, squares = squared_ratios(*worst_case(20, features=LongFeatures))
    assert users == items == Fraction(9, 4) and squares == 1


@pytest.mark.parametrize("width", [5, 33, 64])
def test_weighted_columns_do_not_change_predictions(width: int) -> None:
    """Errors are the same integers with the additional columns, however short these are."""
    random = np.random.default_rng(0)
    ratings = every_pair(9, 7)
    users, items = random_features(ratings.shape, width, random)
    weights = random.integers(0, 1 << 16, 9)
    columns = min(3, width)
    both = [users.with_weighted(weights, 16, columns), items.with_zeros(columns)]
    exact = users.packed[:, :columns] * weights[:, None] / 2**16
    assert np.array_equal(both[0].packed[:, width : width + columns], np.trunc(exact))
    assert not both[0].packed.flags.writeable and not both[0].packed[:, width + columns :].any()
    values = on_grid(ratings, pass_view(ratings, GRID))
    one, other = (sums(each).tables(values) for each in ([users, items], both))
    assert np.array_equal(one.users, other.users[:, :width])
    assert np.array_equal(one.items, other.items[:, :width])


@pytest.mark.parametrize("shape", [(300, 40), (40, 300)])
def test_threads_and_instructions_change_nothing(shape: tuple[int, int]) -> None:
    ratings = random_ratings(4, *shape)
    both = random_features(shape, 33, np.random.default_rng(1))
    values = on_grid(ratings, pass_view(ratings, GRID))
    totals = RatingTotals(shape=shape, view=values.view)
    for portable in (False, True):
        for threads in (1, 2, 5):
            found = sums(both, 30, portable=portable).exact(values, threads)
            assert same_tables(found, sums(both, 30).exact(values, 1))
            assert same_tables(totals.exact(values, threads), totals.exact(values))


def test_bad_input_is_refused() -> None:
    ratings = every_pair(4, 3)
    both = random_features((4, 3), 2, np.random.default_rng(0))
    bad_thresholds: tuple[Any, ...] = (0, -3, 1.5, True)
    for threshold in bad_thresholds:
        with pytest.raises(InvalidParameter, match="threshold"):
            sums(both, threshold)
    users, items = both
    errors = ErrorPass(ValueView(grid=GRID, axis=Axis.ITEMS))
    with pytest.raises(InvalidParameter, match="longer axis"):
        PredictionErrorSums(purpose="test", errors=errors, users=users, items=items, pattern=None)
    values = on_grid(ratings, pass_view(ratings, GRID))
    other = on_grid(ratings, pass_view(ratings, GRIDS[1]))
    for spec in (sums(both, 5), RatingTotals(shape=(4, 3), view=values.view)):
        with pytest.raises(InvalidParameter, match="another grid"):
            spec.exact(other)
    for shape in ((5, 3), (4, 2), (4, 4)):
        spec = sums(random_features(shape, 2, np.random.default_rng(0)), 5)
        with pytest.raises(InvalidParameter, match="match the ratings"):
            spec.exact(values)
