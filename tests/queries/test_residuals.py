"""Sums of cut residuals: exact, bounded, and the bound is reached."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.accounting.events import Rows
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import FeatureGrid, ValueGrid
from taciturn.queries.residuals import TOTAL_BITS, ClippedSums, Residuals, ResidualTotal
from tests.solvers.helpers import random_ratings

GRID = ValueGrid.for_scale(-2, 2)
FEATURES = FeatureGrid()


def sums(ratings: Ratings, residuals: Residuals, features: np.ndarray) -> ClippedSums:
    side = ratings.by_item
    return ClippedSums(
        purpose="test",
        rows=Rows.ITEMS,
        starts=side.starts,
        columns=side.columns,
        features=FEATURES.quantise(features),
        feature_grid=FEATURES,
        residuals=residuals,
    )


@settings(max_examples=60)
@given(
    seed=st.integers(0, 1000),
    limit=st.integers(1, GRID.range),
    width=st.integers(1, 5),
    data=st.data(),
)
def test_neighbours_never_differ_by_more(
    seed: int, limit: int, width: int, data: st.DataObject
) -> None:
    random = np.random.default_rng(seed)
    ratings = random_ratings(seed, users=6, items=4)
    pairs = len(ratings)
    # Values and predictions beyond the grid too: the bound holds whatever comes in.
    values, predictions = random.integers(-400, 400, (2, pairs)).astype(np.int32)
    residuals = Residuals(GRID, predictions, limit)
    table = sums(ratings, residuals, random.normal(size=(6, width)))
    totals = [ResidualTotal(purpose="test", residuals=residuals, power=power) for power in (1, 2)]
    other = values.copy()
    other[data.draw(st.integers(0, pairs - 1))] = data.draw(st.integers(-(2**31), 2**31 - 1))
    for measurement in (table, *totals):
        moved = (measurement.exact(values) - measurement.exact(other)).astype(float)
        assert np.linalg.norm(moved) <= measurement.query.sensitivity
        assert np.count_nonzero(moved.any(axis=1)) <= 1
        assert np.count_nonzero(moved) <= measurement.query.coordinates
        assert np.abs(measurement.exact(values)).max() <= measurement.query.magnitude


def test_the_bounds_are_reached() -> None:
    """A value goes from far below its prediction to far above it, along a feature of length 1."""
    ratings = random_ratings(0, users=6, items=4)
    predictions = np.zeros(len(ratings), dtype=np.int32)
    values = np.full(len(ratings), GRID.lowest, dtype=np.int32)
    other = values.copy()
    other[3] = GRID.highest
    for limit, most in ((50, 100), (GRID.range, GRID.range)):
        table = sums(ratings, Residuals(GRID, predictions, limit), np.ones((6, 1)))
        moved = np.linalg.norm((table.exact(values) - table.exact(other)).astype(float))
        assert moved == table.query.sensitivity == most * FEATURES.bound
    for power, value, most in ((1, GRID.highest, 100), (2, 0, 50**2)):
        other[3] = value
        residuals = Residuals(GRID, predictions, 50)
        total = ResidualTotal(purpose="test", residuals=residuals, power=power)
        moved = abs(int(total.exact(values)[0, 0]) - int(total.exact(other)[0, 0]))
        assert moved == total.query.sensitivity == most << TOTAL_BITS[power]


def test_they_are_what_they_say() -> None:
    ratings = random_ratings(1, users=30, items=20)
    random = np.random.default_rng(1)
    values = random.integers(GRID.lowest, GRID.highest, len(ratings)).astype(np.int32)
    predictions = random.integers(-300, 300, len(ratings)).astype(np.int32)
    residuals, rows = Residuals(GRID, predictions, 77), random.normal(size=(30, 3))
    cut = np.clip(values - predictions, -77, 77)
    quantised = FEATURES.quantise(rows).astype(np.int64)
    expected = np.zeros((20, 3), dtype=np.int64)
    items = np.repeat(np.arange(20), np.diff(ratings.by_item.starts))
    np.add.at(expected, items, cut[:, None] * quantised[ratings.by_item.columns])
    assert np.array_equal(sums(ratings, residuals, rows).exact(values, 2), expected)
    for power in (1, 2):
        total = ResidualTotal(purpose="test", residuals=residuals, power=power)
        assert total.exact(values)[0, 0] * total.query.step == pytest.approx(
            (cut.astype(float) ** power).sum() * 2.0 ** (power * GRID.exponent), rel=1e-15
        )


def test_bad_input_is_refused() -> None:
    predictions = np.zeros(5, dtype=np.int32)
    with pytest.raises(InvalidParameter, match="at most the range"):
        Residuals(GRID, predictions, GRID.range + 1)
    with pytest.raises(InvalidParameter, match="limit"):
        Residuals(GRID, predictions, 0)
    with pytest.raises(InvalidParameter, match="30 bits"):
        Residuals(GRID, predictions + 2**30, 5)
    with pytest.raises(InvalidParameter, match="32-bit"):
        Residuals(GRID, predictions, 5).of(np.zeros(4, dtype=np.int32))
    with pytest.raises(InvalidParameter, match="power"):
        ResidualTotal(purpose="test", residuals=Residuals(GRID, predictions, 5), power=3)
    with pytest.raises(InvalidParameter, match="each entry"):
        sums(random_ratings(), Residuals(GRID, predictions, 5), np.ones((30, 1)))
