"""The fused pass: exact, the same everywhere, and never more sensitive than booked."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from taciturn import _core
from taciturn.accounting.events import Rows
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import FeatureGrid, ValueGrid
from taciturn.queries.prediction_errors import (
    LANES,
    NORM,
    RatedPairs,
    ResidualSums,
    Side,
    reach_max,
    value_levels,
)
from taciturn.queries.reference import reference_tables
from tests.solvers.helpers import random_ratings, replaced

GRID = ValueGrid.for_scale(1, 5, 64)


def sides(ratings: Ratings, width: int, seed: int = 0, length: float = 2.0) -> tuple[Side, Side]:
    random = np.random.default_rng(seed)
    return tuple(  # type: ignore[return-value]
        Side(
            random.normal(size=(count, width)) * length / math.sqrt(width),
            random.uniform(0.2, 1, size=count),
            random.uniform(1, 2.5, size=count),
        )
        for count in ratings.shape
    )


def sums(ratings: Ratings, users: Side, items: Side, **options: object) -> ResidualSums:
    facts = {"purpose": "test", "pairs": RatedPairs(ratings), "users": users, "items": items}
    return ResidualSums(**(facts | {"values": GRID} | options))  # type: ignore[arg-type]


@settings(max_examples=60)
@given(
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(1, 170),
    st.integers(0, 3),
    st.none() | st.integers(1, 100),
    st.booleans(),
)
@example(1, 3, 40, 33, 1, None, False)
@example(2, 40, 3, 128, 0, 1, False)
@example(3, 30, 30, 129, 2, 7, False)
@example(4, 30, 30, 64, 1, 7, True)
def test_the_pass_matches_the_reference(
    seed: int, users: int, items: int, width: int, first: int, limit: int | None, portable: bool
) -> None:
    first = min(first, width)
    ratings = random_ratings(seed, users, items, density=0.6)
    both = sides(ratings, width, seed)
    measurement = sums(ratings, *both, first=first, limit=limit, portable=portable)
    tables = measurement.tables(RatedPairs(ratings).values(ratings, GRID), threads=2)
    expected = reference_tables(ratings, *both, GRID, first=first, reach=0.5, limit=limit)
    assert np.array_equal(tables.users, expected.users)
    assert np.array_equal(tables.items, expected.items)
    assert tables.squares == expected.squares


@pytest.mark.parametrize("length", [2.0, 6.0, 12.0, 1000.0])
@pytest.mark.parametrize("limit", [None, 5, 300])
@pytest.mark.parametrize("portable", [False, True])
def test_residuals_far_beyond_the_scale_are_exact_too(
    length: float, limit: int | None, portable: bool
) -> None:
    """Few, most or all residuals are too large for the usual sums, or cut."""
    ratings = random_ratings(3, 70, 50, density=0.7)
    both = sides(ratings, 20, 5, length)
    reach = reach_max(GRID)
    measurement = sums(ratings, *both, reach=reach, limit=limit, portable=portable)
    tables = measurement.tables(RatedPairs(ratings).values(ratings, GRID), threads=2)
    expected = reference_tables(ratings, *both, GRID, first=0, reach=reach, limit=limit)
    assert np.array_equal(tables.users, expected.users)
    assert np.array_equal(tables.items, expected.items)
    assert tables.squares == expected.squares


@pytest.mark.parametrize("bounds", [(1, 5), (-4, 4), (100000, 100004)])
@pytest.mark.parametrize("levels", [64, 128, 4096, 16384])
def test_the_farthest_reach_is_allowed_and_no_more(bounds: tuple[int, int], levels: int) -> None:
    ratings = random_ratings(0)
    grid = ValueGrid.for_scale(*bounds, levels)
    both = sides(ratings, 3)
    try:
        sums(ratings, *both, values=grid, reach=0)
    except InvalidParameter:
        return  # too far from zero for any
    sums(ratings, *both, values=grid, reach=reach_max(grid))
    with pytest.raises(InvalidParameter):
        sums(ratings, *both, values=grid, reach=reach_max(grid) + 1)


@pytest.mark.parametrize("shape", [(900, 60), (60, 900)])
@pytest.mark.parametrize("width", [5, 16, 20, 23, 31, 40, 50, 56, 84, 128, 200])
def test_threads_and_instructions_change_nothing(shape: tuple[int, int], width: int) -> None:
    ratings = random_ratings(4, *shape)
    both, values = sides(ratings, width), RatedPairs(ratings).values(ratings, GRID)
    one = sums(ratings, *both).tables(values, threads=1)
    for threads, portable in [(2, False), (7, False), (1, True), (3, True)]:
        other = sums(ratings, *both, portable=portable).tables(values, threads=threads)
        assert np.array_equal(one.users, other.users) and np.array_equal(one.items, other.items)
        assert one.squares == other.squares


@pytest.mark.parametrize("levels", [64, 8192])
@pytest.mark.parametrize("shape", [(3000, 2), (2, 3000), (60, 50), (2000, 1900)])
def test_long_rows_at_the_extremes_do_not_overflow(shape: tuple[int, int], levels: int) -> None:
    """Every feature row as long as it can be, every residual as large: 32 bits would not do."""
    ratings = random_ratings(0, *shape, density=1.0)
    grid = ValueGrid.for_scale(1, 5, levels)
    both = [
        Side(np.ones((count, 1)), np.ones(count), np.full(count, 100.0)) for count in ratings.shape
    ]
    measurement = sums(ratings, *both, values=grid)
    values = np.full(len(ratings), -(2**31), dtype=np.int32)
    tables = measurement.tables(values)
    largest = math.ceil(grid.range * 1.5)
    assert (tables.users == ratings.shape[1] * largest * NORM).all()
    assert (tables.items == ratings.shape[0] * largest * NORM).all()
    assert tables.squares == len(ratings) * largest**2
    magnitudes = [query.magnitude for query in measurement.queries]
    assert magnitudes == [abs(tables.users).max(), abs(tables.items).max()]


@settings(max_examples=60)
@given(st.data(), st.integers(0, 2**32), st.integers(1, 40), st.none() | st.integers(1, 100))
def test_one_value_never_moves_more_than_booked(
    data: st.DataObject, seed: int, width: int, limit: int | None
) -> None:
    """Neighbours under `value`: one entry takes any 32-bit integer, on the grid or not."""
    ratings = random_ratings(seed % 11, users=8, items=6)
    both = sides(ratings, width, seed, length=3.0)
    measurement = sums(ratings, *both, limit=limit, has_squares=True)
    values = RatedPairs(ratings).values(ratings, GRID)
    anything = st.integers(-(2**31), 2**31 - 1) | st.integers(GRID.lowest, GRID.highest)
    entry = data.draw(st.integers(0, values.size - 1))
    other = values.copy()
    values[entry], other[entry] = data.draw(anything), data.draw(anything)
    for query, one, two in zip(
        measurement.queries, measurement.exact(values), measurement.exact(other), strict=True
    ):
        change = one - two
        square = sum(int(part) ** 2 for part in change.reshape(-1))
        assert square <= int(query.sensitivity) ** 2
        assert np.count_nonzero(change) <= query.coordinates
        assert np.count_nonzero(change.any(axis=1)) <= 1


def test_the_worst_case_reaches_the_bound() -> None:
    ratings = random_ratings(1, users=5, items=4)
    both = [Side(np.eye(count, 7) * 9, np.ones(count), np.zeros(count)) for count in ratings.shape]
    measurement = sums(ratings, *both)
    low, high = (replaced(ratings, 3, value) for value in (1.0, 5.0))
    pairs = RatedPairs(ratings)
    changes = [
        (a - b)
        for a, b in zip(
            measurement.exact(pairs.values(low, GRID)),
            measurement.exact(pairs.values(high, GRID)),
            strict=True,
        )
    ]
    for query, change in zip(measurement.queries, changes, strict=True):
        assert np.linalg.norm(change.astype(float)) == query.sensitivity
    assert [query.rows for query in measurement.queries] == [Rows.USERS, Rows.ITEMS]


@given(
    st.integers(0, 2**32),
    st.integers(1, 70),
    st.sampled_from([1e-9, 1e-3, 1.0, 7.0, 1e9, 1e160]),
    st.booleans(),
)
def test_packed_rows_keep_their_norm(seed: int, width: int, size: float, portable: bool) -> None:
    random = np.random.default_rng(seed)
    rows = random.normal(size=(20, width)) * size
    shrink = random.uniform(0.1, 3, size=20)
    out = np.ones((20, -(-width // LANES) * LANES), dtype=np.int16)
    _core.pack_rows(rows, shrink, out, 0, 20, portable)
    grid = FeatureGrid(bits=NORM.bit_length() - 1)
    assert grid.bound == NORM and grid.fits(out.astype(np.int32)).all()
    assert not out[:, width:].any()
    # The same as the features' grid makes of them, but for the last bit of a norm.
    expected = grid.quantise(rows * shrink[:, None])
    assert abs(out[:, :width] - expected).max() <= 1
    other = np.empty_like(out)
    _core.pack_rows(rows, shrink, other, 0, 20, not portable)
    assert np.array_equal(out, other)


def test_a_row_just_too_long_is_rounded_towards_zero() -> None:
    rows = np.full((1, 3), 1 / math.sqrt(3))
    out = np.empty((1, LANES), dtype=np.int16)
    for portable in (False, True):
        _core.pack_rows(rows, np.ones(1), out, 0, 1, portable)
        assert (out[0, :3] == math.floor(NORM / math.sqrt(3))).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_profiles_that_are_not_finite_are_refused(bad: float) -> None:
    rows = np.ones((3, 2))
    for place in [(0, 0), (2, 1)]:
        broken = rows.copy()
        broken[place] = bad
        with pytest.raises(InvalidParameter, match="finite"):
            Side(broken, np.ones(3), np.zeros(3))
    with pytest.raises(InvalidParameter, match="finite"):
        Side(rows, np.full(3, bad), np.zeros(3))
    with pytest.raises(InvalidParameter, match="finite"):
        Side(rows, np.ones(3), np.full(3, bad))


def test_what_does_not_fit_is_refused() -> None:
    ratings = random_ratings()
    users, items = sides(ratings, 4)
    with pytest.raises(InvalidParameter, match="fit the pairs"):
        sums(ratings, items, users)
    with pytest.raises(InvalidParameter, match="15 bits"):
        sums(ratings, users, items, values=ValueGrid.for_scale(1, 5, 30000))
    with pytest.raises(InvalidParameter, match="too far from zero"):
        sums(ratings, users, items, values=ValueGrid(exponent=0, lowest=2**30, highest=2**30 + 9))
    with pytest.raises(InvalidParameter, match="32-bit"):
        sums(ratings, users, items).exact(np.zeros(3, dtype=np.int32))
    with pytest.raises(InvalidParameter, match="other pairs"):
        RatedPairs(ratings).values(random_ratings(9), GRID)
    with pytest.raises(InvalidParameter, match="columns"):
        Side(np.ones((3, 0)), np.ones(3), np.zeros(3))
    with pytest.raises(InvalidParameter, match="one base"):
        Side(np.ones((3, 2)), np.ones(2), np.zeros(3))


def call_kernel(
    ratings: Ratings, both: tuple[Side, Side], columns: Any, width: int, portable: bool = False
) -> None:
    """Call the kernel itself, which has to guard its memory."""
    pairs, (users, items) = RatedPairs(ratings), both
    _core.residual_sums(
        pairs.starts,
        columns,
        pairs.values(ratings, GRID),
        (GRID.lowest, GRID.highest),
        (GRID.lowest, GRID.highest),
        0,
        GRID.range,
        users.packed,
        users.lines(1, 1),
        items.packed,
        items.lines(1, 1),
        np.empty((ratings.shape[0], width), dtype=np.int64),
        np.zeros((ratings.shape[1], width), dtype=np.int64),
        np.empty(ratings.shape[0], dtype=np.int64),
        0,
        ratings.shape[0],
        portable=portable,
    )


@pytest.mark.parametrize("width", [5, 18, 40, 130, 150])
def test_padding_that_is_not_zero_goes_nowhere(width: int) -> None:
    ratings = random_ratings(3, users=30, items=20)
    pairs, (users, items) = RatedPairs(ratings), sides(ratings, width)
    longer, shorter = (users, items) if pairs.by_user else (items, users)
    padded = longer.packed.copy()
    padded[:, width:] = 7
    found = []
    for portable in (False, True):
        around = np.zeros((len(shorter.base) + 4, width), dtype=np.int64)
        _core.residual_sums(
            pairs.starts,
            pairs.columns,
            pairs.values(ratings, GRID),
            (GRID.lowest, GRID.highest),
            (GRID.lowest, GRID.highest),
            0,
            GRID.range,
            padded,
            longer.lines(1, 1),
            shorter.packed,
            shorter.lines(1, 1),
            np.empty((len(longer.base), width), dtype=np.int64),
            around[: len(shorter.base)],
            np.empty(len(longer.base), dtype=np.int64),
            0,
            len(longer.base),
            portable=portable,
        )
        found.append(around)
    assert found[0].any() and np.array_equal(found[0], found[1])
    assert not found[0][len(shorter.base) :].any()


@pytest.mark.parametrize("portable", [False, True])
def test_columns_out_of_range_are_refused_by_the_kernel(portable: bool) -> None:
    ratings = random_ratings()
    for bad in (-1, ratings.shape[1]):
        columns = RatedPairs(ratings).columns.copy()
        columns[5] = bad
        with pytest.raises(IndexError, match="no features"):
            call_kernel(ratings, sides(ratings, 4), columns, 4, portable)


def test_the_kernel_refuses_a_stride_that_is_too_long() -> None:
    ratings = random_ratings()
    with pytest.raises(ValueError, match="width"):
        call_kernel(ratings, sides(ratings, 40), RatedPairs(ratings).columns, 20)


@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.999, 1.0, 3.7, 10.0])
def test_the_value_grid_is_fine_enough_for_the_noise(ratio: float) -> None:
    levels = value_levels(ratio, 64)
    grid = ValueGrid.for_scale(1, 5, levels)
    assert levels >= 64
    assert grid.range * NORM >= 2 * ratio * _core.SIGMA_MIN
    assert math.ceil(grid.range * 1.5) <= _core.RESIDUAL_MAX
