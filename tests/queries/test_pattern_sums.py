"""Interest queries under unit `rating`: adding or removing one rating keeps the recorded bound."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.accounting.events import Rows
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.queries import pattern_sums as module
from taciturn.queries.pattern_sums import GRID, PatternSums
from taciturn.queries.values import GridValues
from tests.queries.helpers import (
    Floats,
    assert_bounded,
    constant_values,
    every_pair,
    largest_ratio,
    user_view,
)

AXES = [Axis.USERS, Axis.ITEMS]


def sums(ratings: Ratings, axis: Axis, features: Floats) -> PatternSums:
    return PatternSums(
        purpose="test", axis=axis, shape=ratings.shape, view=user_view(), features=features
    )


def with_and_without(ratings: Ratings, place: int) -> list[GridValues]:
    """The pattern of some ratings, and that without one of them."""
    rest = ratings.select(np.arange(len(ratings)) != place)
    return [constant_values(each, user_view(), 0) for each in (ratings, rest)]


@settings(max_examples=80)
@given(
    st.integers(0, 2**32),
    st.sampled_from(AXES),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 6),
    st.sampled_from([0.0, 0.01, 1.0, 30.0]),
)
def test_no_rating_moves_a_table_more_than_recorded(
    seed: int, axis: Axis, users: int, items: int, width: int, length: float
) -> None:
    random = np.random.default_rng(seed)
    whole = every_pair(users, items)
    ratings = whole.select(random.random(len(whole)) < 0.6)
    if len(ratings) == 0:
        ratings = whole
    counterparts = items if axis is Axis.USERS else users
    spec = sums(ratings, axis, length * random.normal(size=(counterparts, width)))
    one, other = with_and_without(ratings, int(random.integers(len(ratings))))
    assert_bounded(spec, one, other)
    (query,) = spec.queries
    assert (query.unit, query.rows) == (Unit.RATING, Rows(axis.value))


@pytest.mark.parametrize("axis", AXES)
def test_a_rating_with_a_feature_of_norm_one_attains_the_bound(axis: Axis) -> None:
    ratings = every_pair(3, 3)
    features = np.tile([0.0, 1.0], (3, 1))
    assert largest_ratio(sums(ratings, axis, features), *with_and_without(ratings, 4)) == 1


@pytest.mark.parametrize("axis", AXES)
def test_sums_equal_those_of_an_obvious_loop(axis: Axis) -> None:
    random = np.random.default_rng(1)
    whole = every_pair(7, 5)
    ratings = whole.select(random.random(len(whole)) < 0.5)
    counterparts = 5 if axis is Axis.USERS else 7
    features = 0.4 * random.normal(size=(counterparts, 3))
    spec = sums(ratings, axis, features)
    (found,) = spec.exact(constant_values(ratings, user_view(), 0)).tables
    steps = GRID.quantise(features)
    expected = np.zeros((12 - counterparts, 3), dtype=np.int64)
    for user, item in zip(ratings.rows(), ratings.by_user.columns, strict=True):
        row, counterpart = (user, item) if axis is Axis.USERS else (item, user)
        expected[row] += steps[counterpart]
    assert np.array_equal(found, expected)


def test_values_do_not_matter_to_the_pattern() -> None:
    ratings = every_pair(4, 3)
    spec = sums(ratings, Axis.ITEMS, np.ones((4, 1)))
    one, other = (constant_values(ratings, user_view(), step) for step in (-5, 9))
    assert largest_ratio(spec, one, other) == 0


def test_features_that_are_not_bounded_break_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bug: features keep their length."""

    class LongGrid:
        bits, bound = GRID.bits, GRID.bound

        def quantise(self, rows: Floats) -> np.ndarray:
            return np.rint(rows * self.bound).astype(np.int32)

    monkeypatch.setattr(module, "GRID", LongGrid())
    ratings = every_pair(3, 3)
    spec = sums(ratings, Axis.ITEMS, np.full((3, 2), 1.0))
    assert largest_ratio(spec, *with_and_without(ratings, 4)) > 1


def test_a_recorded_width_below_the_columns_is_raised_to_them() -> None:
    ratings = every_pair(3, 3)
    (query,) = sums(ratings, Axis.ITEMS, np.ones((3, 4))).queries
    assert query.coordinates == 4


def test_features_of_the_wrong_axis_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="each counterpart"):
        sums(every_pair(3, 4), Axis.ITEMS, np.ones((4, 1)))


def test_values_without_the_other_axis_are_refused() -> None:
    ratings = every_pair(3, 4)
    values = replace(constant_values(ratings, user_view(), 0), transposed=None)
    with pytest.raises(InvalidParameter, match="other axis"):
        sums(ratings, Axis.ITEMS, np.ones((3, 1))).exact(values)
