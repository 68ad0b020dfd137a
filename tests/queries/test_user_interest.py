"""Interest queries of whole users: any change of one user keeps the recorded bound."""

from fractions import Fraction

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
    constant_values,
    every_pair,
    largest_ratio,
    rated,
    user_view,
)

Integers = npt.NDArray[np.int64]


def released(
    random: np.random.Generator, items: int, factors: int, constant: float = 0.3
) -> InterestItems:
    return InterestItems(
        rows=random.normal(size=(items, factors)) * 10.0 ** random.integers(-3, 4),
        weights=random.integers(1, WEIGHT_MAX, items, endpoint=True),
        constant=constant,
    )


def sums(items: InterestItems, unit: Unit = Unit.USER) -> UserInterestSums:
    return UserInterestSums(purpose="test", view=user_view(), items=items, unit=unit)


def pattern_of(ratings: Ratings) -> GridValues:
    return constant_values(ratings, user_view(), 0)


@settings(max_examples=80)
@given(rated(), st.integers(0, 2**32), st.integers(0, 6), st.sampled_from([0.01, 0.3, 1.0]))
def test_no_user_moves_the_table_more_than_recorded(
    some: tuple[Ratings, GridValues], seed: int, factors: int, constant: float
) -> None:
    ratings, _ = some
    random = np.random.default_rng(seed)
    spec = sums(released(random, ratings.shape[1], factors, constant))
    user = int(random.integers(ratings.shape[0]))
    others = ratings.select(ratings.rows() != user)
    assert_bounded(spec, pattern_of(ratings), pattern_of(others))
    (query,) = spec.queries
    assert (query.unit, query.rows) == (Unit.USER, Rows.ITEMS)


@settings(max_examples=80)
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 7, 60]), st.integers(0, 4))
def test_no_change_of_a_user_moves_the_table_more_than_recorded_under_rating(
    seed: int, items: int, factors: int
) -> None:
    random = np.random.default_rng(seed)
    spec = sums(released(random, items, factors), Unit.RATING)
    whole = every_pair(3, items)
    mine, keep = whole.rows() == 0, random.random(len(whole)) < 0.6
    found = []
    for _ in range(2):
        keep[mine] = random.random(items) < random.choice([0.0, 0.3, 1.0])
        found.append(pattern_of(whole.select(keep.copy())))
    assert_bounded(spec, *found)
    (query,) = spec.queries
    assert (query.unit, query.rows) == (Unit.RATING, Rows.CONTRIBUTIONS)


@pytest.mark.parametrize("count", [1, 16, 300])
def test_a_user_attains_the_bound(count: int) -> None:
    random = np.random.default_rng(0)
    spec = sums(released(random, count, 3))
    one = every_pair(1, count)
    ratio = largest_ratio(spec, pattern_of(one), pattern_of(one.select(np.zeros(count, bool))))
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


def test_sums_equal_those_of_an_obvious_loop() -> None:
    random = np.random.default_rng(4)
    whole = every_pair(6, 9)
    ratings = whole.select(random.random(len(whole)) < 0.5)
    items = released(random, 9, 2)
    (found,) = sums(items).exact(pattern_of(ratings)).tables
    expected = np.zeros((9, 3))
    for user in range(6):
        mine = ratings.by_user.columns[ratings.rows() == user]
        if mine.size == 0:
            continue
        total = items.rows[mine].sum(axis=0)
        row = np.append(0.3, np.sqrt(1 - 0.3**2) * total / np.linalg.norm(total))
        size = np.sqrt((items.weights[mine] ** 2.0).sum())
        for item in mine:
            expected[item] += items.weights[item] * row / size
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
