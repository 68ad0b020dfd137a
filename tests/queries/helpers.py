"""Neighbouring datasets on a grid, and the distance between their query answers."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis
from taciturn.data.ratings import Ratings
from taciturn.mechanisms.grid import ValueGrid
from taciturn.queries.error_pass import ErrorPass
from taciturn.queries.executor import RatingQuery
from taciturn.queries.features import NORM, AxisFeatures
from taciturn.queries.per_user import UserTotals
from taciturn.queries.prediction_errors import pass_axis
from taciturn.queries.user_sums import ReleasedItems, UserSums
from taciturn.queries.values import GridValues, ValueView
from tests.solvers.helpers import random_ratings

GRIDS = [ValueGrid.for_scale(*ends, 64) for ends in ((1, 5), (-4, 3), (-9, -1), (-2, 2))]

Steps = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Both = tuple[AxisFeatures, AxisFeatures]


def every_pair(users: int, items: int) -> Ratings:
    """Ratings of every item by every user."""
    return random_ratings(0, users, items, density=1.0)


def pass_view(ratings: Ratings, grid: ValueGrid) -> ValueView:
    """Values on a grid in the order of a pass: along the longer axis."""
    return ValueView(grid=grid, axis=pass_axis(ratings.shape))


def values_of(ratings: Ratings, view: ValueView, steps: Steps) -> GridValues:
    """Given steps instead of the ratings, in the order of a view."""
    pattern = ratings.pattern
    return GridValues(
        view=view,
        pattern=pattern.along(view.axis),
        steps=steps,
        transposed=pattern.along(view.axis.other),
    )


def constant_values(ratings: Ratings, view: ValueView, step: int) -> GridValues:
    """The same value for every rating, on the grid or not."""
    return values_of(ratings, view, np.full(len(ratings), step, dtype=np.int32))


def chosen_values(ratings: Ratings, view: ValueView, table: Steps) -> GridValues:
    """Values of the rated pairs out of a table of all pairs (users × items)."""
    pattern = ratings.pattern.along(view.axis)
    rows, columns = pattern.entry_rows(), pattern.columns
    by_user = view.axis is Axis.USERS
    return values_of(ratings, view, table[rows, columns] if by_user else table[columns, rows])


def squared_ratios(spec: RatingQuery, one: GridValues, other: GridValues) -> list[Fraction]:
    """Exact squared ratio of change to sensitivity for each table."""
    tables = spec.exact(one).tables, spec.exact(other).tables
    return [
        Fraction(sum(int(part) ** 2 for part in (first - second).flat))
        / Fraction(query.sensitivity) ** 2
        for query, first, second in zip(spec.queries, *tables, strict=True)
    ]


def largest_ratio(spec: RatingQuery, one: GridValues, other: GridValues) -> Fraction:
    """Largest squared ratio of all tables; above 1 a bound is violated."""
    return max(squared_ratios(spec, one, other))


def assert_bounded(spec: RatingQuery, one: GridValues, other: GridValues) -> None:
    """Check sensitivity, coordinates and magnitude of every query on two neighbouring datasets."""
    assert largest_ratio(spec, one, other) <= 1
    answers = spec.exact(one), spec.exact(other)
    assert all(answer.private is None for answer in answers)
    tables = (answer.tables for answer in answers)
    for query, first, second in zip(spec.queries, *tables, strict=True):
        assert first.shape == second.shape == query.shape
        assert first.dtype == second.dtype == np.int64
        assert np.count_nonzero(first - second) <= query.coordinates
        assert max(abs(first).max(), abs(second).max()) <= query.magnitude


class LongFeatures(AxisFeatures):
    """Planted bug: features are as long as the rows, neither divided nor clipped."""

    def __init__(self, rows: Floats, shrink: Floats, base: Floats, unit: float = 1.0) -> None:
        super().__init__(rows, shrink, base, unit)
        self.packed = self.packed.copy()
        self.packed[:, : self.width] = np.clip(np.rint(rows * NORM), -32767, 32767)


def same_tables(one: Any, other: Any) -> bool:
    """True if two answers have the same tables."""
    return all(
        np.array_equal(first, second)
        for first, second in zip(one.tables, other.tables, strict=True)
    )


def user_view(grid: ValueGrid = GRIDS[0]) -> ValueView:
    """Values on a grid in the order of users."""
    return ValueView(grid=grid, axis=Axis.USERS)


def random_features(ratings: Ratings, width: int, seed: int = 0, length: float = 2.0) -> Both:
    """Random features of users and of items."""
    random = np.random.default_rng(seed)
    users, items = (
        AxisFeatures(
            random.normal(size=(count, width)) * length / math.sqrt(width),
            random.uniform(0.2, 1, size=count),
            random.uniform(1, 2.5, size=count),
        )
        for count in ratings.shape
    )
    return users, items


def random_items(
    random: np.random.Generator,
    count: int,
    width: int,
    length: float = 1.0,
    mean: float = 2.5,
    features: int = 0,
) -> ReleasedItems:
    """Random released items."""
    return ReleasedItems(
        rows=random.normal(size=(count, width)) * length,
        regularization=10.0 ** random.uniform(-1, 2, width + features),
        constant=10.0 ** random.uniform(-1, 1),
        mean=mean,
        features=random.normal(size=(count, features)) if features else None,
    )


def user_sums(
    items: ReleasedItems,
    threshold: int | None = 40,
    *,
    grid: ValueGrid = GRIDS[0],
    usual: float = 4.0,
    unit: Unit = Unit.USER,
) -> UserSums:
    """User-level sums from released items."""
    errors = ErrorPass(user_view(grid), first=1, threshold=threshold)
    return UserSums(purpose="test", errors=errors, items=items, usual=usual, unit=unit)


def user_totals(items: int, grid: ValueGrid = GRIDS[0], unit: Unit = Unit.USER) -> UserTotals:
    """User-level totals over `items` items."""
    return UserTotals(items=items, view=user_view(grid), unit=unit)


@st.composite
def rated(draw: st.DrawFn) -> tuple[Ratings, GridValues]:
    """Ratings of a few users with 0 to 300 ratings each, and values of any size."""
    users, items = draw(st.integers(2, 5)), draw(st.sampled_from([1, 2, 5, 30, 300]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    counts = draw(st.lists(st.sampled_from([0, 1, 2, 7, 100, 300]), min_size=users, max_size=users))
    order = random.random((users, items)).argsort(axis=1)
    ratings = every_pair(users, items).select((order < np.array(counts)[:, None]).ravel())
    grid = draw(st.sampled_from(GRIDS))
    steps = random.integers(grid.lowest - 30, grid.highest + 30, len(ratings)).astype(np.int32)
    if steps.size:
        extreme = draw(st.sampled_from([-(2**31), grid.lowest, grid.highest, 2**31 - 1]))
        steps[random.random(steps.size) < draw(st.sampled_from([0.0, 0.3, 1.0]))] = extreme
    return ratings, values_of(ratings, user_view(grid), steps)
