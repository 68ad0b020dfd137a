"""Query answers under unit `rating`: adding or removing one rating keeps the recorded bound."""

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.accounting.events import BALANCED_SHARE, Rows
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import ValueGrid
from taciturn.mechanisms.query import Answer
from taciturn.queries.error_pass import ErrorPass
from taciturn.queries.features import AxisFeatures
from taciturn.queries.joint_errors import (
    Balance,
    JointErrorSums,
    classes_of,
    joint_bound,
    weights_by_class,
)
from taciturn.queries.pair_weights import BITS, CLASSES
from taciturn.queries.prediction_errors import pass_axis
from taciturn.queries.totals import COUNT_BITS, RatingTotals, scaled_powers
from taciturn.queries.values import GridValues, ValueView, on_grid
from tests.instruction_sets import on_every_set
from tests.queries.helpers import (
    GRIDS,
    LongFeatures,
    assert_bounded,
    chosen_values,
    constant_values,
    every_pair,
    pass_view,
    same_tables,
    squared_ratios,
)
from tests.solvers.helpers import random_ratings

GRID = GRIDS[0]

anything = st.integers(-(2**31), 2**31 - 1)


def random_features(
    shape: tuple[int, int], width: int, random: np.random.Generator
) -> list[AxisFeatures]:
    return [
        AxisFeatures(
            random.normal(size=(count, width)) * 3 / math.sqrt(width),
            random.uniform(0.1, 2, size=count),
            random.uniform(-4, 4, size=count),
        )
        for count in shape
    ]


def sums(
    both: list[AxisFeatures],
    threshold: int | None = None,
    *,
    grid: ValueGrid = GRID,
    balance: Balance | None = None,
    **options: Any,
) -> JointErrorSums:
    users, items = both
    shape = len(users), len(items)
    errors = ErrorPass(ValueView(grid=grid, axis=pass_axis(shape)), threshold=threshold, **options)
    if balance is None:
        balance = random_balance(shape, np.random.default_rng(0))
    return JointErrorSums(purpose="test", errors=errors, users=users, items=items, balance=balance)


def random_balance(shape: tuple[int, int], random: np.random.Generator) -> Balance:
    """Classes of counts from 1 to a million."""
    users, items = (np.exp(random.uniform(0, 14, count)) for count in shape)
    return Balance.of(users, items)


shapes = st.tuples(st.integers(1, 6), st.integers(1, 6))


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[Ratings, GridValues, GridValues]:
    """Ratings, their values, and the values without one of the ratings.

    Values may be off the grid. Users and items may have no ratings.
    """
    shape, grid = draw(shapes), draw(st.sampled_from(GRIDS))
    count = math.prod(shape)
    keep = np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    place = draw(st.integers(0, count - 1))
    ratings, without = every_pair(*shape), keep.copy()
    keep[place], without[place] = True, False
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    table = random.integers(grid.lowest - 30, grid.highest + 30, shape).astype(np.int32)
    table[divmod(place, shape[1])] = draw(anything | st.integers(grid.lowest, grid.highest))
    view, some = pass_view(ratings, grid), ratings.select(keep)
    return (
        some,
        chosen_values(some, view, table),
        chosen_values(ratings.select(without), view, table),
    )


@settings(max_examples=80)
@given(
    neighbours(),
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.none() | st.integers(1, 100),
    st.integers(0, 1),
)
def test_one_rating_never_moves_sums_more_than_recorded(
    both: tuple[Ratings, GridValues, GridValues],
    seed: int,
    width: int,
    threshold: int | None,
    first: int,
) -> None:
    ratings, one, other = both
    random = np.random.default_rng(seed)
    features = random_features(ratings.shape, width, random)
    balance = random_balance(ratings.shape, random)
    spec = sums(features, threshold, grid=one.view.grid, balance=balance, first=first)
    on_every_set(lambda: assert_bounded(spec, one, other))
    assert {query.unit for query in spec.queries} == {Unit.RATING}
    assert [query.rows for query in spec.queries] == [Rows.BALANCED, Rows.TOTAL]
    users, change = ratings.shape[0], spec.exact(one).tables[0] - spec.exact(other).tables[0]
    for rows in (change[:users], change[users:]):
        assert np.count_nonzero(rows.any(axis=1)) <= 1
    of_user = sum(int(each) ** 2 for each in change[:users].flat)
    assert of_user <= BALANCED_SHARE * Fraction(spec.queries[0].sensitivity) ** 2


@settings(max_examples=80)
@given(neighbours())
def test_one_rating_never_moves_totals_more_than_recorded(
    both: tuple[Ratings, GridValues, GridValues],
) -> None:
    ratings, one, other = both
    grid = one.view.grid
    spec = RatingTotals(shape=ratings.shape, view=one.view)
    assert_bounded(spec, one, other)
    assert {query.unit for query in spec.queries} == {Unit.RATING}
    users, items, totals = spec.exact(one).tables
    pattern = ratings.pattern
    assert np.array_equal(users[:, 0], pattern.by_user.counts << COUNT_BITS)
    assert np.array_equal(items[:, 0], pattern.by_item.counts << COUNT_BITS)
    largest = max(abs(grid.lowest), abs(grid.highest))
    parts = np.clip(one.steps, grid.lowest, grid.highest) / largest
    exact = totals[0] / 2.0**COUNT_BITS
    # Each term is rounded by less than a step, a square by less than three.
    assert (
        np.abs(exact - [parts.size, parts.sum(), (parts**2).sum()]).max()
        <= 3 * parts.size / 2**COUNT_BITS
    )


@pytest.mark.parametrize("shape", [(5, 3), (3, 5)])
def test_totals_do_not_depend_on_the_order_of_values(shape: tuple[int, int]) -> None:
    ratings = random_ratings(1, *shape)
    found = []
    for axis in Axis:
        view = ValueView(grid=GRID, axis=axis)
        found.append(RatingTotals(shape=shape, view=view).exact(on_grid(ratings, view)))
    assert same_tables(*found)


def test_scaled_powers_are_fractions_of_the_largest_value() -> None:
    for grid in GRIDS:
        ends = np.array([-(2**31), grid.lowest, 0, grid.highest, 2**31 - 1], dtype=np.int32)
        first, second = scaled_powers(ends, grid)
        one = 1 << COUNT_BITS
        assert abs(first).max() == second.max() == one and second.min() >= 0
        assert first[0] == first[1] and first[3] == first[4]
        assert np.array_equal(np.sign(first), np.sign(np.clip(ends, grid.lowest, grid.highest)))


def equal_classes(shape: tuple[int, int]) -> Balance:
    """The same class for every user and item: equal weights."""
    return Balance(users=np.full(shape[0], 3, np.uint8), items=np.full(shape[1], 3, np.uint8))


def worst_case(
    threshold: int | None,
    shape: tuple[int, int] = (4, 3),
    features: type[AxisFeatures] = AxisFeatures,
    balance: Balance | None = None,
) -> tuple[JointErrorSums, GridValues, GridValues]:
    """A spec, and values with and without a rating far from its prediction.

    Features have the maximum norm; predictions are at the lowest end, the value at the highest.
    """
    ratings = every_pair(*shape)
    both = [
        features(np.eye(count, 7) * 1.5, np.ones(count), np.full(count, -99.0)) for count in shape
    ]
    spec = sums(both, threshold, balance=balance or equal_classes(shape))
    without = ratings.select(np.arange(len(ratings)) != 5)
    one, other = (constant_values(some, spec.view, 2**31 - 1) for some in (ratings, without))
    return spec, one, other


def least_favourable(threshold: int, shape: tuple[int, int]) -> Balance:
    """The classes whose rounded weights add up to the most."""
    of_user, of_item = weights_by_class()
    moved = sum(
        ((threshold * each.astype(np.int64) + (1 << BITS - 1)) >> BITS) ** 2
        for each in (of_user, of_item)
    )
    user, item = np.unravel_index(np.argmax(moved), (CLASSES, CLASSES))
    return Balance(users=np.full(shape[0], user, np.uint8), items=np.full(shape[1], item, np.uint8))


@pytest.mark.parametrize("shape", [(4, 3), (3, 4)])
@pytest.mark.parametrize("threshold", [1, 50, 90])
def test_the_worst_case_attains_the_bounds(threshold: int, shape: tuple[int, int]) -> None:
    case = worst_case(threshold, shape, balance=least_favourable(threshold, shape))
    both, squares = squared_ratios(*case)
    # The bound of the first table is a square root, rounded up.
    assert 1 - 1e-14 < both <= 1 and squares == 1
    assert_bounded(*case)


def test_rounding_adds_little_to_the_bound() -> None:
    for threshold in (30, 31, 47, *range(64, 2**15, 97)):
        assert threshold * (1 - 1e-3) <= joint_bound(threshold) <= threshold + 1


def test_ratings_of_one_user_attain_the_bound_of_a_group() -> None:
    """All ratings of a user whose weight is the largest, in the same direction."""
    shape, threshold, grid = (9, 8), 5000, ValueGrid.for_scale(1, 5, 4096)
    both = [
        AxisFeatures(rows, np.ones(count), np.full(count, -99.0))
        for rows, count in zip((np.eye(9, 8), np.eye(8)[[0] * 8]), shape, strict=True)
    ]
    balance = Balance.of(np.full(9, 5.0), np.full(8, 1e6))
    spec, ratings = sums(both, threshold, grid=grid, balance=balance), every_pair(*shape)
    whole = constant_values(ratings, spec.view, 2**31 - 1)
    event = spec.queries[0]
    for group in range(1, 9):
        some = ratings.select((ratings.rows() != 2) | (ratings.by_user.columns >= group))
        other = constant_values(some, spec.view, 2**31 - 1)
        ratio = squared_ratios(spec, whole, other)[0]
        growth = BALANCED_SHARE * group**2 + (1 - BALANCED_SHARE) * group
        assert event.rows is Rows.BALANCED and 0.999 * growth < ratio <= growth


@pytest.mark.parametrize("grid", GRIDS)
def test_the_worst_case_attains_the_bounds_of_totals(grid: ValueGrid) -> None:
    ratings = every_pair(4, 3)
    end, view = max(grid.lowest, grid.highest, key=abs), pass_view(ratings, grid)
    one, other = (
        constant_values(some, view, end) for some in (ratings, ratings.select(np.arange(12) != 5))
    )
    users, items, totals = squared_ratios(RatingTotals(shape=(4, 3), view=view), one, other)
    # The bound of the last table is √3, rounded up.
    assert users == items == 1 and 1 - 1e-14 < totals <= 1


def test_a_threshold_that_is_not_applied_is_caught() -> None:
    case = worst_case(20)
    case[0]._pass.errors.threshold = 21
    assert min(squared_ratios(*case)) > 1


def test_features_that_are_too_long_are_caught() -> None:
    both, squares = squared_ratios(*worst_case(20, features=LongFeatures))
    assert both > 2 and squares == 1


class CountedSums(JointErrorSums):
    """Planted bug: weights follow from exact counts."""

    def exact(self, values: GridValues, threads: int | None = None) -> Answer:
        rows = values.pattern.counts.astype(float)
        columns = np.bincount(values.pattern.columns, minlength=values.pattern.width).astype(float)
        by_user = values.view.axis is Axis.USERS
        self._balance = Balance.of(*((rows, columns) if by_user else (columns, rows)))
        return super().exact(values, threads)


@pytest.mark.parametrize("bug", [JointErrorSums, CountedSums])
def test_weights_from_exact_counts_are_caught(bug: type[JointErrorSums]) -> None:
    """All errors are clipped, with one sign but that of the rating that is added."""
    shape = 8, 6
    ratings, view = every_pair(*shape), pass_view(every_pair(*shape), GRID)
    table = np.full(shape, GRID.lowest, dtype=np.int32)
    table[0, 5] = GRID.highest
    both = [AxisFeatures(np.ones((count, 1)), np.ones(count), np.ones(count)) for count in shape]
    spec = bug(
        purpose="test",
        errors=ErrorPass(view, threshold=20),
        users=both[0],
        items=both[1],
        balance=equal_classes(shape),
    )
    without = ratings.select((ratings.rows() != 0) | (ratings.by_user.columns != 5))
    one, other = (chosen_values(some, view, table) for some in (ratings, without))
    assert (squared_ratios(spec, one, other)[0] > 1) == (bug is CountedSums)


def test_weights_favour_the_side_with_fewer_ratings() -> None:
    of_user, of_item = (each / 2.0**BITS for each in weights_by_class())
    assert np.all(np.diff(of_user, axis=0) <= 0) and np.all(np.diff(of_user, axis=1) >= 0)
    assert np.all(of_user**2 + of_item**2 <= 1) and np.all(of_user**2 + of_item**2 > 0.999)
    assert of_user.max() ** 2 <= BALANCED_SHARE and of_item.max() < 1
    assert np.allclose(np.diag(of_user), math.sqrt(0.5), atol=1e-4)
    counts = np.array([-3.0, 0, 4, 5, 7.1, 10, 1e300])
    assert classes_of(counts).tolist() == [0, 0, 0, 0, 1, 2, CLASSES - 1]


@pytest.mark.parametrize("axis", list(Axis))
def test_moments_of_weights_are_those_of_random_ratings(axis: Axis) -> None:
    random = np.random.default_rng(3)
    counts = {Axis.USERS: random.uniform(1, 900, 40), Axis.ITEMS: random.uniform(1, 4000, 30)}
    balance = Balance.of(counts[Axis.USERS], counts[Axis.ITEMS])
    of_user, of_item = (
        each[balance.users][:, balance.items] / 2.0**BITS for each in weights_by_class()
    )
    table = of_user if axis is Axis.USERS else of_item.T
    shares = counts[axis.other] / counts[axis.other].sum()
    means, squares = balance.moments(axis, counts[axis.other])
    assert np.allclose(means, table @ shares) and np.allclose(squares, table**2 @ shares)


@pytest.mark.parametrize("width", [5, 33, 64])
def test_weighted_columns_do_not_change_predictions(width: int) -> None:
    """Errors are the same integers with the additional columns, however short these are."""
    random = np.random.default_rng(0)
    ratings = every_pair(9, 7)
    users, items = random_features(ratings.shape, width, random)
    weights = random.integers(0, 1 << 16, 9)
    columns = min(3, width)
    both = [users.with_weighted(weights, 16, columns), items.with_zeros(columns)]
    exact = users.packed[:, :columns] * weights[:, None] / 2**16
    assert np.array_equal(both[0].packed[:, width : width + columns], np.trunc(exact))
    assert not both[0].packed.flags.writeable and not both[0].packed[:, width + columns :].any()
    values = on_grid(ratings, pass_view(ratings, GRID))
    one, other = (sums(each).tables(values) for each in ([users, items], both))
    for first, second in ((one.users, other.users), (one.items, other.items)):
        assert np.array_equal(first, second[:, :width])


@pytest.mark.parametrize("shape", [(300, 40), (40, 300)])
def test_threads_and_instructions_change_nothing(shape: tuple[int, int]) -> None:
    ratings = random_ratings(4, *shape)
    both = random_features(shape, 33, np.random.default_rng(1))
    values = on_grid(ratings, pass_view(ratings, GRID))
    for spec in (sums(both, 30), RatingTotals(shape=shape, view=values.view)):
        one = spec.exact(values, 1)
        for threads in (1, 2, 5):
            every = on_every_set(partial(spec.exact, values, threads))
            assert all(same_tables(one, other) for other in every.values())


def test_bad_input_is_refused() -> None:
    ratings = every_pair(4, 3)
    both = random_features((4, 3), 2, np.random.default_rng(0))
    bad_thresholds: tuple[Any, ...] = (0, -3, 1.5, True)
    for threshold in bad_thresholds:
        with pytest.raises(InvalidParameter, match="threshold"):
            sums(both, threshold)
    users, items = both
    errors = ErrorPass(ValueView(grid=GRID, axis=Axis.ITEMS))
    with pytest.raises(InvalidParameter, match="longer axis"):
        JointErrorSums(
            purpose="test", errors=errors, users=users, items=items, balance=equal_classes((4, 3))
        )
    with pytest.raises(InvalidParameter, match="classes"):
        sums(both, balance=equal_classes((4, 4)))
    with pytest.raises(InvalidParameter, match="one width"):
        sums([users, random_features((4, 3), 3, np.random.default_rng(0))[1]])
    values = on_grid(ratings, pass_view(ratings, GRID))
    other = on_grid(ratings, pass_view(ratings, GRIDS[1]))
    for spec in (sums(both, 5), RatingTotals(shape=(4, 3), view=values.view)):
        with pytest.raises(InvalidParameter, match="another grid"):
            spec.exact(other)
    for shape in ((5, 3), (4, 2), (4, 4)):
        spec = sums(random_features(shape, 2, np.random.default_rng(0)), 5)
        with pytest.raises(InvalidParameter, match="match the ratings"):
            spec.exact(values)
