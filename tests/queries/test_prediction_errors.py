"""The fused pass is exact, does not depend on threads or instructions, and keeps its bound."""

import math
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from taciturn import _core
from taciturn.accounting.events import Rows
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import FeatureGrid, ValueGrid
from taciturn.queries.error_pass import ErrorPass, margin_max, value_levels
from taciturn.queries.features import LANES, NORM, AxisFeatures
from taciturn.queries.prediction_errors import PredictionErrorSums
from taciturn.queries.reference import reference_tables
from taciturn.queries.values import GridValues, ValueView, on_grid
from tests.instruction_sets import every_set, on_every_set
from tests.queries.helpers import Both, constant_values, pass_view, random_features, values_of
from tests.solvers.helpers import random_ratings, replaced

GRID = ValueGrid.for_scale(1, 5, 64)


def sums(
    ratings: Ratings,
    users: AxisFeatures,
    items: AxisFeatures,
    *,
    grid: ValueGrid = GRID,
    **options: Any,
) -> PredictionErrorSums:
    return PredictionErrorSums(
        purpose="test",
        errors=ErrorPass(pass_view(ratings, grid), **options),
        users=users,
        items=items,
        pattern=ratings.pattern,
    )


def pass_values(ratings: Ratings) -> GridValues:
    return on_grid(ratings, pass_view(ratings, GRID))


@settings(max_examples=60)
@given(
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(1, 170),
    st.integers(0, 3),
    st.none() | st.integers(1, 100),
)
@example(1, 3, 40, 33, 1, None)
@example(2, 40, 3, 128, 0, 1)
@example(3, 30, 30, 129, 2, 7)
@example(4, 30, 30, 64, 1, 7)
def test_the_pass_matches_the_reference(
    seed: int, users: int, items: int, width: int, first: int, threshold: int | None
) -> None:
    first = min(first, width)
    ratings = random_ratings(seed, users, items, density=0.6)
    both = random_features(ratings, width, seed)
    spec = sums(ratings, *both, first=first, threshold=threshold)
    every = on_every_set(lambda: spec.tables(pass_values(ratings), threads=2))
    expected = reference_tables(ratings, *both, GRID, first=first, margin=0.5, threshold=threshold)
    for name, tables in every.items():
        assert np.array_equal(tables.users, expected.users), name
        assert np.array_equal(tables.items, expected.items), name
        assert tables.squares == expected.squares, name


@every_set
@pytest.mark.parametrize("length", [2.0, 6.0, 12.0, 1000.0])
@pytest.mark.parametrize("threshold", [None, 5, 300])
def test_errors_far_beyond_the_scale_are_exact(length: float, threshold: int | None) -> None:
    """Few, most or all errors are too large for the usual sums, or clipped."""
    ratings = random_ratings(3, 70, 50, density=0.7)
    both = random_features(ratings, 20, 5, length)
    margin = margin_max(GRID)
    spec = sums(ratings, *both, margin=margin, threshold=threshold)
    tables = spec.tables(pass_values(ratings), threads=2)
    expected = reference_tables(ratings, *both, GRID, first=0, margin=margin, threshold=threshold)
    assert np.array_equal(tables.users, expected.users)
    assert np.array_equal(tables.items, expected.items)
    assert tables.squares == expected.squares


@pytest.mark.parametrize("bounds", [(1, 5), (-4, 4), (100000, 100004)])
@pytest.mark.parametrize("levels", [64, 128, 4096, 16384])
def test_the_largest_margin_is_allowed_and_no_more(bounds: tuple[int, int], levels: int) -> None:
    grid = ValueGrid.for_scale(*bounds, levels)
    view = ValueView(grid=grid, axis=Axis.USERS)
    try:
        ErrorPass(view, margin=0)
    except InvalidParameter:
        return  # too far from zero for any
    ErrorPass(view, margin=margin_max(grid))
    with pytest.raises(InvalidParameter):
        ErrorPass(view, margin=margin_max(grid) + 1)


@pytest.mark.parametrize("shape", [(900, 60), (60, 900)])
@pytest.mark.parametrize("width", [5, 16, 20, 23, 31, 40, 50, 56, 84, 128, 200])
def test_threads_and_instructions_change_nothing(shape: tuple[int, int], width: int) -> None:
    ratings = random_ratings(4, *shape)
    both, values = random_features(ratings, width), pass_values(ratings)
    spec = sums(ratings, *both)
    one = spec.tables(values, threads=1)
    for threads in (1, 2, 3, 7):
        for other in on_every_set(partial(spec.tables, values, threads=threads)).values():
            assert np.array_equal(one.users, other.users) and np.array_equal(one.items, other.items)
            assert one.squares == other.squares


@every_set
@pytest.mark.parametrize("levels", [64, 8192])
@pytest.mark.parametrize("shape", [(3000, 2), (2, 3000), (60, 50), (2000, 1900)])
def test_long_rows_at_the_extremes_do_not_overflow(shape: tuple[int, int], levels: int) -> None:
    """Longest feature rows and largest errors: sums exceed 32 bits."""
    ratings = random_ratings(0, *shape, density=1.0)
    grid = ValueGrid.for_scale(1, 5, levels)
    both = [
        AxisFeatures(np.ones((count, 1)), np.ones(count), np.full(count, 100.0))
        for count in ratings.shape
    ]
    spec = sums(ratings, *both, grid=grid)
    tables = spec.tables(constant_values(ratings, spec.view, -(2**31)))
    largest = math.ceil(grid.range * 1.5)
    assert (tables.users == ratings.shape[1] * largest * NORM).all()
    assert (tables.items == ratings.shape[0] * largest * NORM).all()
    assert tables.squares == len(ratings) * largest**2
    magnitudes = [query.magnitude for query in spec.queries]
    assert magnitudes == [abs(tables.users).max(), abs(tables.items).max()]


@settings(max_examples=60)
@given(st.data(), st.integers(0, 2**32), st.integers(1, 40), st.none() | st.integers(1, 100))
def test_one_value_never_moves_more_than_recorded(
    data: st.DataObject, seed: int, width: int, threshold: int | None
) -> None:
    """Neighbours under `value`: one entry takes any 32-bit integer, on the grid or not."""
    ratings = random_ratings(seed % 11, users=8, items=6)
    both = random_features(ratings, width, seed, length=3.0)
    spec = sums(ratings, *both, threshold=threshold)
    steps = pass_values(ratings).steps.copy()
    anything = st.integers(-(2**31), 2**31 - 1) | st.integers(GRID.lowest, GRID.highest)
    entry = data.draw(st.integers(0, steps.size - 1))
    other = steps.copy()
    steps[entry], other[entry] = data.draw(anything), data.draw(anything)
    tables = [spec.exact(values_of(ratings, spec.view, each)).tables for each in (steps, other)]
    for query, one, two in zip(spec.queries, *tables, strict=True):
        change = one - two
        square = sum(int(part) ** 2 for part in change.reshape(-1))
        assert square <= int(query.sensitivity) ** 2
        assert np.count_nonzero(change) <= query.coordinates
        assert np.count_nonzero(change.any(axis=1)) <= 1


def test_the_worst_case_attains_the_bound() -> None:
    ratings = random_ratings(1, users=5, items=4)
    both = [
        AxisFeatures(np.eye(count, 7) * 9, np.ones(count), np.zeros(count))
        for count in ratings.shape
    ]
    spec = sums(ratings, *both)
    low, high = (
        spec.exact(pass_values(replaced(ratings, 3, value))).tables for value in (1.0, 5.0)
    )
    for query, one, two in zip(spec.queries, low, high, strict=True):
        assert np.linalg.norm((one - two).astype(float)) == query.sensitivity
        assert query.unit is Unit.VALUE
    assert [query.rows for query in spec.queries] == [Rows.USERS, Rows.ITEMS]


@pytest.mark.parametrize("threshold", [1, 20, 40])
def test_the_worst_case_attains_the_bound_of_clipped_errors(threshold: int) -> None:
    """From the lowest to the highest value, with the prediction in the middle."""
    ratings = random_ratings(1, users=5, items=4)
    middle = (GRID.lowest + GRID.highest) / 2 * 2.0**GRID.exponent
    users, items = (
        AxisFeatures(np.ones((count, 1)), np.ones(count), np.full(count, base))
        for count, base in zip(ratings.shape, (middle, 0.0), strict=True)
    )
    spec = sums(ratings, users, items, first=1, threshold=threshold)
    low, high = (
        spec.exact(pass_values(replaced(ratings, 3, value))).tables for value in (1.0, 5.0)
    )
    moved = [np.linalg.norm(one - two) for one, two in zip(low, high, strict=True)]
    bound = min(2 * threshold, GRID.range) * NORM
    assert moved == [query.sensitivity for query in spec.queries] == [bound, bound]


@given(
    st.integers(0, 2**32),
    st.integers(1, 70),
    st.sampled_from([1e-9, 1e-3, 1.0, 7.0, 1e9, 1e160]),
)
def test_packed_rows_keep_their_norm(seed: int, width: int, size: float) -> None:
    random = np.random.default_rng(seed)
    rows = random.normal(size=(20, width)) * size
    shrink = random.uniform(0.1, 3, size=20)

    def pack() -> npt.NDArray[np.int16]:
        out = np.ones((20, -(-width // LANES) * LANES), dtype=np.int16)
        _core.pack_rows(rows, shrink, out, 0, 20)
        return out

    every = on_every_set(pack)
    out = every["portable"]
    grid = FeatureGrid(bits=NORM.bit_length() - 1)
    assert grid.bound == NORM and grid.fits(out.astype(np.int32)).all()
    assert not out[:, width:].any()
    # Equal to the rounding of the feature grid, except for the last bit of a norm.
    expected = grid.quantise(rows * shrink[:, None])
    assert abs(out[:, :width] - expected).max() <= 1
    assert all(np.array_equal(out, other) for other in every.values())


@every_set
def test_a_row_just_too_long_is_rounded_towards_zero() -> None:
    rows = np.full((1, 3), 1 / math.sqrt(3))
    out = np.empty((1, LANES), dtype=np.int16)
    _core.pack_rows(rows, np.ones(1), out, 0, 1)
    assert (out[0, :3] == math.floor(NORM / math.sqrt(3))).all()


@every_set
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_profiles_that_are_not_finite_are_refused(bad: float) -> None:
    rows = np.ones((3, 2))
    for place in [(0, 0), (2, 1)]:
        broken = rows.copy()
        broken[place] = bad
        with pytest.raises(InvalidParameter, match="finite"):
            AxisFeatures(broken, np.ones(3), np.zeros(3))
    with pytest.raises(InvalidParameter, match="finite"):
        AxisFeatures(rows, np.full(3, bad), np.zeros(3))
    with pytest.raises(InvalidParameter, match="finite"):
        AxisFeatures(rows, np.ones(3), np.full(3, bad))


def test_features_that_do_not_fit_are_refused() -> None:
    ratings = random_ratings()
    users, items = random_features(ratings, 4)
    with pytest.raises(InvalidParameter, match="match the rating pattern"):
        sums(ratings, items, users)
    with pytest.raises(InvalidParameter, match="one width"):
        sums(ratings, users, random_features(ratings, 5)[1])
    with pytest.raises(InvalidParameter, match="columns"):
        AxisFeatures(np.ones((3, 0)), np.ones(3), np.zeros(3))
    with pytest.raises(InvalidParameter, match="one base"):
        AxisFeatures(np.ones((3, 2)), np.ones(2), np.zeros(3))


def test_grids_that_do_not_fit_are_refused() -> None:
    for grid, message in (
        (ValueGrid.for_scale(1, 5, 30000), "15 bits"),
        (ValueGrid(exponent=0, lowest=2**30, highest=2**30 + 9), "too far from zero"),
    ):
        with pytest.raises(InvalidParameter, match=message):
            ErrorPass(ValueView(grid=grid, axis=Axis.USERS))


def test_values_that_do_not_fit_are_refused() -> None:
    ratings = random_ratings()
    users, items = random_features(ratings, 4)
    spec = sums(ratings, users, items)
    spec.exact(pass_values(ratings))
    with pytest.raises(InvalidParameter, match="other pairs"):
        spec.exact(pass_values(random_ratings(9)))
    with pytest.raises(InvalidParameter, match="another grid"):
        spec.exact(on_grid(ratings, ValueView(grid=GRID, axis=spec.view.axis.other)))
    with pytest.raises(InvalidParameter, match="longer axis"):
        PredictionErrorSums(
            purpose="test",
            errors=ErrorPass(ValueView(grid=GRID, axis=Axis.ITEMS)),
            users=users,
            items=items,
            pattern=ratings.pattern,
        )


def call_kernel(
    ratings: Ratings,
    both: Both,
    *,
    columns: Any = None,
    packed: Any = None,
    values: tuple[int, int] = (GRID.lowest, GRID.highest),
    threshold: int = GRID.range,
    width: int,
) -> np.ndarray:
    """Sums by item from the kernel itself, followed by rows that it must not touch."""
    pattern, (users, items) = ratings.pattern.by_user, both
    around = np.zeros((len(items) + 4, width), dtype=np.int64)
    _core.error_sums(
        pattern.starts,
        pattern.columns if columns is None else columns,
        pass_values(ratings).steps,
        values,
        (GRID.lowest, GRID.highest),
        0,
        threshold,
        users.packed if packed is None else packed,
        users.lines(1, 1),
        items.packed,
        items.lines(1, 1),
        np.empty((len(users), width), dtype=np.int64),
        around[: len(items)],
        np.empty(len(users), dtype=np.int64),
        0,
        len(users),
    )
    return around


@pytest.mark.parametrize("width", [5, 18, 40, 130, 150])
def test_padding_that_is_not_zero_changes_no_sum(width: int) -> None:
    ratings = random_ratings(3, users=30, items=20)
    both = random_features(ratings, width)
    padded = both[0].packed.copy()
    padded[:, width:] = 7
    every = on_every_set(lambda: call_kernel(ratings, both, packed=padded, width=width))
    plain = call_kernel(ratings, both, width=width)
    assert plain.any() and not plain[ratings.shape[1] :].any()
    assert all(np.array_equal(plain, padded) for padded in every.values())


def test_the_widest_range_of_values_gives_the_same_sums_on_every_instruction_set() -> None:
    """Its width is 2^31, one more than 32 bits hold."""
    ratings = random_ratings()
    both = random_features(ratings, 4)
    every = on_every_set(
        lambda: call_kernel(ratings, both, values=(-(2**30), 2**30), threshold=300, width=4)
    )
    slow = every["portable"]
    assert slow.any() and all(np.array_equal(slow, other) for other in every.values())


@every_set
def test_columns_out_of_range_are_refused_by_the_kernel() -> None:
    ratings = random_ratings()
    for bad in (-1, ratings.shape[1]):
        columns = ratings.by_user.columns.copy()
        columns[5] = bad
        both = random_features(ratings, 4)
        with pytest.raises(IndexError, match="no features"):
            call_kernel(ratings, both, columns=columns, width=4)


@every_set
def test_the_kernel_refuses_a_stride_that_is_too_long() -> None:
    ratings = random_ratings()
    with pytest.raises(ValueError, match="width"):
        call_kernel(ratings, random_features(ratings, 40), width=20)


@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.999, 1.0, 3.7, 10.0])
def test_the_value_grid_is_fine_enough_for_the_noise(ratio: float) -> None:
    levels = value_levels(ratio, 64)
    grid = ValueGrid.for_scale(1, 5, levels)
    assert levels >= 64
    assert grid.range * NORM >= 2 * ratio * _core.SIGMA_MIN
    assert math.ceil(grid.range * 1.5) <= _core.ERROR_MAX
