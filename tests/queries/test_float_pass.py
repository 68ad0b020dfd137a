"""The pass in floats: both gradients, on every instruction set."""

import numpy as np
import pytest

from taciturn import _core
from taciturn.data.pattern import Axis
from taciturn.data.synthetic import synthetic_ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import ValueGrid
from taciturn.queries.float_pass import FloatFeatures, FloatPass, FloatSums
from taciturn.queries.values import GridValues, ValueView, on_grid
from tests.instruction_sets import on_every_set
from tests.solvers.helpers import random_ratings

STEP = 2.0**-19
VIEW = ValueView(grid=ValueGrid.for_scale(1, 5, 2**14), axis=Axis.USERS)


def profiles(shape: tuple[int, int], width: int, seed: int = 1) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.normal(size=(count, width)) * 3 / width**0.5 for count in shape]


def pass_over(
    values: GridValues,
    users: np.ndarray,
    items: np.ndarray,
    *,
    bound: float = 1.0,
    limit: float = 1000.0,
    threads: int = 1,
) -> FloatSums:
    features = FloatFeatures(users, bound), FloatFeatures(items, bound)
    return FloatPass(step=STEP, limit=limit).run(values, *features, threads)


@pytest.mark.parametrize("bound", [0.4, 1.0])
@pytest.mark.parametrize("limit", [1.5, 1000.0])
@pytest.mark.parametrize("width", [1, 4, 5, 16, 20, 33, 64, 96, 130])
def test_sums_are_both_gradients(
    width: int, limit: float, bound: float, instruction_set: str
) -> None:
    ratings = random_ratings(width, users=70, items=40, density=0.5)
    users, items = profiles(ratings.shape, width)
    found = pass_over(on_grid(ratings, VIEW), users, items, bound=bound, limit=limit)
    errors = np.zeros(ratings.shape)
    rated = ratings.rows(), ratings.by_user.columns
    errors[rated] = np.einsum("nk,nk->n", users[rated[0]], items[rated[1]]) - ratings.values()
    errors = np.clip(errors, -limit, limit)
    clipped = [
        rows / np.maximum(bound, np.linalg.norm(rows, axis=1))[:, None] for rows in (users, items)
    ]
    # Ratings are rounded to 2^-12, floats to 24 bits, sums to STEP.
    assert np.allclose(found.users * STEP, errors @ clipped[1], atol=5e-3)
    assert np.allclose(found.items * STEP, errors.T @ clipped[0], atol=5e-3)
    assert found.squares == pytest.approx((errors**2).sum(), rel=1e-4)


@pytest.mark.parametrize("width", [3, 20, 64, 200])
def test_sums_do_not_depend_on_the_number_of_threads(width: int, instruction_set: str) -> None:
    ratings = synthetic_ratings("10k")
    values, rows = on_grid(ratings, VIEW), profiles(ratings.shape, width)
    one = pass_over(values, *rows)
    for threads in (2, 3, 5):
        other = pass_over(values, *rows, threads=threads)
        assert np.array_equal(one.users, other.users) and np.array_equal(one.items, other.items)
        assert one.squares == other.squares


def test_instruction_sets_agree_up_to_rounding() -> None:
    ratings = synthetic_ratings("10k")
    values, rows = on_grid(ratings, VIEW), profiles(ratings.shape, 20)
    one, *others = on_every_set(lambda: pass_over(values, *rows)).values()
    for other in others:
        assert np.allclose(one.users, other.users, rtol=1e-4, atol=1e-3 / STEP)
        assert np.allclose(one.items, other.items, rtol=1e-4, atol=1e-3 / STEP)


def test_values_along_items_are_those_along_users() -> None:
    ratings = random_ratings(3)
    values = on_grid(ratings, VIEW)
    by_item = on_grid(ratings, ValueView(grid=VIEW.grid, axis=Axis.ITEMS))
    assert np.array_equal(values.steps_along(Axis.USERS), values.steps)
    assert np.array_equal(values.steps_along(Axis.ITEMS), by_item.steps)


def test_predictions_that_overflow_are_clipped(instruction_set: str) -> None:
    """Infinite and undefined predictions in floats have errors of ± the limit."""
    ratings = random_ratings(4, users=40, items=30)
    users, items = (np.full((count, 20), 1e25) for count in ratings.shape)
    users[:, 10:] *= -1
    users[::2] *= -1
    found = pass_over(on_grid(ratings, VIEW), users, items, limit=7.0)
    assert found.squares == pytest.approx(49 * len(ratings))
    assert np.abs(found.users * STEP).max() <= 7 * ratings.pattern.by_user.counts.max()


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_profiles_that_are_not_finite_are_refused(bad: float, instruction_set: str) -> None:
    rows = np.ones((20, 20))
    rows[7, 3] = bad
    with pytest.raises(InvalidParameter, match="smaller step size"):
        FloatFeatures(rows, 1.0)


def test_features_have_a_norm_of_at_most_one(instruction_set: str) -> None:
    (rows,) = profiles((500,), 20)  # type: ignore[arg-type]
    features = FloatFeatures(rows, 0.5)
    norms = np.linalg.norm(features.rows.astype(np.float64), axis=1)
    assert norms.max() <= 1 + 1e-6
    restored = features.rows[:, :20] * features.scales[:, None]
    assert np.allclose(restored, rows, rtol=1e-5)
    assert not features.rows[:, 20:].any()


def test_features_of_other_ratings_are_refused() -> None:
    ratings = random_ratings(5)
    users, items = profiles(ratings.shape, 4)
    with pytest.raises(InvalidParameter, match="must match"):
        pass_over(on_grid(ratings, VIEW), users[1:], items)


def test_a_column_out_of_range_is_refused(instruction_set: str) -> None:
    features, scales = np.ones((2, _core.float_stride(4)), np.float32), np.ones(2, np.float32)
    starts, values = np.array([0, 1, 2]), np.ones(2, np.int32)
    sums, squares = np.empty((2, 4), np.int64), np.empty(2)
    for column in (-1, 2, 2**31 - 1):
        with pytest.raises(IndexError):
            _core.float_sums(
                starts,
                np.array([0, column], np.int32),
                values,
                1.0,
                1.0,
                features,
                scales,
                features,
                scales,
                1.0,
                sums,
                squares,
                0,
                2,
            )
