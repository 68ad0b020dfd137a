"""Ratings on a grid: decoded, centred and rounded in the order of a view."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from taciturn.data.pattern import Axis, Pattern
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import ValueGrid
from taciturn.queries.values import Centre, GridValues, ValueView, item_means, on_grid
from tests.solvers.helpers import random_ratings

GRID = ValueGrid.for_scale(-4, 5, 512)


def some_ratings(seed: int) -> Ratings:
    """Ratings among which one item, and one user, have none."""
    ratings = random_ratings(seed, users=12, items=9)
    return ratings.select((ratings.by_user.columns != 3) & (ratings.rows() != 5))


def slow_means(ratings: Ratings) -> list[float]:
    """Mean rating of each item, item by item."""
    values, items = ratings.values().tolist(), ratings.by_user.columns.tolist()
    means = []
    for item in range(ratings.shape[1]):
        own = [value for value, rated in zip(values, items, strict=True) if rated == item]
        means.append(sum(own) / len(own) if own else sum(values) / len(values))
    return means


def slow_steps(ratings: Ratings, view: ValueView) -> list[int]:
    """Steps of each rating, one by one, sorted into the order of the view."""
    means = slow_means(ratings)
    found = []
    triples = (ratings.rows().tolist(), ratings.by_user.columns.tolist(), ratings.values().tolist())
    for user, item, value in zip(*triples, strict=True):
        centred = value - view.offset
        if view.centre is Centre.ITEM_MEAN:
            centred -= means[item]
        step = round(centred / 2.0**view.grid.exponent)
        place = (user, item) if view.axis is Axis.USERS else (item, user)
        found.append((place, min(max(step, view.grid.lowest), view.grid.highest)))
    return [step for _, step in sorted(found)]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("axis", list(Axis))
@pytest.mark.parametrize("offset", [0.0, 3.0, 2.625, -9.0])
@pytest.mark.parametrize("centre", list(Centre))
def test_values_match_the_reference(seed: int, axis: Axis, offset: float, centre: Centre) -> None:
    ratings = some_ratings(seed)
    view = ValueView(grid=GRID, axis=axis, offset=offset, centre=centre)
    values = on_grid(ratings, view)
    assert values.view == view and values.pattern is ratings.pattern.along(axis)
    assert values.steps.dtype == np.int32
    assert values.steps.tolist() == slow_steps(ratings, view)


@pytest.mark.parametrize("seed", [0, 1])
def test_item_means_match_the_reference(seed: int) -> None:
    """An item without ratings has the mean of all."""
    ratings = some_ratings(seed)
    assert item_means(ratings).tolist() == pytest.approx(slow_means(ratings), rel=1e-15)
    assert item_means(ratings)[3] == pytest.approx(float(ratings.values().mean()), rel=1e-6)


def test_item_means_without_any_rating_are_zero() -> None:
    ratings = random_ratings()
    nothing = ratings.select(np.zeros(len(ratings), dtype=bool))
    assert item_means(nothing).tolist() == [0.0] * ratings.shape[1]


@pytest.mark.parametrize("axis", list(Axis))
def test_item_means_are_stored_only_if_they_are_subtracted(axis: Axis) -> None:
    ratings = some_ratings(0)
    view = ValueView(grid=GRID, axis=axis)
    assert on_grid(ratings, view).item_means is None
    means = on_grid(ratings, replace(view, centre=Centre.ITEM_MEAN)).item_means
    assert means is not None and np.array_equal(means, item_means(ratings))


def test_clipped_values_lie_on_the_grid_and_do_not_change_the_steps() -> None:
    pattern = Pattern(np.array([0, 4]), np.arange(4, dtype=np.int32), 4)
    steps = np.array([-(2**31), GRID.lowest, 7, 2**31 - 1], dtype=np.int32)
    values = GridValues(view=ValueView(grid=GRID, axis=Axis.USERS), pattern=pattern, steps=steps)
    assert values.clipped().tolist() == [GRID.lowest, GRID.lowest, 7, GRID.highest]
    assert values.steps.tolist() == [-(2**31), GRID.lowest, 7, 2**31 - 1]
    assert not np.shares_memory(values.clipped(), values.steps)


@pytest.mark.parametrize(
    "change",
    [
        {"grid": ValueGrid.for_scale(-4, 5, 1024)},
        {"axis": Axis.ITEMS},
        {"offset": 1.0},
        {"centre": Centre.ITEM_MEAN},
    ],
)
def test_values_of_another_view_are_refused(change: dict[str, Any]) -> None:
    ratings = some_ratings(0)
    view = ValueView(grid=GRID, axis=Axis.USERS)
    values = on_grid(ratings, view)
    values.check(view)
    values.check(ValueView(grid=ValueGrid.for_scale(-4, 5, 512), axis=Axis.USERS))
    with pytest.raises(InvalidParameter, match="another grid, order or centre"):
        values.check(replace(view, **change))


def test_values_of_other_pairs_are_refused() -> None:
    view = ValueView(grid=GRID, axis=Axis.USERS)
    ratings = some_ratings(0)
    values, pattern = on_grid(ratings, view), ratings.pattern.by_user
    values.check(view, pattern)
    values.check(view, Pattern(pattern.starts.copy(), pattern.columns.copy(), pattern.width))
    for other in (
        some_ratings(1).pattern.by_user,
        ratings.pattern.by_item,
        Pattern(pattern.starts, pattern.columns, pattern.width + 1),
    ):
        with pytest.raises(InvalidParameter, match="other pairs"):
            values.check(view, other)


def test_steps_that_do_not_fit_the_pattern_are_refused() -> None:
    values = on_grid(some_ratings(0), ValueView(grid=GRID, axis=Axis.USERS))
    steps = values.steps
    wrong: tuple[Any, ...] = (
        steps[1:],
        steps[:, None],
        steps.astype(np.int64),
        steps.astype(np.float32),
    )
    for bad in wrong:
        with pytest.raises(InvalidParameter, match="32-bit"):
            GridValues(view=values.view, pattern=values.pattern, steps=bad)


def test_steps_with_gaps_in_memory_are_copied() -> None:
    values = on_grid(some_ratings(0), ValueView(grid=GRID, axis=Axis.USERS))
    strided = np.repeat(values.steps, 2)[::2]
    assert not strided.flags.c_contiguous
    found = GridValues(view=values.view, pattern=values.pattern, steps=strided)
    assert found.steps.flags.c_contiguous and np.array_equal(found.steps, values.steps)


def test_the_repr_shows_no_values() -> None:
    ratings = random_ratings(scale="1:5:1")
    values = on_grid(ratings, ValueView(grid=GRID, axis=Axis.USERS, centre=Centre.ITEM_MEAN))
    assert "[" not in repr(values) and "array" not in repr(values)
