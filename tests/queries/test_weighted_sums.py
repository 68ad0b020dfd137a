"""Measurements: exact, independent of threads, and never more sensitive than booked."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from taciturn import _core
from taciturn.accounting.events import Rows
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import FeatureGrid, ValueGrid
from taciturn.mechanisms.query import MAGNITUDE_MAX, BoundedQuery, WeightedSums
from tests.mechanisms.noise_helpers import FEATURES, VALUES, pattern, random_values, weighted_sums


def reference(sums: WeightedSums, values: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Multiply a sparse matrix of values with the features, in 64-bit integers."""
    shape = (sums.query.shape[0], len(sums._features))
    matrix = csr_array((values.astype(np.int64), sums._columns, sums._starts), shape=shape)
    return matrix @ sums._features.astype(np.int64)


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 40), st.integers(1, 12))
def test_sums_match_the_reference(seed: int, rows: int, columns: int, width: int) -> None:
    sums = weighted_sums(seed, rows, columns, width)
    values = random_values(sums, seed)
    assert np.array_equal(sums.exact(values), reference(sums, values))


def test_sums_do_not_depend_on_threads() -> None:
    sums = weighted_sums(3, rows=3000, columns=50, width=7)
    values = random_values(sums)
    one = sums.exact(values, threads=1)
    for threads in (2, 3, 8):
        assert np.array_equal(sums.exact(values, threads=threads), one)


@given(st.data(), st.integers(0, 2**32))
def test_one_value_never_moves_more_than_booked(data: st.DataObject, seed: int) -> None:
    """Neighbours under `value`: one entry takes any 32-bit integer, on the grid or not."""
    sums = weighted_sums(seed % 7, rows=6, columns=8, width=data.draw(st.integers(1, 6)))
    anything = st.integers(-(2**31), 2**31 - 1) | st.integers(VALUES.lowest, VALUES.highest)
    values = random_values(sums, seed)
    entry = data.draw(st.integers(0, values.size - 1))
    values[entry] = data.draw(anything)
    other = values.copy()
    other[entry] = data.draw(anything)
    change = sums.exact(values) - sums.exact(other)
    square = sum(int(part) ** 2 for part in change.reshape(-1))
    assert square <= int(sums.query.sensitivity) ** 2
    assert np.count_nonzero(change) <= sums.query.coordinates
    assert np.count_nonzero(change.any(axis=1)) <= 1


@pytest.mark.parametrize("width", [1, 3, 20])
def test_the_worst_case_reaches_the_bound(width: int) -> None:
    starts, columns = np.array([0, 1]), np.array([0], dtype=np.int32)
    sums = WeightedSums(
        purpose="worst case",
        rows=Rows.USERS,
        starts=starts,
        columns=columns,
        features=FEATURES.quantise(np.eye(1, width)),
        value_grid=VALUES,
        feature_grid=FEATURES,
    )
    low, high = VALUES.quantise(np.array([1.0])), VALUES.quantise(np.array([5.0]))
    change = sums.exact(high) - sums.exact(low)
    assert np.linalg.norm(change) == sums.query.sensitivity
    assert sums.query.sensitivity * sums.query.step == 4.0


@given(st.integers(0, 2**32))
def test_no_sum_exceeds_its_stated_magnitude(seed: int) -> None:
    sums = weighted_sums(seed, rows=5, columns=20, width=3)
    for end in (VALUES.lowest, VALUES.highest):
        values = np.full(sums._columns.size, end, dtype=np.int32)
        assert np.abs(sums.exact(values)).max() <= sums.query.magnitude


def test_magnitude_knows_the_longest_row_and_the_larger_end() -> None:
    grid = ValueGrid.for_scale(-9, 1)
    sums = WeightedSums(
        purpose="uneven",
        rows=Rows.ITEMS,
        starts=np.array([0, 0, 7, 8]),
        columns=np.array([0, 1, 2, 3, 4, 5, 6, 0]),
        features=FEATURES.quantise(np.ones((7, 1))),
        value_grid=grid,
        feature_grid=FEATURES,
    )
    lowest = sums.exact(np.full(8, grid.lowest, dtype=np.int32))
    assert np.abs(lowest).max() == sums.query.magnitude == 7 * -grid.lowest * FEATURES.bound


def test_what_was_checked_cannot_be_changed() -> None:
    starts, columns = pattern(0, 4, 5)
    features = FEATURES.quantise(np.ones((5, 2)))
    sums = broken(starts=starts, columns=columns, features=features)
    values = random_values(sums)
    before = sums.exact(values)
    features *= 1000
    columns += 1000
    starts += 1000
    assert np.array_equal(sums.exact(values), before)


@pytest.mark.parametrize("width", [1, 7, 8, 16, 21, 64])
def test_instructions_change_nothing(width: int) -> None:
    random = np.random.default_rng(width)
    starts, columns = pattern(width, 30, 12)
    values = random.integers(-(2**20), 2**20, columns.size, dtype=np.int32)
    features = random.integers(-(2**29), 2**29, (12, width), dtype=np.int32)
    found = np.empty((2, starts.size - 1, width), dtype=np.int64)
    for portable in (False, True):
        given = starts, columns, values, -(2**19), 2**19, features
        _core.grid_sums(*given, found[int(portable)], 0, starts.size - 1, portable)
    assert found.any() and np.array_equal(found[0], found[1])


def test_the_kernel_refuses_what_would_leave_its_tables() -> None:
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


def test_overflow_is_excluded_in_advance() -> None:
    count = 2**15
    with pytest.raises(InvalidParameter, match="61 bits"):
        WeightedSums(
            purpose="too fine",
            rows=Rows.ITEMS,
            starts=np.array([0, count]),
            columns=np.arange(count, dtype=np.int32),
            features=np.zeros((count, 1), dtype=np.int32),
            value_grid=ValueGrid(exponent=-28, lowest=0, highest=2**30),
            feature_grid=FeatureGrid(bits=24),
        )
    query = weighted_sums().query
    assert replace(query, magnitude=MAGNITUDE_MAX).magnitude == MAGNITUDE_MAX
    with pytest.raises(InvalidParameter):
        replace(query, magnitude=MAGNITUDE_MAX + 1)


def broken(**change: object) -> WeightedSums:
    starts, columns = pattern(0, 4, 5)
    facts = {
        "purpose": "broken",
        "rows": Rows.ITEMS,
        "starts": starts,
        "columns": columns,
        "features": FEATURES.quantise(np.ones((5, 2))),
        "value_grid": VALUES,
        "feature_grid": FEATURES,
    }
    return WeightedSums(**(facts | change))


def test_bad_patterns_and_features_are_refused() -> None:
    starts, columns = pattern(0, 4, 5)
    assert broken().query.shape == (4, 2)
    for change in (
        {"starts": starts[:-1]},
        {"starts": starts + 1},
        {"starts": starts[::-1]},
        {"starts": np.array([0])},
        {"columns": np.full_like(columns, 5)},
        {"columns": np.full_like(columns, -1)},
        {"columns": np.zeros_like(columns)},  # a pair twice
        {"columns": columns.astype(np.float64)},
        {"columns": columns.astype(np.int64) + 2**32},
        {"features": np.full((5, 2), FEATURES.bound, dtype=np.int32)},
        {"features": np.zeros(5, dtype=np.int32)},
        {"features": np.full((5, 2), 0.9)},
        {"purpose": ""},
    ):
        with pytest.raises(InvalidParameter):
            broken(**change)


def test_bad_values_are_refused() -> None:
    sums = weighted_sums()
    values = random_values(sums)
    for wrong in (values[:-1], values.astype(np.int64), values.astype(np.float64)):
        with pytest.raises(InvalidParameter):
            sums.exact(wrong)


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
        {"unit": "person"},
        {"rows": "both"},
    ],
)
def test_bad_queries_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        replace(weighted_sums().query, **change)


def test_a_query_is_public() -> None:
    """Its fields are plain facts that fit a document."""
    query = weighted_sums().query
    assert isinstance(query, BoundedQuery)
    assert query.step == 2.0**-26 and query.proof == "grid.md#sensitivity"
