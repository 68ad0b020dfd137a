"""Sums of value × feature are exact, do not depend on threads, and keep their bound."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from taciturn import _core
from taciturn.accounting.events import Rows
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis, Pattern
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import FeatureGrid, ValueGrid
from taciturn.mechanisms.query import MAGNITUDE_MAX, BoundedQuery
from taciturn.queries.values import GridValues
from taciturn.queries.weighted_sums import EveryRating, WeightedSums, grid_sums
from tests.instruction_sets import every_set, on_every_set
from tests.mechanisms.noise_helpers import (
    FEATURES,
    QUERY,
    VALUES,
    grid_values,
    pattern,
    random_values,
    view,
    weighted_sums,
)

anything = st.integers(-(2**31), 2**31 - 1) | st.integers(VALUES.lowest, VALUES.highest)


def exact(
    spec: WeightedSums | EveryRating, values: GridValues, threads: int | None = None
) -> npt.NDArray[np.int64]:
    answer = spec.exact(values, threads)
    assert answer.private is None
    (table,) = answer.tables
    return table


def reference(sums: WeightedSums, values: GridValues) -> npt.NDArray[np.int64]:
    """Multiply a sparse matrix of values with the features, in 64-bit integers."""
    rated = values.pattern
    entries = values.steps.astype(np.int64), rated.columns, rated.starts
    matrix = csr_array(entries, shape=(len(rated), rated.width))
    product: npt.NDArray[np.int64] = matrix @ sums._features.astype(np.int64)
    return product


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 40), st.integers(1, 12))
def test_sums_match_the_reference(seed: int, rows: int, columns: int, width: int) -> None:
    sums = weighted_sums(seed, rows, columns, width)
    values = random_values(sums, seed)
    assert np.array_equal(exact(sums, values), reference(sums, values))


def test_sums_do_not_depend_on_threads() -> None:
    sums = weighted_sums(3, rows=3000, columns=50, width=7)
    values = random_values(sums)
    one = exact(sums, values, threads=1)
    for threads in (2, 3, 8):
        assert np.array_equal(exact(sums, values, threads=threads), one)


def test_sums_of_public_values_are_not_clipped_between_wide_ends() -> None:
    random, rated, ends = np.random.default_rng(0), pattern(0, 40, 25), np.iinfo(np.int32)
    values = random.integers(-(2**20), 2**20, rated.entries).astype(np.int32)
    features = random.integers(-9, 9, (25, 3)).astype(np.int32)
    expected = np.zeros((40, 3), dtype=np.int64)
    products = values[:, None].astype(np.int64) * features[rated.columns]
    np.add.at(expected, rated.entry_rows(), products)
    for threads in (1, 2):
        found = grid_sums(rated, values, (ends.min, ends.max), features, threads)
        assert np.array_equal(found, expected)


@given(st.data(), st.integers(0, 2**32))
def test_one_value_never_moves_more_than_recorded(data: st.DataObject, seed: int) -> None:
    """Neighbours under `value`: one entry takes any 32-bit integer, on the grid or not."""
    sums = weighted_sums(seed % 7, rows=6, columns=8, width=data.draw(st.integers(1, 6)))
    (query,) = sums.queries
    steps = random_values(sums, seed).steps.copy()
    entry = data.draw(st.integers(0, steps.size - 1))
    steps[entry] = data.draw(anything)
    other = steps.copy()
    other[entry] = data.draw(anything)
    change = exact(sums, grid_values(sums, steps)) - exact(sums, grid_values(sums, other))
    square = sum(int(part) ** 2 for part in change.reshape(-1))
    assert square <= int(query.sensitivity) ** 2
    assert np.count_nonzero(change) <= query.coordinates
    assert np.count_nonzero(change.any(axis=1)) <= 1


@pytest.mark.parametrize("width", [1, 3, 20])
def test_the_worst_case_attains_the_bound(width: int) -> None:
    sums = WeightedSums(
        purpose="worst case",
        axis=Axis.USERS,
        pattern=Pattern(np.array([0, 1]), np.array([0]), 1),
        view=view(Axis.USERS),
        features=FEATURES.quantise(np.eye(1, width)),
        feature_grid=FEATURES,
    )
    (query,) = sums.queries
    low, high = (grid_values(sums, VALUES.quantise(np.array([end]))) for end in (1.0, 5.0))
    change = exact(sums, high) - exact(sums, low)
    assert np.linalg.norm(change) == query.sensitivity
    assert query.sensitivity * query.step == 4.0
    assert query.rows is Rows.USERS and query.unit is Unit.VALUE


@given(st.integers(0, 2**32))
def test_no_sum_exceeds_its_stated_magnitude(seed: int) -> None:
    sums = weighted_sums(seed, rows=5, columns=20, width=3)
    for end in (VALUES.lowest, VALUES.highest):
        values = grid_values(sums, np.full(sums._pattern.entries, end, dtype=np.int32))
        assert np.abs(exact(sums, values)).max() <= sums.queries[0].magnitude


def test_the_magnitude_follows_from_the_longest_row_and_the_larger_end() -> None:
    grid = ValueGrid.for_scale(-9, 1)
    sums = WeightedSums(
        purpose="uneven",
        axis=Axis.ITEMS,
        pattern=Pattern(np.array([0, 0, 7, 8]), np.array([0, 1, 2, 3, 4, 5, 6, 0]), 7),
        view=view(grid=grid),
        features=FEATURES.quantise(np.ones((7, 1))),
        feature_grid=FEATURES,
    )
    lowest = exact(sums, grid_values(sums, np.full(8, grid.lowest, dtype=np.int32)))
    largest = 7 * -grid.lowest * FEATURES.bound
    assert np.abs(lowest).max() == sums.queries[0].magnitude == largest


def test_features_and_pattern_cannot_be_changed_after_they_were_checked() -> None:
    rated = pattern(0, 4, 5)
    starts, columns = rated.starts.copy(), rated.columns.copy()
    features = FEATURES.quantise(np.ones((5, 2)))
    sums = broken(pattern=Pattern(starts, columns, 5), features=features)
    values = random_values(sums)
    before = exact(sums, values)
    features *= 1000
    columns += 1000
    starts += 1000
    assert np.array_equal(exact(sums, values), before)


@pytest.mark.parametrize("width", [1, 7, 8, 16, 21, 64])
def test_every_instruction_set_gives_the_same_sums(width: int) -> None:
    random = np.random.default_rng(width)
    rated = pattern(width, 30, 12)
    values = random.integers(-(2**20), 2**20, rated.entries, dtype=np.int32)
    features = random.integers(-(2**29), 2**29, (12, width), dtype=np.int32)

    def sums() -> npt.NDArray[np.int64]:
        out = np.empty((len(rated), width), dtype=np.int64)
        given = rated.starts, rated.columns, values, -(2**19), 2**19, features
        _core.grid_sums(*given, out, 0, len(rated))
        return out

    every = on_every_set(sums)
    slow = every["portable"]
    assert slow.any() and all(np.array_equal(slow, other) for other in every.values())


@every_set
def test_the_kernel_refuses_indices_beyond_its_tables() -> None:
    one = np.ones(1, dtype=np.int32)
    out = np.zeros((1, 1), dtype=np.int64)

    def call(starts: list[int], column: int, out: np.ndarray, end: int = 1) -> None:
        columns, features = one * column, np.ones((1, 1), dtype=np.int32)
        _core.grid_sums(np.array(starts), columns, one, 0, 1, features, out, 0, end)

    call([0, 1], 0, out)
    assert out[0, 0] == 1
    for starts, column, end in (([0, 2], 0, 1), ([-1, 1], 0, 1), ([1, 0], 0, 1), ([0, 1], 1, 1)):
        with pytest.raises((ValueError, IndexError)):
            call(starts, column, out, end)
    for starts, column, end in (([0, 1], -1, 1), ([0, 1], 0, 2)):
        with pytest.raises((ValueError, IndexError)):
            call(starts, column, out, end)
    for wrong in (out.astype(np.float64), out.astype(np.int32), out.astype(np.uint64)):
        with pytest.raises(TypeError):  # a converted copy would be filled in its place
            call([0, 1], 0, wrong)


def test_sums_that_could_overflow_are_refused() -> None:
    count = 2**15
    with pytest.raises(InvalidParameter, match="61 bits"):
        WeightedSums(
            purpose="too fine",
            axis=Axis.ITEMS,
            pattern=Pattern(np.array([0, count]), np.arange(count, dtype=np.int32), count),
            view=view(grid=ValueGrid(exponent=-28, lowest=0, highest=2**30)),
            features=np.zeros((count, 1), dtype=np.int32),
            feature_grid=FeatureGrid(bits=24),
        )
    assert replace(QUERY, magnitude=MAGNITUDE_MAX).magnitude == MAGNITUDE_MAX
    with pytest.raises(InvalidParameter):
        replace(QUERY, magnitude=MAGNITUDE_MAX + 1)


def broken(**change: Any) -> WeightedSums:
    facts: dict[str, Any] = {
        "purpose": "broken",
        "axis": Axis.ITEMS,
        "pattern": pattern(0, 4, 5),
        "view": view(),
        "features": FEATURES.quantise(np.ones((5, 2))),
        "feature_grid": FEATURES,
    }
    return WeightedSums(**(facts | change))


def test_bad_features_and_orders_are_refused() -> None:
    assert broken().queries[0].shape == (4, 2)
    for change in (
        {"features": np.full((5, 2), FEATURES.bound, dtype=np.int32)},
        {"features": np.zeros(5, dtype=np.int32)},
        {"features": np.full((5, 2), 0.9)},
        {"features": FEATURES.quantise(np.ones((4, 2)))},
        {"features": FEATURES.quantise(np.ones((6, 2)))},
        {"pattern": Pattern(np.array([0]), np.empty(0, dtype=np.int32), 5)},
        {"axis": Axis.USERS},
        {"view": view(Axis.USERS)},
        {"purpose": ""},
    ):
        with pytest.raises(InvalidParameter):
            broken(**change)


def test_values_of_other_views_and_patterns_are_refused() -> None:
    sums = weighted_sums()
    values = random_values(sums)
    for change in (
        {"view": view(Axis.USERS)},
        {"view": view(grid=ValueGrid.for_scale(1, 5, 512))},
        {"pattern": Pattern(values.pattern.starts, values.pattern.columns, 31)},
    ):
        facts: dict[str, Any] = {
            "view": values.view,
            "pattern": values.pattern,
            "steps": values.steps,
        }
        with pytest.raises(InvalidParameter):
            sums.exact(GridValues(**(facts | change)))


def every_rating(rated: Pattern, grid: ValueGrid = VALUES) -> EveryRating:
    return EveryRating(purpose="every rating", pattern=rated, grid=grid)


def rating_values(spec: EveryRating, rated: Pattern, steps: npt.ArrayLike) -> GridValues:
    return GridValues(view=spec.view, pattern=rated, steps=np.asarray(steps, dtype=np.int32))


@given(st.integers(0, 2**32), st.integers(1, 20), st.integers(1, 20))
def test_every_rating_is_the_rating_itself(seed: int, users: int, items: int) -> None:
    """In the order of users; ratings off the grid are clipped."""
    rated = pattern(seed, users, items, density=0.9)
    assume(rated.entries)
    spec, random = every_rating(rated), np.random.default_rng(seed)
    ratings = random.uniform(0, 6, size=rated.entries)
    table = exact(spec, rating_values(spec, rated, np.rint(ratings * 2.0**-VALUES.exponent)))
    (query,) = spec.queries
    assert table.shape == query.shape == (rated.entries, 1) and table.dtype == np.int64
    expected = [min(max(float(rating), 1.0), 5.0) for rating in ratings]
    assert np.abs(table[:, 0] * query.step - expected).max() <= 2.0**VALUES.exponent / 2
    assert query.rows is Rows.RATINGS and query.unit is Unit.VALUE
    assert spec.view.axis is Axis.USERS


@given(st.data(), st.integers(0, 2**32))
def test_one_value_never_moves_every_rating_more_than_recorded(
    data: st.DataObject, seed: int
) -> None:
    rated = pattern(seed % 7, 6, 8)
    spec = every_rating(rated)
    (query,) = spec.queries
    steps = np.random.default_rng(seed).integers(0, 100, rated.entries)
    entry, other = data.draw(st.integers(0, rated.entries - 1)), steps.copy()
    steps[entry], other[entry] = data.draw(anything), data.draw(anything)
    one, two = (exact(spec, rating_values(spec, rated, each)) for each in (steps, other))
    (moved,) = np.nonzero((one - two).any(axis=1))
    assert set(moved) <= {entry}
    assert np.count_nonzero(one - two) <= query.coordinates
    assert abs(int((one - two).sum())) <= int(query.sensitivity)
    assert max(abs(one).max(), abs(two).max()) <= query.magnitude


@pytest.mark.parametrize("ends", [(1, 5), (-9, 1), (-2, 2)])
def test_the_worst_case_attains_the_bounds_of_every_rating(ends: tuple[int, int]) -> None:
    rated, grid = pattern(0, 4, 5), ValueGrid.for_scale(*ends)
    spec = every_rating(rated, grid)
    (query,) = spec.queries
    low, high = (
        exact(spec, rating_values(spec, rated, np.full(rated.entries, end)))
        for end in (-(2**31), 2**31 - 1)
    )
    assert (high - low == query.sensitivity).all()
    assert query.sensitivity * query.step == ends[1] - ends[0]
    assert max(abs(low).max(), abs(high).max()) == query.magnitude


def test_every_rating_refuses_values_of_other_views_and_patterns() -> None:
    rated = pattern(0, 4, 5)
    spec = every_rating(rated)
    with pytest.raises(InvalidParameter, match="other pairs"):
        other = pattern(1, 4, 5)
        spec.exact(rating_values(spec, other, np.zeros(other.entries)))
    with pytest.raises(InvalidParameter, match="another grid"):
        steps = np.zeros(rated.entries, dtype=np.int32)
        spec.exact(GridValues(view=view(Axis.ITEMS), pattern=rated, steps=steps))


@pytest.mark.parametrize(
    "change",
    [
        {"sensitivity": 0.0},
        {"sensitivity": float("nan")},
        {"coordinates": 0},
        {"shape": (0, 3)},
        {"exponent": 5000},
        {"magnitude": 0},
        {"proof": ""},
        {"unit": "household"},
        {"rows": "both"},
    ],
)
def test_bad_queries_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        replace(QUERY, **change)


def test_a_query_names_its_step_and_its_proof() -> None:
    assert isinstance(QUERY, BoundedQuery)
    assert QUERY.step == 2.0**-26 and QUERY.proof == "grid.md#sensitivity"
