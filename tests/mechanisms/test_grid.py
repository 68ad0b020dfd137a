"""Rounding to the grid never widens a range or lengthens a row."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import FeatureGrid, ValueGrid

scales = st.tuples(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6)).map(lambda p: (p[0], p[0] + p[1]))
scales = scales.filter(lambda scale: scale[0] < scale[1])


def test_a_star_scale_lies_on_its_grid() -> None:
    grid = ValueGrid.for_scale(1, 5)
    assert (grid.exponent, grid.lowest, grid.highest, grid.range) == (-6, 64, 320, 256)
    stars = np.array([1, 2, 3.5, 5])
    assert np.array_equal(np.ldexp(grid.quantise(stars), grid.exponent), stars)


@given(scales, st.integers(1, 4096))
def test_a_grid_encloses_its_scale(scale: tuple[float, float], levels: int) -> None:
    try:
        grid = ValueGrid.for_scale(*scale, levels)
    except InvalidParameter:
        assert max(map(abs, scale)) / (scale[1] - scale[0]) * levels > 2**28
        return
    step = math.ldexp(1, grid.exponent)
    assert grid.lowest * step <= scale[0] <= (grid.lowest + 1) * step
    assert (grid.highest - 1) * step <= scale[1] <= grid.highest * step
    assert levels <= (scale[1] - scale[0]) / step <= 2 * levels * (1 + 1e-12)


@given(scales, st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1))
def test_no_value_leaves_the_grid(scale: tuple[float, float], values: list[float]) -> None:
    try:
        grid = ValueGrid.for_scale(*scale)
    except InvalidParameter:
        return
    quantised = grid.quantise(np.array(values))
    assert quantised.dtype == np.int32
    assert grid.lowest <= quantised.min() and quantised.max() <= grid.highest


@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=12),
        elements=st.floats(-1e300, 1e300),
    ),
    st.integers(1, 24),
)
def test_no_row_is_longer_than_one(rows: np.ndarray, bits: int) -> None:
    grid = FeatureGrid(bits=bits)
    quantised = grid.quantise(rows)
    for row in quantised.tolist():
        assert sum(entry * entry for entry in row) <= grid.bound**2
    assert grid.fits(quantised).all()


@given(st.integers(1, 50), st.integers(0, 2**32))
def test_rows_of_norm_one_keep_their_direction(width: int, seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(20, width))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    quantised = FeatureGrid().quantise(rows) / FeatureGrid().bound
    assert np.abs(quantised - rows).max() < 1.1 / FeatureGrid().bound
    exact = FeatureGrid().quantise(np.eye(width))
    assert np.array_equal(exact, np.eye(width, dtype=np.int32) * FeatureGrid().bound)


@given(hnp.arrays(np.int32, (3, 4), elements=st.integers(-(2**31), 2**31 - 1)))
def test_rows_fit_exactly_if_their_norm_is_within_the_bound(rows: np.ndarray) -> None:
    grid = FeatureGrid(bits=24)
    expected = [sum(entry * entry for entry in row) <= grid.bound**2 for row in rows.tolist()]
    assert grid.fits(rows).tolist() == expected


@pytest.mark.parametrize(
    "scale",
    [(5, 1), (1, 1), (math.nan, 1), (0, math.inf), (1e9, 1e9 + 1e-6), (-1e308, 1e308), (1, 5, 0)],
)
def test_bad_scales_are_refused(scale: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidParameter):
        ValueGrid.for_scale(*scale)


def test_a_grid_encloses_the_smallest_number() -> None:
    grid = ValueGrid.for_scale(-5e-324, 2.0, 1)
    assert grid.lowest == -1


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 2.0],
        np.array(["1"]),
        np.array([1 + 2j]),
        np.array([1], dtype=object),
        np.array([True]),
        np.array([1.0], dtype=np.longdouble),
    ],
)
def test_values_of_another_type_are_refused(values: Any) -> None:
    with pytest.raises(InvalidParameter, match="values must be an array"):
        ValueGrid.for_scale(1, 5).quantise(values)


@pytest.mark.parametrize("rows", [[1.0, 2.0], [[math.nan]], [[math.inf]], np.zeros((1, 2**14))])
def test_bad_features_are_refused(rows: Any) -> None:
    with pytest.raises(InvalidParameter):
        FeatureGrid().quantise(rows)


@pytest.mark.parametrize(
    "rows",
    [
        np.full((1, 2**16), 2**24, dtype=np.int32),  # squares sum to 2^64, which is 0
        np.zeros((2, 2), dtype=np.int64),
        np.zeros(3, dtype=np.int32),
    ],
)
def test_norms_are_not_computed_for_tables_of_another_type_or_size(rows: np.ndarray) -> None:
    with pytest.raises(InvalidParameter, match="quantised features"):
        FeatureGrid(bits=24).fits(rows)


@pytest.mark.parametrize("bits", [0, 25])
def test_bad_feature_grids_are_refused(bits: int) -> None:
    with pytest.raises(InvalidParameter):
        FeatureGrid(bits=bits)
