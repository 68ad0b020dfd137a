"""Interest queries of whole users: any change of one user keeps the recorded bound."""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.accounting.events import Rows
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.queries import user_interest as module
from taciturn.queries.user_interest import (
    BOUND_BITS,
    WEIGHT_MAX,
    InterestItems,
    UserInterestSums,
    bounded_rows,
    directions,
)
from taciturn.queries.values import GridValues
from tests.queries.helpers import (
    Floats,
    assert_bounded,
    chosen_values,
    constant_values,
    every_pair,
    largest_ratio,
    rated,
    user_view,
)

Integers = npt.NDArray[np.int64]


def released(
    random: np.random.Generator,
    items: int,
    factors: int,
    constant: float = 0.3,
    *,
    by_liking: bool = False,
) -> InterestItems:
    return InterestItems(
        rows=random.normal(size=(items, factors)) * 10.0 ** random.integers(-3, 4),
        weights=random.integers(1, WEIGHT_MAX, items, endpoint=True),
        constant=constant,
        by_liking=by_liking,
    )


def sums(items: InterestItems, unit: Unit = Unit.USER) -> UserInterestSums:
    return UserInterestSums(purpose="test", view=user_view(), items=items, unit=unit)


def pattern_of(ratings: Ratings) -> GridValues:
    return constant_values(ratings, user_view(), 0)


def any_values(random: np.random.Generator, users: int, items: int) -> npt.NDArray[np.int32]:
    """A value for every pair, some of them outside the grid."""
    grid = user_view().grid
    span = grid.highest - grid.lowest
    found = random.integers(grid.lowest - span, grid.highest + span, (users, items))
    return found.astype(np.int32)


@settings(max_examples=80)
@given(
    rated(),
    st.integers(0, 2**32),
    st.integers(0, 6),
    st.sampled_from([0.01, 0.3, 1.0]),
    st.booleans(),
)
def test_no_user_moves_the_table_more_than_recorded(
    some: tuple[Ratings, GridValues], seed: int, factors: int, constant: float, by_liking: bool
) -> None:
    ratings, _ = some
    random = np.random.default_rng(seed)
    spec = sums(released(random, ratings.shape[1], factors, constant, by_liking=by_liking))
    table, user = any_values(random, *ratings.shape), int(random.integers(ratings.shape[0]))
    others = ratings.select(ratings.rows() != user)
    one, other = (chosen_values(each, user_view(), table) for each in (ratings, others))
    assert_bounded(spec, one, other)
    (query,) = spec.queries
    assert (query.unit, query.rows) == (Unit.USER, Rows.ITEMS)


@settings(max_examples=80)
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 7, 60]), st.integers(0, 4), st.booleans())
def test_no_change_of_a_user_moves_the_table_more_than_recorded_under_rating(
    seed: int, items: int, factors: int, by_liking: bool
) -> None:
    random = np.random.default_rng(seed)
    spec = sums(released(random, items, factors, by_liking=by_liking), Unit.RATING)
    whole, table = every_pair(3, items), any_values(random, 3, items)
    mine, keep = whole.rows() == 0, random.random(len(whole)) < 0.6
    found = []
    for _ in range(2):
        keep[mine] = random.random(items) < random.choice([0.0, 0.3, 1.0])
        table[0] = any_values(random, 1, items)
        found.append(chosen_values(whole.select(keep.copy()), user_view(), table))
    assert_bounded(spec, *found)
    (query,) = spec.queries
    assert (query.unit, query.rows) == (Unit.RATING, Rows.CONTRIBUTIONS)


@pytest.mark.parametrize("by_liking", [False, True])
@pytest.mark.parametrize("count", [1, 16, 300])
def test_a_user_attains_the_bound(count: int, by_liking: bool) -> None:
    random = np.random.default_rng(0)
    spec = sums(released(random, count, 3, by_liking=by_liking))
    one = every_pair(1, count)
    values = chosen_values(one, user_view(), any_values(random, 1, count))
    ratio = largest_ratio(spec, values, pattern_of(one.select(np.zeros(count, bool))))
    assert 1 - Fraction(1, 10**3) < ratio <= 1


@pytest.mark.parametrize("count", [1, 16, 300])
def test_contributions_that_turn_around_nearly_attain_the_doubled_bound(count: int) -> None:
    # The two halves of the items have opposite factors, of which the constant takes a little.
    rows = np.repeat([[1.0], [-1.0]], count, axis=0)
    weights = np.full(2 * count, WEIGHT_MAX)
    spec = sums(InterestItems(rows=rows, weights=weights, constant=1e-4), Unit.RATING)
    whole = every_pair(1, 2 * count)
    first = np.arange(2 * count) < count
    one, other = (pattern_of(whole.select(chosen)) for chosen in (first, ~first))
    # Different items: the squares of both contributions add up, to half of (2·1)².
    assert largest_ratio(spec, one, other) == pytest.approx(Fraction(1, 2), abs=1e-3)
    same = InterestItems(
        rows=np.vstack([[[1.0]], np.full((count, 1), 1e-3), [[-1.0]]]),
        weights=np.concatenate([[1], np.full(count, WEIGHT_MAX), [1]]),
        constant=1e-4,
    )
    spec = sums(same, Unit.RATING)
    whole = every_pair(1, count + 2)
    places = np.arange(count + 2)
    one, other = (pattern_of(whole.select(places != end)) for end in (0, count + 1))
    if count == 300:
        # Two sets of items that differ in two light ones, with features of opposite sign.
        assert largest_ratio(spec, one, other) > Fraction(97, 100)


@pytest.mark.parametrize("by_liking", [False, True])
def test_sums_equal_those_of_an_obvious_loop(by_liking: bool) -> None:
    random = np.random.default_rng(4)
    whole = every_pair(6, 9)
    ratings = whole.select(random.random(len(whole)) < 0.5)
    items, table, grid = (
        released(random, 9, 2, by_liking=by_liking),
        any_values(random, 6, 9),
        user_view().grid,
    )
    (found,) = sums(items).exact(chosen_values(ratings, user_view(), table)).tables
    expected = np.zeros((9, 3))
    for user in range(6):
        mine = ratings.by_user.columns[ratings.rows() == user]
        if mine.size == 0:
            continue
        total = items.rows[mine].sum(axis=0)
        row = np.append(0.3, np.sqrt(1 - 0.3**2) * total / np.linalg.norm(total))
        liking = (table[user] - grid.lowest) / (grid.highest - grid.lowest)
        rated_weights = np.rint(16 * np.clip(liking, 0, 1) ** 2).clip(1) if by_liking else 1.0
        weights = items.weights * np.broadcast_to(rated_weights, 9)
        size = np.sqrt((weights[mine] ** 2.0).sum())
        for item in mine:
            expected[item] += weights[item] * row / size
    assert np.allclose(found * 2.0**-BOUND_BITS, expected, atol=1e-4)


def test_rows_of_other_users_have_the_same_bits_whoever_is_there() -> None:
    random = np.random.default_rng(5)
    whole = every_pair(40, 30)
    ratings = whole.select(random.random(len(whole)) < 0.4)
    items = released(random, 30, 5)
    spec = sums(items)
    (alone,) = spec.exact(pattern_of(ratings)).tables
    for user in range(5):
        only = ratings.select(ratings.rows() == user)
        rest = ratings.select(ratings.rows() != user)
        parts = (spec.exact(pattern_of(each)).tables[0] for each in (only, rest))
        assert np.array_equal(sum(parts), alone)


@given(st.integers(0, 2**32), st.integers(1, 25))
def test_bounded_rows_never_exceed_the_bound(seed: int, width: int) -> None:
    random = np.random.default_rng(seed)
    totals = random.integers(0, 10 ** random.integers(1, 9), 20)
    rows = directions(random.integers(-(2**40), 2**40, (20, width)))
    found = bounded_rows(rows, totals).astype(object)
    assert all(
        sum(int(each) ** 2 for each in row) * int(total) <= 1 << 2 * BOUND_BITS
        for row, total in zip(found, totals, strict=True)
    )
    assert not found[totals == 0].any()


def test_weights_that_are_not_divided_by_the_users_total_break_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planted bug: each contribution has norm 1, instead of all of a user together."""
    original = module.bounded_rows

    def rows(features: Floats, totals: Integers) -> npt.NDArray[np.int32]:
        return original(features, np.minimum(totals, WEIGHT_MAX**2))

    monkeypatch.setattr(module, "bounded_rows", rows)
    spec = sums(released(np.random.default_rng(0), 50, 2))
    one = every_pair(1, 50)
    gone = one.select(np.zeros(50, bool))
    assert largest_ratio(spec, pattern_of(one), pattern_of(gone)) > 1


def test_ratings_that_do_not_count_in_the_total_break_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planted bug: contributions are weighted by the ratings after they were divided."""
    original = UserInterestSums._features

    def features(self: UserInterestSums, pattern: Any, weights: Any, threads: Any) -> Any:
        return original(self, pattern, np.ones_like(weights), threads)

    monkeypatch.setattr(UserInterestSums, "_features", features)
    spec = sums(released(np.random.default_rng(0), 50, 2, by_liking=True))
    one = every_pair(1, 50)
    liked = constant_values(one, user_view(), user_view().grid.highest)
    assert largest_ratio(spec, liked, pattern_of(one.select(np.zeros(50, bool)))) > 1


@pytest.mark.parametrize(
    ("rows", "weights", "constant"),
    [
        (np.full((2, 1), np.nan), np.ones(2, np.int64), 0.3),
        (np.ones((2, 1)), np.zeros(2, np.int64), 0.3),
        (np.ones((2, 1)), np.full(2, 17), 0.3),
        (np.ones((2, 1)), np.ones(3, np.int64), 0.3),
        (np.ones((2, 1)), np.ones(2), 0.3),
        (np.ones((2, 1)), np.ones(2, np.int64), 0.0),
    ],
)
def test_items_that_could_break_the_bound_are_refused(
    rows: Floats, weights: npt.NDArray[np.int64], constant: float
) -> None:
    with pytest.raises(InvalidParameter, match="items must be finite"):
        InterestItems(rows=rows, weights=weights, constant=constant)
