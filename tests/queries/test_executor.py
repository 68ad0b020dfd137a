"""The local executor: exact answers from ratings in memory."""

from typing import Any

import numpy as np
import pytest

from taciturn.data.pattern import Axis
from taciturn.mechanisms.grid import FeatureGrid, ValueGrid
from taciturn.mechanisms.query import Answer
from taciturn.queries import executor as module
from taciturn.queries.error_pass import ErrorPass
from taciturn.queries.executor import LocalExecutor, RatingQuery
from taciturn.queries.features import AxisFeatures
from taciturn.queries.joint_errors import Balance, JointErrorSums
from taciturn.queries.prediction_errors import PredictionErrorSums
from taciturn.queries.residuals import ClippedSums, Residuals, ResidualTotal
from taciturn.queries.totals import RatingTotals
from taciturn.queries.values import Centre, GridValues, ValueView, on_grid
from taciturn.queries.weighted_sums import EveryRating, WeightedSums
from tests.queries.helpers import random_items, same_tables, user_sums, user_totals
from tests.solvers.helpers import random_ratings

RATINGS = random_ratings(2, users=30, items=20)
GRID = ValueGrid.for_scale(1, 5, 64)
BY_USER, BY_ITEM = (ValueView(grid=GRID, axis=axis) for axis in Axis)


def every_query() -> list[RatingQuery]:
    """One spec of every kind, on the same ratings."""
    random, pattern, features = np.random.default_rng(0), RATINGS.pattern, FeatureGrid()
    users, items = (
        AxisFeatures(random.normal(size=(count, 3)), np.ones(count), np.full(count, 1.5))
        for count in RATINGS.shape
    )
    residuals = Residuals(BY_ITEM, pattern.by_item, np.full(len(RATINGS), 50, dtype=np.int32), 9)
    rows: Any = features.quantise(random.normal(size=(30, 2)))
    shared: dict[str, Any] = {
        "purpose": "test",
        "axis": Axis.ITEMS,
        "features": rows,
        "feature_grid": features,
    }
    return [
        WeightedSums(pattern=pattern.by_item, view=BY_ITEM, **shared),
        EveryRating(purpose="test", pattern=pattern.by_user, grid=GRID),
        ClippedSums(residuals=residuals, **shared),
        ResidualTotal(purpose="test", residuals=residuals, power=2),
        PredictionErrorSums(
            purpose="test", errors=ErrorPass(BY_USER), users=users, items=items, pattern=pattern
        ),
        JointErrorSums(
            purpose="test",
            errors=ErrorPass(BY_USER, threshold=20),
            users=users,
            items=items,
            balance=Balance.of(np.arange(30.0) + 1, np.arange(20.0) + 1),
        ),
        RatingTotals(shape=RATINGS.shape, view=BY_USER),
        user_totals(20),
        user_sums(random_items(random, 20, 3)),
    ]


@pytest.mark.parametrize("threads", [None, 1, 3])
def test_answers_equal_those_of_the_query(threads: int | None) -> None:
    executor = LocalExecutor(RATINGS, threads)
    for spec in every_query():
        expected = spec.exact(on_grid(RATINGS, spec.view))
        assert same_tables(executor.answer(spec), expected)
        for query, table in zip(spec.queries, expected.tables, strict=True):
            assert table.shape == query.shape and table.dtype == np.int64


def test_ratings_are_rounded_once_for_each_view(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(ratings: Any, view: ValueView, threads: int | None) -> GridValues:
        asked.append(view)
        return on_grid(ratings, view, threads)

    monkeypatch.setattr(module, "on_grid", counted)
    executor = LocalExecutor(RATINGS)
    for _ in range(2):
        for spec in every_query():
            executor.answer(spec)
    assert sorted(view.axis for view in asked) == [Axis.ITEMS, Axis.USERS]
    assert executor.values(BY_USER) is executor.values(ValueView(grid=GRID, axis=Axis.USERS))
    centred = ValueView(grid=GRID, axis=Axis.USERS, centre=Centre.ITEM_MEAN)
    assert executor.values(centred) is not executor.values(BY_USER)
    assert len(asked) == 3


def test_threads_are_handed_to_the_query() -> None:
    class Spec:
        view, queries = BY_USER, ()

        def exact(self, values: GridValues, threads: int | None = None) -> Answer:
            return Answer((), (values.view, threads))

    assert LocalExecutor(RATINGS, 3).answer(Spec()).private == (BY_USER, 3)


def test_every_rating_is_read_in_the_order_of_users() -> None:
    assert np.array_equal(LocalExecutor(RATINGS).every_value(), RATINGS.values())


def test_the_repr_of_an_executor_shows_no_ratings() -> None:
    executor = LocalExecutor(RATINGS)
    executor.values(BY_USER)
    assert repr(executor) == str(executor) == "LocalExecutor()"
