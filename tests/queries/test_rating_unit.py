"""Tables under unit `rating`: one rating more or less never moves them more than booked."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import ValueGrid
from taciturn.mechanisms.query import JointMeasurement
from taciturn.queries.prediction_errors import (
    COUNT_BITS,
    NORM,
    RatedPairs,
    RatingTotals,
    ResidualSums,
    Side,
    scaled_powers,
)
from tests.solvers.helpers import random_ratings

GRIDS = [ValueGrid.for_scale(*ends, 64) for ends in ((1, 5), (-4, 3), (-9, -1), (-2, 2))]
GRID = GRIDS[0]

Values = npt.NDArray[np.int32]
World = tuple[JointMeasurement, Values]
"""A measurement of a data set, and the values it is taken of."""

anything = st.integers(-(2**31), 2**31 - 1)


def squared_ratios(one: World, other: World) -> list[Fraction]:
    """Return for each table the square of its change over that of its sensitivity, exactly."""
    return [
        Fraction(sum(int(part) ** 2 for part in (first - second).flat))
        / Fraction(query.sensitivity) ** 2
        for query, first, second in zip(
            one[0].queries, one[0].exact(one[1]), other[0].exact(other[1]), strict=True
        )
    ]


def largest_ratio(one: World, other: World) -> Fraction:
    """Return the largest of the tables' squared ratios; above 1 the bound is violated."""
    return max(squared_ratios(one, other))


def assert_bounded(one: World, other: World) -> None:
    """Check everything that queries promise of two neighbours, and that they tell nothing."""
    assert one[0].queries == other[0].queries
    assert largest_ratio(one, other) <= 1
    tables = one[0].exact(one[1]), other[0].exact(other[1])
    for query, first, second in zip(one[0].queries, *tables, strict=True):
        assert first.shape == second.shape == query.shape
        assert first.dtype == second.dtype == np.int64
        assert np.count_nonzero(first - second) <= query.coordinates
        assert max(abs(first).max(), abs(second).max()) <= query.magnitude


class LongSide(Side):
    """A planted error: features are as long as the rows, neither divided nor cut."""

    def __init__(
        self,
        rows: npt.NDArray[np.float64],
        shrink: npt.NDArray[np.float64],
        base: npt.NDArray[np.float64],
    ) -> None:
        super().__init__(rows, shrink, base)
        self.packed = self.packed.copy()
        self.packed[:, : self.width] = np.clip(np.rint(rows * NORM), -32767, 32767)


def random_sides(shape: tuple[int, int], width: int, random: np.random.Generator) -> list[Side]:
    return [
        Side(
            random.normal(size=(count, width)) * 3 / math.sqrt(width),
            random.uniform(0.1, 2, size=count),
            random.uniform(-4, 4, size=count),
        )
        for count in shape
    ]


def sums(
    pairs: RatedPairs, both: list[Side], limit: int | None = None, **options: Any
) -> ResidualSums:
    users, items = both
    facts: dict[str, Any] = {"values": GRID, "unit": Unit.RATING, "has_squares": True} | options
    return ResidualSums(purpose="test", pairs=pairs, users=users, items=items, limit=limit, **facts)


def in_order(pairs: RatedPairs, table: Values) -> Values:
    """Return the values of the rated pairs out of a table of all."""
    rows = np.repeat(np.arange(pairs.starts.size - 1), np.diff(pairs.starts))
    return table[rows, pairs.columns] if pairs.by_user else table[pairs.columns, rows]


def everybody(users: int, items: int) -> Ratings:
    return random_ratings(0, users, items, density=1.0)


shapes = st.tuples(st.integers(1, 6), st.integers(1, 6))


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[RatedPairs, RatedPairs, ValueGrid, Values]:
    """Draw who rated what with and without one rating, and a value for every pair.

    Values are on the grid or not; users, items and all may be without ratings.
    """
    shape, grid = draw(shapes), draw(st.sampled_from(GRIDS))
    count = math.prod(shape)
    keep = np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    place = draw(st.integers(0, count - 1))
    ratings, without = everybody(*shape), keep.copy()
    keep[place], without[place] = True, False
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    table = random.integers(grid.lowest - 30, grid.highest + 30, shape).astype(np.int32)
    table[divmod(place, shape[1])] = draw(anything | st.integers(grid.lowest, grid.highest))
    return RatedPairs(ratings.select(keep)), RatedPairs(ratings.select(without)), grid, table


@settings(max_examples=80)
@given(
    neighbours(),
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.none() | st.integers(1, 100),
    st.integers(0, 1),
    st.booleans(),
)
def test_one_rating_never_moves_sums_more_than_booked(
    both: tuple[RatedPairs, RatedPairs, ValueGrid, Values],
    seed: int,
    width: int,
    limit: int | None,
    first: int,
    portable: bool,
) -> None:
    *pairs, grid, table = both
    sides = random_sides(pairs[0].shape, width, np.random.default_rng(seed))
    one, other = (
        (
            sums(each, sides, limit, first=first, values=grid, portable=portable),
            in_order(each, table),
        )
        for each in pairs
    )
    assert_bounded(one, other)
    for with_it, without in zip(one[0].exact(one[1]), other[0].exact(other[1]), strict=True):
        assert np.count_nonzero((with_it - without).any(axis=1)) <= 1


@settings(max_examples=80)
@given(neighbours())
def test_one_rating_never_moves_totals_more_than_booked(
    both: tuple[RatedPairs, RatedPairs, ValueGrid, Values],
) -> None:
    *pairs, grid, table = both
    one, other = ((RatingTotals(each, grid), in_order(each, table)) for each in pairs)
    assert_bounded(one, other)
    users, items, totals = one[0].exact(one[1])
    assert users.sum() == items.sum() == one[1].size << COUNT_BITS
    largest = max(abs(grid.lowest), abs(grid.highest))
    parts = np.clip(one[1], grid.lowest, grid.highest) / largest
    exact = totals[0] / 2.0**COUNT_BITS
    # Each term is rounded by less than a step, a square by less than three.
    assert np.abs(exact - [parts.sum(), (parts**2).sum()]).max() <= 3 * parts.size / 2**COUNT_BITS


def test_values_in_parts_of_the_largest() -> None:
    for grid in GRIDS:
        ends = np.array([-(2**31), grid.lowest, 0, grid.highest, 2**31 - 1], dtype=np.int32)
        first, second = scaled_powers(ends, grid)
        one = 1 << COUNT_BITS
        assert abs(first).max() == second.max() == one and second.min() >= 0
        assert first[0] == first[1] and first[3] == first[4]
        assert np.array_equal(np.sign(first), np.sign(np.clip(ends, grid.lowest, grid.highest)))


def worst_worlds(
    limit: int | None, shape: tuple[int, int] = (4, 3), side: type[Side] = Side
) -> tuple[World, World]:
    """Return worlds with and without a rating far from its prediction, features at their longest.

    Predictions are the lowest there are, the value is the highest.
    """
    ratings = everybody(*shape)
    both = [side(np.eye(count, 7) * 1.5, np.ones(count), np.full(count, -99.0)) for count in shape]
    keep = np.arange(len(ratings)) != 5
    worlds = []
    for some in (ratings, ratings.select(keep)):
        pairs = RatedPairs(some)
        values = np.full(len(some), 2**31 - 1, dtype=np.int32)
        worlds.append((sums(pairs, both, limit), values))
    return worlds[0], worlds[1]


@pytest.mark.parametrize("shape", [(4, 3), (3, 4)])
@pytest.mark.parametrize("limit", [None, 1, 50])
def test_the_worst_case_reaches_the_bounds(limit: int | None, shape: tuple[int, int]) -> None:
    one, other = worst_worlds(limit, shape)
    assert squared_ratios(one, other) == [1, 1, 1]
    assert_bounded(one, other)


@pytest.mark.parametrize("grid", GRIDS)
def test_the_worst_case_reaches_the_bounds_of_totals(grid: ValueGrid) -> None:
    ratings = everybody(4, 3)
    end = max(grid.lowest, grid.highest, key=abs)
    one, other = (
        (RatingTotals(RatedPairs(some), grid), np.full(len(some), end, dtype=np.int32))
        for some in (ratings, ratings.select(np.arange(12) != 5))
    )
    users, items, totals = squared_ratios(one, other)
    # The last is √2, rounded up.
    assert users == items == 1 and 1 - 1e-14 < totals <= 1


def test_a_limit_that_is_not_applied_is_caught() -> None:
    one, other = worst_worlds(20)
    for measurement, _ in (one, other):
        measurement._pass.limit = 21  # type: ignore[attr-defined]
    assert min(squared_ratios(one, other)) > 1


def test_features_that_are_too_long_are_caught() -> None:
    users, items, squares = squared_ratios(*worst_worlds(20, side=LongSide))
    assert users == items == Fraction(9, 4) and squares == 1


def test_weighted_features_predict_the_same() -> None:
    """Features become shorter, never longer; predictions change by rounding only."""
    random = np.random.default_rng(0)
    ratings = everybody(9, 7)
    users, items = random_sides(ratings.shape, 5, random)
    weights = random.integers(1 << 22, (1 << 26) + 1, 9)
    short = users.weighted(weights, 26)
    exact = users.packed * weights[:, None] / 2**26
    assert np.array_equal(short.packed, np.trunc(exact))
    assert not short.packed.flags.writeable and np.array_equal(short.base, users.base)
    pairs = RatedPairs(ratings)
    values = pairs.values(ratings, GRID)
    one, other = (sums(pairs, [each, items]).tables(values).users for each in (users, short))
    # Items' features do not change, so that only residuals can: by a step at most.
    assert np.abs(one - other).max() <= ratings.shape[1] * NORM
    nobody = users.weighted(np.zeros(9, dtype=np.int64), 26)
    assert not nobody.packed.any() and np.isfinite(nobody.lines(1, 1)).all()


@pytest.mark.parametrize("shape", [(300, 40), (40, 300)])
def test_threads_and_instructions_change_nothing(shape: tuple[int, int]) -> None:
    ratings = random_ratings(4, *shape)
    pairs, both = RatedPairs(ratings), random_sides(shape, 33, np.random.default_rng(1))
    values = pairs.values(ratings, GRID)
    totals = RatingTotals(pairs, GRID)
    for portable in (False, True):
        for threads in (1, 2, 5):
            measured = sums(pairs, both, 30, portable=portable).exact(values, threads)
            for one, two in zip(sums(pairs, both, 30).exact(values, 1), measured, strict=True):
                assert np.array_equal(one, two)
            for one, two in zip(totals.exact(values), totals.exact(values, threads), strict=True):
                assert np.array_equal(one, two)


def test_bad_input_is_refused() -> None:
    ratings = everybody(4, 3)
    pairs, both = RatedPairs(ratings), random_sides((4, 3), 2, np.random.default_rng(0))
    for limit in (0, -3, 1.5, True):
        with pytest.raises(InvalidParameter, match="limit"):
            sums(pairs, both, limit)  # type: ignore[arg-type]
    values = pairs.values(ratings, GRID)
    wrong: list[Any] = [values[1:], values.astype(np.int64), values.astype(np.float32)]
    for bad in wrong:
        with pytest.raises(InvalidParameter, match="32-bit"):
            sums(pairs, both, 5).exact(bad)
        with pytest.raises(InvalidParameter, match="32-bit"):
            RatingTotals(pairs, GRID).exact(bad)
    with pytest.raises(InvalidParameter, match="PersonSums"):
        sums(pairs, both, 5, unit=Unit.USER)
    with pytest.raises(InvalidParameter, match="fit the pairs"):
        sums(pairs, both[::-1], 5)
