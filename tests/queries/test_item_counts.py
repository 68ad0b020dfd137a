"""Counts of items keep their bound under units `rating` and `user`, and attain it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.queries import per_user
from taciturn.queries.item_counts import ItemCounts
from taciturn.queries.totals import COUNT_BITS
from taciturn.queries.values import GridValues, ValueView
from tests.queries.helpers import (
    GRIDS,
    assert_bounded,
    every_pair,
    largest_ratio,
    rated,
    user_view,
    values_of,
)

ONE = 1 << COUNT_BITS


def counts_of(ratings: Ratings, unit: Unit, view: ValueView | None = None) -> ItemCounts:
    users = ratings.shape[0] if unit is Unit.RATING else None
    return ItemCounts(items=ratings.shape[1], users=users, view=view or user_view(), unit=unit)


def some_of(ratings: Ratings, values: GridValues, kept: Any) -> GridValues:
    """Values of some of the ratings."""
    return values_of(ratings.select(kept), values.view, values.steps[kept])


@settings(max_examples=60)
@given(rated(), st.data())
def test_no_rating_moves_counts_more_than_recorded(
    some: tuple[Ratings, GridValues], data: st.DataObject
) -> None:
    ratings, values = some
    if len(ratings) == 0:
        return
    kept = np.ones(len(ratings), dtype=np.bool_)
    kept[data.draw(st.integers(0, len(ratings) - 1))] = False
    spec = counts_of(ratings, Unit.RATING, values.view)
    other = some_of(ratings, values, kept)
    assert_bounded(spec, values, other)
    assert largest_ratio(spec, values, other) == 1


@settings(max_examples=60)
@given(rated(), st.data())
def test_no_user_moves_weights_more_than_recorded(
    some: tuple[Ratings, GridValues], data: st.DataObject
) -> None:
    ratings, values = some
    user = data.draw(st.integers(0, ratings.shape[0] - 1))
    spec = counts_of(ratings, Unit.USER, values.view)
    assert_bounded(spec, values, some_of(ratings, values, ratings.rows() != user))


@pytest.mark.parametrize("items", [1, 4, 64])
def test_a_user_attains_the_bound(items: int) -> None:
    """With a square number of ratings, whose weights need no rounding."""
    ratings = every_pair(3, items)
    spec, values = counts_of(ratings, Unit.USER), zeros(ratings)
    assert largest_ratio(spec, values, some_of(ratings, values, ratings.rows() != 1)) == 1


def test_equal_weights_of_all_ratings_break_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bug: every rating of a user counts 1."""
    ratings = every_pair(3, 4)
    monkeypatch.setattr(per_user, "weights", lambda counts: np.full(counts.shape, ONE))
    spec, values = counts_of(ratings, Unit.USER), zeros(ratings)
    assert largest_ratio(spec, values, some_of(ratings, values, ratings.rows() != 1)) == 4


@pytest.mark.parametrize("unit", [Unit.RATING, Unit.USER])
def test_the_table_equals_a_count_rating_by_rating(unit: Unit) -> None:
    ratings = every_pair(4, 6).select(np.arange(24) % 5 != 0)
    found = counts_of(ratings, unit).exact(zeros(ratings)).tables
    expected = np.zeros((6, 1))
    for user, item in zip(ratings.rows(), ratings.by_user.columns, strict=True):
        one = np.sqrt(np.sum(ratings.rows() == user)) if unit is Unit.USER else 1.0
        expected[item] += 1 / one
    assert len(found) == 1
    assert np.allclose(found[0] / ONE, expected, atol=1e-6)


def test_counts_are_refused_where_the_pattern_is_public() -> None:
    ratings = every_pair(2, 2)
    with pytest.raises(InvalidParameter, match="unit rating and users, or unit user"):
        counts_of(ratings, Unit.VALUE)
    with pytest.raises(InvalidParameter, match="along the users"):
        counts_of(ratings, Unit.USER, ValueView(grid=GRIDS[0], axis=Axis.ITEMS))


def zeros(ratings: Ratings) -> GridValues:
    return values_of(ratings, user_view(), np.zeros(len(ratings), dtype=np.int32))
