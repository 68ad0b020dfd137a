"""Pair weights of the fused pass: exact, and the same for any threads and instructions."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from taciturn import _core
from taciturn.data.pattern import Axis
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import ValueGrid
from taciturn.queries.error_pass import ErrorPass, ErrorSums, margin_max
from taciturn.queries.features import NORM, AxisFeatures
from taciturn.queries.pair_weights import BITS, CLASSES, PairWeights
from taciturn.queries.reference import reference_tables, weighted
from taciturn.queries.values import GridValues, ValueView, on_grid
from tests.instruction_sets import every_set, on_every_set
from tests.queries.helpers import Both, constant_values, random_features
from tests.solvers.helpers import random_ratings

GRID = ValueGrid.for_scale(1, 5, 64)
ONE = 2**BITS


def random_weights(ratings: Ratings, seed: int = 0) -> PairWeights:
    """Weights with users as rows; some are exactly 0 or 1."""
    random = np.random.default_rng(seed)
    tables = random.integers(-ONE // 4, ONE * 5 // 4, size=(2, CLASSES, CLASSES)).clip(0, ONE)
    rows, others = (random.integers(0, CLASSES, size=n).astype(np.uint8) for n in ratings.shape)
    of_rows, of_others = tables.astype(np.int32)
    return PairWeights(rows=rows, others=others, of_rows=of_rows, of_others=of_others)


def constant_weights(ratings: Ratings, of_rows: int, of_others: int) -> PairWeights:
    """One weight for all terms in the sums of rows, and one for those of counterparts."""
    shape = CLASSES, CLASSES
    return replace(
        random_weights(ratings),
        of_rows=np.full(shape, of_rows, dtype=np.int32),
        of_others=np.full(shape, of_others, dtype=np.int32),
    )


def run(
    ratings: Ratings,
    both: Both,
    weights: PairWeights | None,
    *,
    axis: Axis = Axis.USERS,
    values: GridValues | None = None,
    threads: int = 1,
    grid: ValueGrid = GRID,
    **options: Any,
) -> ErrorSums:
    """Sums of a pass along an axis, with users as rows of the weights and of the result."""
    view = ValueView(grid=grid, axis=axis)
    errors = ErrorPass(view, **options)
    values = on_grid(ratings, view) if values is None else values
    if axis is Axis.USERS:
        return errors.run(values, *both, threads, weights)
    weights = None if weights is None else weights.swapped()
    found = errors.run(values, *both[::-1], threads, weights)
    squares = np.array([found.squares.sum()])
    return ErrorSums(rows=found.others, others=found.rows, squares=squares)


def assert_matches_reference(
    ratings: Ratings,
    both: Both,
    weights: PairWeights,
    *,
    axis: Axis,
    threads: int,
    **options: Any,
) -> None:
    """Compare the sums on every instruction set with the slow reference."""
    every = on_every_set(lambda: run(ratings, both, weights, axis=axis, threads=threads, **options))
    expected = reference_tables(ratings, *both, GRID, weights=weights, **options)
    for name, found in every.items():
        assert np.array_equal(found.rows, expected.users), name
        assert np.array_equal(found.others, expected.items), name
        assert found.squares.sum() == expected.squares, name


def same_sums(one: ErrorSums, other: ErrorSums) -> bool:
    return (
        np.array_equal(one.rows, other.rows)
        and np.array_equal(one.others, other.others)
        and np.array_equal(one.squares, other.squares)
    )


@settings(max_examples=60)
@given(
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(1, 130),
    st.integers(0, 3),
    st.none() | st.integers(1, 100),
    st.sampled_from(Axis),
    st.integers(1, 4),
)
@example(1, 3, 40, 33, 1, None, Axis.USERS, 1)
@example(2, 40, 3, 128, 0, 1, Axis.ITEMS, 2)
@example(3, 30, 30, 129, 2, 7, Axis.USERS, 3)
@example(4, 30, 30, 64, 1, 7, Axis.ITEMS, 2)
def test_weighted_sums_of_errors_match_the_reference(
    seed: int,
    users: int,
    items: int,
    width: int,
    first: int,
    threshold: int | None,
    axis: Axis,
    threads: int,
) -> None:
    ratings = random_ratings(seed, users, items, density=0.6)
    assert_matches_reference(
        ratings,
        random_features(ratings, width, seed),
        random_weights(ratings, seed),
        axis=axis,
        threads=threads,
        first=min(first, width),
        margin=0.5,
        threshold=threshold,
    )


@pytest.mark.parametrize("length", [2.0, 6.0, 12.0, 1000.0])
@pytest.mark.parametrize("threshold", [None, 5, 300])
@pytest.mark.parametrize("axis", Axis)
def test_weighted_errors_far_beyond_the_scale_are_exact(
    length: float, threshold: int | None, axis: Axis
) -> None:
    """Few, most or all errors are too large for the usual sums, or clipped."""
    ratings = random_ratings(3, 60, 40, density=0.7)
    assert_matches_reference(
        ratings,
        random_features(ratings, 20, 5, length),
        random_weights(ratings),
        axis=axis,
        threads=2,
        first=0,
        margin=margin_max(GRID),
        threshold=threshold,
    )


@pytest.mark.parametrize("shape", [(900, 60), (60, 900)])
@pytest.mark.parametrize("width", [5, 16, 20, 23, 31, 40, 50, 56, 84, 128, 200])
def test_threads_and_instructions_change_no_weighted_sum(
    shape: tuple[int, int], width: int
) -> None:
    ratings = random_ratings(4, *shape)
    both, weights = random_features(ratings, width), random_weights(ratings)
    one = run(ratings, both, weights)
    assert not same_sums(one, run(ratings, both, None))
    for threads in (1, 2, 3, 7):
        every = on_every_set(partial(run, ratings, both, weights, threads=threads))
        assert all(same_sums(one, other) for other in every.values())


@pytest.mark.parametrize("length", [2.0, 12.0])
@pytest.mark.parametrize("width", [1, 16, 40, 64, 130])
@every_set
def test_weights_of_one_change_nothing(length: float, width: int) -> None:
    ratings = random_ratings(5, 70, 50, density=0.7)
    both = random_features(ratings, width, 5, length)
    for axis in Axis:
        options: dict[str, Any] = {"axis": axis, "margin": margin_max(GRID)}
        weights = constant_weights(ratings, ONE, ONE)
        plain = run(ratings, both, None, **options)
        assert same_sums(plain, run(ratings, both, weights, **options))


@pytest.mark.parametrize("length", [2.0, 12.0])
@every_set
def test_weights_of_zero_give_sums_of_zero(length: float) -> None:
    """Each table has weights of its own, and squares have none."""
    ratings = random_ratings(6, 70, 50, density=0.7)
    both = random_features(ratings, 20, 5, length)
    options: dict[str, Any] = {"margin": margin_max(GRID)}
    plain = run(ratings, both, None, **options)
    for of_rows, of_others in ((0, 0), (ONE, 0), (0, ONE)):
        found = run(ratings, both, constant_weights(ratings, of_rows, of_others), **options)
        assert np.array_equal(found.rows, plain.rows * (of_rows // ONE))
        assert np.array_equal(found.others, plain.others * (of_others // ONE))
        assert np.array_equal(found.squares, plain.squares)


@every_set
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("error", "weight", "expected"),
    [
        (1, ONE // 2, 1),
        (1, ONE // 2 - 1, 0),
        (3, ONE // 2, 2),
        (5, ONE // 4, 1),
        (6, ONE // 4, 2),
    ],
)
def test_ties_are_rounded_away_from_zero(error: int, weight: int, expected: int, sign: int) -> None:
    error, expected = sign * error, sign * expected
    assert weighted(error, weight) == expected
    ratings = random_ratings(0, 4, 3)
    grid = ValueGrid.for_scale(-4, 4, 64)
    both = [AxisFeatures(np.eye(n, 4) * 9, np.ones(n), np.zeros(n)) for n in ratings.shape]
    view = ValueView(grid=grid, axis=Axis.USERS)
    found = run(
        ratings,
        (both[0], both[1]),
        constant_weights(ratings, weight, ONE),
        values=constant_values(ratings, view, -error),
        grid=grid,
        first=4,  # all predictions are zero
    )
    counts = ratings.pattern.by_user.counts
    assert np.array_equal(found.rows.sum(axis=1), expected * NORM * counts)
    assert np.array_equal(found.others.sum(axis=1), error * NORM * ratings.pattern.by_item.counts)


@given(st.integers(0, ONE))
@example(0)
@example(ONE - 1)
@example(ONE)
def test_a_weighted_error_never_moves_further_than_the_error(weight: int) -> None:
    found = np.array([weighted(error, weight) for error in range(-600, 601)])
    assert found[600] == 0 and np.array_equal(found, -found[::-1])
    assert set(np.diff(found)) <= {0, 1}


@every_set
@pytest.mark.parametrize("levels", [64, 8192])
@pytest.mark.parametrize("shape", [(3000, 2), (2, 3000), (60, 50), (900, 800)])
def test_weighted_long_rows_at_the_extremes_do_not_overflow(
    shape: tuple[int, int], levels: int
) -> None:
    """Longest feature rows and largest errors: sums exceed 32 bits."""
    ratings = random_ratings(0, *shape, density=1.0)
    grid, weights = ValueGrid.for_scale(1, 5, levels), random_weights(ratings)
    users, items = (
        AxisFeatures(np.ones((count, 1)), np.ones(count), np.full(count, 100.0))
        for count in ratings.shape
    )
    values = constant_values(ratings, ValueView(grid=grid, axis=Axis.USERS), -(2**31))
    found = run(ratings, (users, items), weights, values=values, grid=grid, threads=2)
    largest = math.ceil(grid.range * 1.5)
    of_rows, of_others = (
        (largest * table.astype(np.int64)[weights.rows][:, weights.others] + ONE // 2) // ONE
        for table in (weights.of_rows, weights.of_others)
    )
    assert np.array_equal(found.rows[:, 0], of_rows.sum(axis=1) * NORM)
    assert np.array_equal(found.others[:, 0], of_others.sum(axis=0) * NORM)
    assert (found.squares == ratings.shape[1] * largest**2).all()


def arrays() -> dict[str, npt.NDArray[Any]]:
    """Fields of valid weights of 3 rows and 4 counterparts."""
    return {
        "rows": np.full(3, CLASSES - 1, dtype=np.uint8),
        "others": np.zeros(4, dtype=np.uint8),
        "of_rows": np.full((CLASSES, CLASSES), ONE, dtype=np.int32),
        "of_others": np.zeros((CLASSES, CLASSES), dtype=np.int32),
    }


@pytest.mark.parametrize("name", ["rows", "others"])
@pytest.mark.parametrize(
    "bad",
    [
        np.array([0, CLASSES], dtype=np.uint8),
        np.array([255], dtype=np.uint8),
        np.zeros(4, dtype=np.int64),
        np.zeros((2, 2), dtype=np.uint8),
        np.zeros((), dtype=np.uint8),
    ],
)
def test_classes_out_of_range_are_refused(name: str, bad: npt.NDArray[Any]) -> None:
    with pytest.raises(InvalidParameter, match=f"classes of {name} .* from 0 to 63"):
        PairWeights(**(arrays() | {name: bad}))


@pytest.mark.parametrize("name", ["of_rows", "of_others"])
def test_weights_out_of_range_are_refused(name: str) -> None:
    for bad in (-1, ONE + 1, -(2**31), 2**31 - 1):
        fields = arrays()
        fields[name][5, 7] = bad
        with pytest.raises(InvalidParameter, match=rf"{name} must be between 0 and 2\^14"):
            PairWeights(**fields)
    good = arrays()[name]
    for table in (good[:-1], good[:, :-1], good.ravel(), good.astype(np.int64), good / 2):
        with pytest.raises(InvalidParameter, match=f"{name} must be 64 × 64 integers"):
            PairWeights(**(arrays() | {name: table}))


def test_weights_are_copied_and_cannot_be_changed() -> None:
    fields = arrays()
    weights = PairWeights(**fields)
    for name, array in fields.items():
        before, copy = array.copy(), getattr(weights, name)
        array += 1
        assert np.array_equal(copy, before)
        with pytest.raises(ValueError, match="read-only"):
            copy[0] = 0


def test_swapping_weights_twice_gives_the_same_weights() -> None:
    weights = random_weights(random_ratings())
    once, twice = weights.swapped(), weights.swapped().swapped()
    assert once.of_rows[3, 8] == weights.of_others[8, 3]
    for name in arrays():
        assert np.array_equal(getattr(weights, name), getattr(twice, name))


def test_weights_of_other_rows_are_refused() -> None:
    ratings = random_ratings(0, 30, 20)
    both, weights = random_features(ratings, 4), random_weights(ratings)
    with pytest.raises(InvalidParameter, match="weights of a pass must match"):
        run(ratings, both, weights.swapped())
    with pytest.raises(InvalidParameter, match="weights of a pass must match"):
        run(ratings, both, random_weights(random_ratings(0, 30, 21)))


def call_kernel(weights: Any) -> npt.NDArray[np.int64]:
    """Sums by row of the kernel itself, over three rows of one rating each."""
    found = np.empty((3, 1), dtype=np.int64)
    _core.error_sums(
        np.arange(4, dtype=np.int64),
        np.arange(3, dtype=np.int32),
        np.full(3, -2, dtype=np.int32),
        (-5, 5),
        (-5, 5),
        1,
        5,
        np.ones((3, 32), dtype=np.int16),
        np.zeros((3, 2), dtype=np.float32),
        np.ones((4, 32), dtype=np.int16),
        np.zeros((4, 2), dtype=np.float32),
        found,
        np.zeros((4, 1), dtype=np.int64),
        np.empty(3, dtype=np.int64),
        0,
        3,
        weights=weights,
    )
    return found


@every_set
def test_weights_that_do_not_fit_are_refused_by_the_kernel() -> None:
    good = tuple(arrays().values())
    assert (call_kernel(good) == 2).all()
    high, low = good[2] + 1, good[3] - 1
    for place, bad, message in (
        (0, good[0] + np.uint8(1), "class is out of range"),
        (1, good[1] + np.uint8(CLASSES), "class is out of range"),
        (0, good[1], "one class for each row"),
        (1, good[0], "one class for each row"),
        (2, high, "weight is out of range"),
        (3, low, "weight is out of range"),
        (2, good[2][1:], "one row and one column for each class"),
        (3, good[3][:, 1:].copy(), "one row and one column for each class"),
    ):
        with pytest.raises(ValueError, match=message):
            call_kernel((*good[:place], bad, *good[place + 1 :]))
    for place, kind in ((0, np.int64), (1, np.float64), (2, np.int64), (3, np.float32)):
        bad = good[place].astype(kind)
        with pytest.raises(TypeError, match="incompatible"):
            call_kernel((*good[:place], bad, *good[place + 1 :]))
