"""Tables under unit `user`: a person more or less never moves them more than booked."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from taciturn.accounting.units import Unit
from taciturn.data.ratings import Csr, Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import ValueGrid
from taciturn.mechanisms.query import JointMeasurement
from taciturn.queries import per_user as module
from taciturn.queries.per_user import Items, People, PersonSums, PersonTotals, weights
from taciturn.queries.prediction_errors import COUNT_BITS, NORM, Side
from tests.queries.test_rating_unit import (
    GRIDS,
    LongSide,
    Values,
    World,
    assert_bounded,
    everybody,
    largest_ratio,
    squared_ratios,
)
from tests.solvers.helpers import random_ratings

GRID = GRIDS[0]
ONE = 1 << COUNT_BITS

Measure = Callable[[People], JointMeasurement]
Floats = npt.NDArray[np.float64]


def random_items(random: np.random.Generator, count: int, width: int, length: float = 1.0) -> Items:
    return Items(
        rows=random.normal(size=(count, width)) * length,
        ridge=10.0 ** random.uniform(-1, 2, width),
        constant=10.0 ** random.uniform(-1, 1),
    )


def sums(people: People, items: Items, limit: int = 40, **options: Any) -> PersonSums:
    facts: dict[str, Any] = {"mean": 2.5, "values": GRID} | options
    return PersonSums(purpose="test", people=people, items=items, limit=limit, **facts)


def without(ratings: Ratings, user: int) -> Ratings:
    """Return the ratings of everybody else, the list of users without this one too."""
    rest = ratings.select(ratings.rows() != user).by_user
    others = np.arange(ratings.shape[0]) != user
    return Ratings(
        user_ids=ratings.user_ids.filter(pl.Series(others)),
        item_ids=ratings.item_ids,
        scale=ratings.scale,
        by_user=Csr(np.delete(rest.starts, user), rest.columns, rest.codes),
    )


def worlds(measure: Measure, ratings: Ratings, values: Values, user: int) -> list[World]:
    """Return the world, the same without a user's ratings, and without the user altogether."""
    others = ratings.rows() != user
    return [
        (measure(People(ratings)), values),
        (measure(People(ratings.select(others))), values[others]),
        (measure(People(without(ratings, user))), values[others]),
    ]


def assert_hidden(measure: Measure, ratings: Ratings, values: Values, user: int) -> None:
    one, silent, absent = worlds(measure, ratings, values, user)
    assert_bounded(one, silent)
    assert_bounded(one, absent)
    assert largest_ratio(silent, absent) == 0
    assert {query.unit for query in one[0].queries} == {Unit.USER}


@st.composite
def rated(draw: st.DrawFn) -> tuple[Ratings, Values, ValueGrid]:
    """Draw ratings of a few people, who have none, one, some or very many; values of any size."""
    users, items = draw(st.integers(2, 5)), draw(st.sampled_from([1, 2, 5, 30, 300]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    counts = draw(st.lists(st.sampled_from([0, 1, 2, 7, 100, 300]), min_size=users, max_size=users))
    order = random.random((users, items)).argsort(axis=1)
    ratings = everybody(users, items).select((order < np.array(counts)[:, None]).ravel())
    grid = draw(st.sampled_from(GRIDS))
    values = random.integers(grid.lowest - 30, grid.highest + 30, len(ratings)).astype(np.int32)
    if values.size:
        extreme = draw(st.sampled_from([-(2**31), grid.lowest, grid.highest, 2**31 - 1]))
        values[random.random(values.size) < draw(st.sampled_from([0.0, 0.3, 1.0]))] = extreme
    return ratings, values, grid


@settings(max_examples=60)
@given(rated(), st.data())
def test_nobody_moves_totals_more_than_booked(
    some: tuple[Ratings, Values, ValueGrid], data: st.DataObject
) -> None:
    ratings, values, grid = some
    user = data.draw(st.integers(0, ratings.shape[0] - 1))
    assert_hidden(lambda people: PersonTotals(people, grid), ratings, values, user)


@settings(max_examples=80)
@given(
    rated(),
    st.data(),
    st.integers(0, 2**32),
    st.integers(1, 6),
    st.sampled_from([0.01, 1.0, 30.0]),
    st.integers(1, 100),
    st.floats(-100, 100),
    st.booleans(),
)
def test_nobody_moves_sums_more_than_booked(
    some: tuple[Ratings, Values, ValueGrid],
    data: st.DataObject,
    seed: int,
    width: int,
    length: float,
    limit: int,
    mean: float,
    portable: bool,
) -> None:
    ratings, values, grid = some
    items = random_items(np.random.default_rng(seed), ratings.shape[1], width, length)
    user = data.draw(st.integers(0, ratings.shape[0] - 1))
    assert_hidden(
        lambda people: sums(people, items, limit, mean=mean, values=grid, portable=portable),
        ratings,
        values,
        user,
    )


def worst_worlds(count: int, limit: int = 40, constant: float = 1.9) -> list[World]:
    """Return worlds with and without a person whose `count` ratings are far from predictions.

    Items say nothing and the ridge holds the person's bias, so that predictions are the mean, and
    the constant is the person's whole feature.
    """
    items = Items(rows=np.zeros((count, 3)), ridge=np.array([1e12, 1.0, 1.0]), constant=constant)
    ratings = everybody(2, count)
    values = np.full(len(ratings), 2**31 - 1, dtype=np.int32)
    return worlds(lambda people: sums(people, items, limit, mean=1.0), ratings, values, 0)


@pytest.mark.parametrize("count", [1, 2, 3, 16, 300, 3000])
def test_the_worst_case_comes_close_to_the_bounds(count: int) -> None:
    """Reached exactly if the weight 1/√n is on the grid.

    Otherwise a weighted feature, NORM/√n steps long, is cut to whole steps: √n/NORM is lost at
    most, 0.4 % for 3,000 ratings.
    """
    one, *others = worst_worlds(count)
    for other in others:
        assert_bounded(one, other)
        by_item, products, squares = squared_ratios(one, other)
        assert (1 - math.sqrt(count) / NORM) ** 2 <= by_item <= 1 and by_item > 0.98**2
        assert products == squares == 1
        if count in (1, 16):
            assert by_item == 1


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("count", [1, 2, 3, 16, 300, 3000])
def test_the_worst_case_reaches_the_bounds_of_totals(count: int, grid: ValueGrid) -> None:
    ratings = everybody(2, count)
    end = max(grid.lowest, grid.highest, key=abs)
    values = np.full(len(ratings), end, dtype=np.int32)
    one, *others = worlds(lambda people: PersonTotals(people, grid), ratings, values, 0)
    for other in others:
        by_item, totals = squared_ratios(one, other)
        # A weight of 2^26/√n steps loses less than one; the other bound is √3, rounded up.
        assert (1 - math.sqrt(count) / ONE) ** 2 <= by_item <= 1
        assert 1 - 1e-14 < totals <= 1


def test_a_forgotten_weight_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "weights", lambda counts: np.full(counts.shape, ONE))
    one, *others = worst_worlds(16)
    ratings = everybody(2, 16)
    values = np.zeros(len(ratings), dtype=np.int32)
    totals = worlds(lambda people: PersonTotals(people, GRID), ratings, values, 0)
    for other in others:
        assert squared_ratios(one, other) == [16, 1, 1]
        assert largest_ratio(totals[0], totals[1]) == 16


def test_a_limit_that_is_not_applied_is_caught() -> None:
    one, *others = worst_worlds(16)
    for measurement, _ in (one, *others):
        measurement._pass.limit += 1  # type: ignore[attr-defined]
    for other in others:
        by_item, _, squares = squared_ratios(one, other)
        assert by_item > 1 and squares > 1


def test_features_that_are_too_long_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Side", LongSide)
    one, *others = worst_worlds(16)
    for other in others:
        by_item, products, _ = squared_ratios(one, other)
        assert by_item > 1.8**2 and products > 1.8**4


def test_features_are_cut_even_if_nobody_divides_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def undivided(rows: Floats, shrink: Floats, base: Floats) -> Side:
        return Side(rows, np.ones_like(shrink), base)

    monkeypatch.setattr(module, "Side", undivided)
    one, *others = worst_worlds(16)
    for other in others:
        assert_bounded(one, other)


def test_weights_never_exceed_their_share() -> None:
    """In whole numbers: n·w² ≤ 2^52 means w² ≤ ⌊2^52/n⌋. No larger weight would do."""
    counts = np.arange(1, 10**6 + 1)
    found, most = weights(counts), ONE**2 // counts
    assert (found**2 <= most).all() and ((found + 1) ** 2 > most).all()
    assert weights(np.array([0, 4, 0])).tolist() == [0, ONE // 2, 0]


@given(st.integers(1, 2**40))
@example(2**40)
@example(2**31 - 1)
def test_weights_of_very_many_ratings(count: int) -> None:
    found = int(weights(np.array([count]))[0])
    assert count * found**2 <= ONE**2
    assert 0 <= math.isqrt(ONE**2 // count) - found <= 1


def slow_totals(ratings: Ratings, values: Values, grid: ValueGrid) -> tuple[Floats, Floats]:
    """Return both tables, person by person."""
    items, totals = np.zeros(ratings.shape[1]), np.zeros(3)
    for user in range(ratings.shape[0]):
        own = ratings.rows() == user
        if not own.any():
            continue
        items[ratings.by_user.columns[own]] += 1 / math.sqrt(own.sum())
        parts = (
            np.clip(values[own], grid.lowest, grid.highest)
            / np.abs([grid.lowest, grid.highest]).max()
        )
        totals += [1, parts.mean(), (parts**2).mean()]
    return items[:, None], totals[None, :]


@settings(max_examples=40)
@given(rated())
def test_totals_match_the_reference(some: tuple[Ratings, Values, ValueGrid]) -> None:
    ratings, values, grid = some
    found = PersonTotals(People(ratings), grid).exact(values)
    expected = (each * ONE for each in slow_totals(ratings, values, grid))
    items, totals = (np.abs(one - two) for one, two in zip(found, expected, strict=True))
    # A weight loses less than a step; a mean another, as the values it is taken of do.
    people = ratings.shape[0]
    assert items.max() <= people
    assert totals[0, 0] == 0 and totals.max() <= 2 * people


def slow_sums(
    ratings: Ratings, values: Values, items: Items, mean: float, limit: float, grid: ValueGrid
) -> tuple[Floats, Floats, float, float]:
    """Return the three tables in the units of the ratings, person by person.

    The last number is how far rounded features may move a prediction, relative to 2^−14.
    """
    low, high, step = grid.lowest, grid.highest, 2.0**grid.exponent
    beyond = math.ceil(grid.range / 2)
    sums, squares, moved = np.zeros_like(items.rows), 0.0, 0.0
    products = np.zeros((items.width, items.width))
    lengths = np.linalg.norm(items.rows, axis=1)
    for user in range(ratings.shape[0]):
        own = ratings.rows() == user
        if not own.any():
            continue
        rated, value = ratings.by_user.columns[own], np.clip(values[own], low, high) * step
        design = items.rows[rated].copy()
        design[:, 0] = 1
        known = mean + items.rows[rated, 0]
        normal = design.T @ design + np.diag(items.ridge)
        row = np.linalg.solve(normal, design.T @ (value - known))
        predicted = np.clip(known + design @ row, (low - beyond) * step, (high + beyond) * step)
        residual = np.clip(predicted - value, -limit, limit)
        feature = np.array([items.constant, *row[1:]])
        length = float(np.linalg.norm(feature))
        sums[rated] += np.outer(residual, feature / length) / math.sqrt(value.size)
        products += np.outer(feature, feature) / length**2
        squares += float(np.mean(residual**2))
        # A step for each coordinate of either side, √n of them once features are weighted.
        rounded = math.sqrt(items.width) * (2 + math.sqrt(value.size))
        moved = max(moved, rounded * length * float(lengths[rated].max()))
    return sums, products[np.triu_indices(items.width)], squares, moved


@settings(max_examples=60)
@given(
    st.integers(0, 2**32),
    st.integers(1, 5),
    st.sampled_from([0.1, 0.5, 2.0, 100.0]),
    st.sampled_from([0.1, 1.0, 3.0]),
    st.booleans(),
)
def test_sums_match_the_reference(
    seed: int, width: int, limit: float, length: float, portable: bool
) -> None:
    random = np.random.default_rng(seed)
    ratings = everybody(15, 10)
    ratings = ratings.select(random.random(len(ratings)) < random.uniform(0.1, 0.9))
    grid = ValueGrid.for_scale(1, 5, 4096)
    values = random.integers(grid.lowest - 300, grid.highest + 300, len(ratings)).astype(np.int32)
    items, step = random_items(random, 10, width, length), 2.0**grid.exponent
    steps = round(limit / step)
    facts = {"values": grid, "mean": 2.75, "portable": portable}
    measurement = sums(People(ratings), items, steps, **facts)
    by_item, products, squares = (
        table * query.step
        for table, query in zip(measurement.exact(values, 2), measurement.queries, strict=True)
    )
    slow = slow_sums(ratings, values, items, 2.75, steps * step, grid)
    slow_by_item, slow_products, slow_squares, moved = slow
    # Residuals are rounded to half a step, features to 2^−14, and once more when weighted.
    error, largest = step + moved / NORM, min(limit, 1.5 * 4) + step
    counts = np.diff(ratings.by_item.starts)[:, None]
    assert (np.abs(by_item - slow_by_item) <= counts * (error + 2 * largest / NORM)).all()
    assert np.abs(products[0] - slow_products).max() <= 15 * 2 / NORM
    assert abs(squares[0, 0] - slow_squares) <= 15 * (2 * largest * error + step**2)


def test_residuals_on_the_grid_match_exactly() -> None:
    """One item that is the mean, people who stay at it: residuals are the values themselves."""
    ratings = everybody(3, 1)
    items = Items(rows=np.zeros((1, 2)), ridge=np.array([1e12, 1.0]), constant=0.5)
    values = np.array([GRID.lowest, GRID.lowest + 3, GRID.highest], dtype=np.int32)
    measurement = sums(People(ratings), items, 40, mean=1.0)
    by_item, products, squares = measurement.exact(values)
    assert by_item.tolist() == [[-(3 + 40) * NORM, 0]]
    assert products.tolist() == [[3 * NORM**2, 0, 0]]
    squared_step = 4.0**GRID.exponent
    assert squares.tolist() == [[(9 + 1600) * squared_step / measurement.queries[2].step]]


@pytest.mark.parametrize("size", [0.99e29, 3e29, 1e200, np.inf, np.nan])
def test_no_solved_row_is_an_error(size: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long one user's row is: an exception, or a warning, would depend on their ratings."""
    ratings, width = everybody(4, 3), 200
    items = random_items(np.random.default_rng(0), 3, width)

    def solve(self: Items, starts: Any, *rest: Any) -> np.ndarray:
        rows = np.zeros((starts.size - 1, width))
        rows[1] = size
        return rows

    monkeypatch.setattr(Items, "solve", solve)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tables = sums(People(ratings), items).exact(GRID.quantise(ratings.values()), 1)
    assert all(table.dtype == np.int64 for table in tables)


def test_threads_and_instructions_change_nothing() -> None:
    random = np.random.default_rng(7)
    ratings = random_ratings(3, 400, 60)
    people, items = People(ratings), random_items(random, 60, 34)
    values = GRID.quantise(ratings.values())
    expected = sums(people, items).exact(values, 1), PersonTotals(people, GRID).exact(values, 1)
    for portable in (False, True):
        for threads in (1, 2, 5):
            found = (
                sums(people, items, portable=portable).exact(values, threads),
                PersonTotals(people, GRID).exact(values, threads),
            )
            for one, two in zip(expected, found, strict=True):
                assert all(map(np.array_equal, one, two))


def test_bad_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ratings, random = everybody(4, 3), np.random.default_rng(0)
    people, items = People(ratings), random_items(random, 3, 2)
    values = GRID.quantise(ratings.values())
    wrong: list[Any] = [values[1:], values.astype(np.int64), values.astype(np.float32)]
    for bad in wrong:
        for measurement in (sums(people, items), PersonTotals(people, GRID)):
            with pytest.raises(InvalidParameter, match="32-bit"):
                measurement.exact(bad)
    for limit in (0, -3, 1.5, True, None):
        with pytest.raises(InvalidParameter, match="limit"):
            sums(people, items, limit)  # type: ignore[arg-type]
    for count in (2, 4):
        with pytest.raises(InvalidParameter, match="items"):
            sums(people, random_items(random, count, 2))
    rows = items.rows.copy()
    rows[2, 1] = math.nan
    with pytest.raises(InvalidParameter, match="finite"):
        sums(people, Items(rows=rows, ridge=items.ridge, constant=1.0))
    monkeypatch.setattr(module, "PEOPLE_MAX", 4)
    with pytest.raises(InvalidParameter, match="people"):
        People(ratings)
