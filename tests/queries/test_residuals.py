"""Sums of clipped residuals are exact, and their sensitivity bound is tight."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.accounting.events import Rows
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis, Pattern
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import FeatureGrid, ValueGrid
from taciturn.queries.residuals import TOTAL_BITS, ClippedSums, Residuals, ResidualTotal
from taciturn.queries.values import GridValues, ValueView, on_grid
from tests.queries.helpers import Steps, values_of
from tests.solvers.helpers import random_ratings

GRID = ValueGrid.for_scale(-2, 2)
FEATURES = FeatureGrid()
VIEW = ValueView(grid=GRID, axis=Axis.ITEMS)


def residuals_of(ratings: Ratings, predictions: Steps, threshold: int) -> Residuals:
    return Residuals(VIEW, ratings.pattern.by_item, predictions, threshold)


def clipped_sums(residuals: Residuals, features: np.ndarray) -> ClippedSums:
    return ClippedSums(
        purpose="test",
        axis=Axis.ITEMS,
        residuals=residuals,
        features=FEATURES.quantise(features),
        feature_grid=FEATURES,
    )


def total_of(residuals: Residuals, power: int) -> ResidualTotal:
    return ResidualTotal(purpose="test", residuals=residuals, power=power)


def exact(spec: ClippedSums | ResidualTotal, values: GridValues) -> np.ndarray:
    (table,) = spec.exact(values).tables
    return table


@settings(max_examples=60)
@given(
    seed=st.integers(0, 1000),
    threshold=st.integers(1, GRID.range),
    width=st.integers(1, 5),
    data=st.data(),
)
def test_neighbouring_datasets_never_differ_by_more_than_recorded(
    seed: int, threshold: int, width: int, data: st.DataObject
) -> None:
    random = np.random.default_rng(seed)
    ratings = random_ratings(seed, users=6, items=4)
    pairs = len(ratings)
    # Values and predictions beyond the grid too: the bound holds for any input.
    steps, predictions = random.integers(-400, 400, (2, pairs)).astype(np.int32)
    residuals = residuals_of(ratings, predictions, threshold)
    table = clipped_sums(residuals, random.normal(size=(6, width)))
    changed = steps.copy()
    changed[data.draw(st.integers(0, pairs - 1))] = data.draw(st.integers(-(2**31), 2**31 - 1))
    values, other = (values_of(ratings, VIEW, each) for each in (steps, changed))
    for spec in (table, total_of(residuals, 1), total_of(residuals, 2)):
        (query,) = spec.queries
        moved = (exact(spec, values) - exact(spec, other)).astype(float)
        assert np.linalg.norm(moved) <= query.sensitivity
        assert np.count_nonzero(moved.any(axis=1)) <= 1
        assert np.count_nonzero(moved) <= query.coordinates
        assert np.abs(exact(spec, values)).max() <= query.magnitude
        assert exact(spec, values).shape == query.shape and query.unit is Unit.VALUE


def test_the_worst_case_attains_the_bounds() -> None:
    """A value goes from far below its prediction to far above it, along a feature of length 1."""
    ratings = random_ratings(0, users=6, items=4)
    predictions = np.zeros(len(ratings), dtype=np.int32)
    lowest = np.full(len(ratings), GRID.lowest, dtype=np.int32)

    def with_third(value: int) -> GridValues:
        steps = lowest.copy()
        steps[3] = value
        return values_of(ratings, VIEW, steps)

    values, other = with_third(GRID.lowest), with_third(GRID.highest)
    for threshold, most in ((50, 100), (GRID.range, GRID.range)):
        table = clipped_sums(residuals_of(ratings, predictions, threshold), np.ones((6, 1)))
        moved = float(np.linalg.norm((exact(table, values) - exact(table, other)).astype(float)))
        assert moved == table.queries[0].sensitivity == most * FEATURES.bound
    for power, value, most in ((1, GRID.highest, 100), (2, 0, 50**2)):
        other = with_third(value)
        total = total_of(residuals_of(ratings, predictions, 50), power)
        moved = abs(int(exact(total, values)[0, 0]) - int(exact(total, other)[0, 0]))
        assert moved == total.queries[0].sensitivity == most << TOTAL_BITS[power]


def test_sums_and_totals_match_the_reference() -> None:
    ratings = random_ratings(1, users=30, items=20)
    random = np.random.default_rng(1)
    steps = random.integers(GRID.lowest, GRID.highest, len(ratings)).astype(np.int32)
    predictions = random.integers(-300, 300, len(ratings)).astype(np.int32)
    residuals, rows = residuals_of(ratings, predictions, 77), random.normal(size=(30, 3))
    clipped = np.clip(steps - predictions, -77, 77)
    quantised = FEATURES.quantise(rows).astype(np.int64)
    expected = np.zeros((20, 3), dtype=np.int64)
    items = np.repeat(np.arange(20), np.diff(ratings.by_item.starts))
    np.add.at(expected, items, clipped[:, None] * quantised[ratings.by_item.columns])
    table, values = clipped_sums(residuals, rows), values_of(ratings, VIEW, steps)
    assert np.array_equal(table.exact(values, 2).tables[0], expected)
    assert table.queries[0].rows is Rows.ITEMS
    for power in (1, 2):
        total = total_of(residuals, power)
        assert exact(total, values)[0, 0] * total.queries[0].step == pytest.approx(
            (clipped.astype(float) ** power).sum() * 2.0 ** (power * GRID.exponent), rel=1e-15
        )


def test_queries_do_not_change_the_values() -> None:
    ratings = random_ratings()
    values = on_grid(ratings, VIEW)
    before = values.steps.copy()
    residuals = residuals_of(ratings, np.full(len(ratings), 9, dtype=np.int32), 5)
    for spec in (clipped_sums(residuals, np.ones((30, 1))), total_of(residuals, 2)):
        spec.exact(values)
    assert np.array_equal(values.steps, before)


def test_predictions_cannot_be_changed_after_they_were_checked() -> None:
    ratings = random_ratings()
    predictions = np.zeros(len(ratings), dtype=np.int32)
    residuals, values = residuals_of(ratings, predictions, 5), on_grid(ratings, VIEW)
    before = residuals.of(values)
    predictions += 1000
    assert np.array_equal(residuals.of(values), before)


def test_bad_input_is_refused() -> None:
    pattern = Pattern(np.array([0, 5]), np.arange(5, dtype=np.int32), 5)
    predictions = np.zeros(5, dtype=np.int32)
    with pytest.raises(InvalidParameter, match="at most the range"):
        Residuals(VIEW, pattern, predictions, GRID.range + 1)
    bad_thresholds: tuple[Any, ...] = (0, -1, 1.5)
    for threshold in bad_thresholds:
        with pytest.raises(InvalidParameter, match="threshold"):
            Residuals(VIEW, pattern, predictions, threshold)
    with pytest.raises(InvalidParameter, match="30 bits"):
        Residuals(VIEW, pattern, predictions + 2**30, 5)
    with pytest.raises(InvalidParameter, match="one prediction"):
        Residuals(VIEW, pattern, predictions[1:], 5)
    residuals = Residuals(VIEW, pattern, predictions, 5)
    with pytest.raises(InvalidParameter, match="power"):
        total_of(residuals, 3)
    with pytest.raises(InvalidParameter, match="each counterpart"):
        clipped_sums(residuals, np.ones((30, 1)))
    with pytest.raises(InvalidParameter, match="order"):
        ClippedSums(
            purpose="test",
            axis=Axis.USERS,
            residuals=residuals,
            features=FEATURES.quantise(np.ones((5, 1))),
            feature_grid=FEATURES,
        )


def test_values_of_other_ratings_are_refused() -> None:
    ratings = random_ratings()
    residuals = residuals_of(ratings, np.zeros(len(ratings), dtype=np.int32), 5)
    for spec in (clipped_sums(residuals, np.ones((30, 1))), total_of(residuals, 2)):
        with pytest.raises(InvalidParameter, match="other pairs"):
            spec.exact(on_grid(random_ratings(9), VIEW))
        with pytest.raises(InvalidParameter, match="another grid"):
            spec.exact(on_grid(ratings, ValueView(grid=GRID, axis=Axis.USERS)))
