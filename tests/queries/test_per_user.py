"""User-level sums and totals: slow references and refused input."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.accounting.budget import Budget
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis, Pattern
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import ValueGrid
from taciturn.queries import per_user as module
from taciturn.queries.error_pass import ErrorPass
from taciturn.queries.features import NORM
from taciturn.queries.per_user import USERS_MAX, UserTotals, check_users
from taciturn.queries.totals import COUNT_BITS
from taciturn.queries.user_sums import ReleasedItems, UserSums, contribution_bound
from taciturn.queries.values import GridValues, ValueView, on_grid
from taciturn.solvers.bias import BiasSolver
from tests.instruction_sets import every_set, on_every_set
from tests.queries.helpers import (
    GRIDS,
    Floats,
    Steps,
    every_pair,
    random_items,
    rated,
    same_tables,
    user_sums,
    user_totals,
    user_view,
    values_of,
)
from tests.solvers.helpers import random_ratings

GRID = GRIDS[0]
ONE = 1 << COUNT_BITS


def slow_totals(ratings: Ratings, steps: Steps, grid: ValueGrid) -> tuple[Floats, Floats]:
    """Both tables, user by user."""
    items, of_users = np.zeros(ratings.shape[1]), np.zeros(3)
    for user in range(ratings.shape[0]):
        own = ratings.rows() == user
        if not own.any():
            continue
        items[ratings.by_user.columns[own]] += 1 / math.sqrt(own.sum())
        parts = (
            np.clip(steps[own], grid.lowest, grid.highest)
            / np.abs([grid.lowest, grid.highest]).max()
        )
        of_users += [1, parts.mean(), (parts**2).mean()]
    return items[:, None], of_users[None, :]


@settings(max_examples=40)
@given(rated())
def test_totals_match_the_reference(some: tuple[Ratings, GridValues]) -> None:
    ratings, values = some
    grid = values.view.grid
    found = user_totals(ratings.shape[1], grid).exact(values).tables
    expected = (each * ONE for each in slow_totals(ratings, values.steps, grid))
    items, of_users = (np.abs(one - two) for one, two in zip(found, expected, strict=True))
    # A weight is rounded by less than a step; so are the values, and their mean once more.
    users = ratings.shape[0]
    assert items.max() <= users
    assert of_users[0, 0] == 0 and of_users.max() <= 2 * users


def slow_sums(
    ratings: Ratings,
    steps: Steps,
    items: ReleasedItems,
    threshold: float,
    bound: float,
    grid: ValueGrid,
    usual: float,
) -> tuple[Floats, Floats, Floats, float, float]:
    """The four tables in rating units, user by user.

    The last number bounds the change of a prediction by rounded features, relative to 2^−14.
    """
    low, high, step = grid.lowest, grid.highest, 2.0**grid.exponent
    beyond = math.ceil(grid.range / 2)
    sums, squares, moved = np.zeros_like(items.rows), 0.0, 0.0
    products = np.zeros((items.width, items.width))
    covariances = np.zeros(1 + (items.width - 1) * items.coefficients)
    lengths = np.linalg.norm(items.whole, axis=1)
    for user in range(ratings.shape[0]):
        own = ratings.rows() == user
        if not own.any():
            continue
        rated, value = ratings.by_user.columns[own], np.clip(steps[own], low, high) * step
        design = items.whole[rated].copy()
        design[:, 0] = 1
        known = items.mean + items.rows[rated, 0]
        normal = design.T @ design + np.diag(items.regularization)
        row = np.linalg.solve(normal, design.T @ (value - known))
        predicted = np.clip(known + design @ row, (low - beyond) * step, (high + beyond) * step)
        error = np.clip(predicted - value, -threshold, threshold)
        feature = np.array([items.constant, *row[1 : items.width]])
        length = float(np.linalg.norm([*feature, *row[items.width :] / 8]))
        share = min(1.0, bound / max(float(np.linalg.norm(error)), 1e-12))
        sums[rated] += np.outer(error, feature / length) * share
        products += np.outer(feature, feature) / length**2
        scales = np.sqrt(items.regularization)
        inverse = np.linalg.inv(normal) * np.outer(scales, scales)
        weight = min(1.0, math.sqrt(value.size / usual))
        covariances += weight * np.array([1.0, *inverse[1 : items.width].ravel()])
        squares += float(np.mean(error**2))
        # A step for each coordinate of either axis, √n of them once features are weighted.
        rounded = math.sqrt(items.coefficients) * (2 + 8 * math.sqrt(value.size))
        moved = max(moved, rounded * length * float(lengths[rated].max()))
    return sums, products[np.triu_indices(items.width)], covariances, squares, moved


@settings(max_examples=60)
@given(
    st.integers(0, 2**32),
    st.integers(1, 5),
    st.sampled_from([0.1, 0.5, 2.0, 100.0]),
    st.sampled_from([0.1, 1.0, 3.0]),
    st.sampled_from([0, 0, 3]),
)
def test_sums_match_the_reference(
    seed: int, width: int, threshold: float, length: float, features: int
) -> None:
    random = np.random.default_rng(seed)
    ratings = every_pair(15, 10)
    ratings = ratings.select(random.random(len(ratings)) < random.uniform(0.1, 0.9))
    grid = ValueGrid.for_scale(1, 5, 4096)
    steps = random.integers(grid.lowest - 300, grid.highest + 300, len(ratings)).astype(np.int32)
    items = random_items(random, 10, width, length, mean=2.75, features=features)
    step = 2.0**grid.exponent
    clipped = round(threshold / step)
    spec = user_sums(items, clipped, grid=grid)
    every = on_every_set(lambda: spec.exact(values_of(ratings, spec.view, steps), 2).tables)
    bound = contribution_bound(spec._errors) * step
    slow = slow_sums(ratings, steps, items, clipped * step, bound, grid, 4.0)
    slow_by_item, slow_products, slow_covariances, slow_squares, moved = slow
    # Errors are rounded to half a step, features to 2^−14, and once more when weighted. The share
    # of a contribution changes with the norm of up to ten errors.
    error, largest = step + moved / NORM, min(threshold, 1.5 * 4) + step
    counts = np.diff(ratings.by_item.starts)[:, None]
    for found in every.values():
        by_item, products, covariances, squares = (
            table * query.step for table, query in zip(found, spec.queries, strict=True)
        )
        assert (np.abs(by_item - slow_by_item) <= 5 * counts * (error + 2 * largest / NORM)).all()
        assert np.abs(products[0] - slow_products).max() <= 15 * 2 / NORM
        assert np.abs(covariances[0] - slow_covariances).max() <= 15 * 2.0**-12
        assert abs(squares[0, 0] - slow_squares) <= 15 * (2 * largest * error + step**2)


def test_errors_on_the_grid_match_exactly() -> None:
    """One item and all users at the mean: errors are the negative centred values."""
    ratings = every_pair(3, 1)
    items = ReleasedItems(
        rows=np.zeros((1, 2)), regularization=np.array([1e12, 1.0]), constant=0.5, mean=1.0
    )
    spec = user_sums(items, 40)
    steps = np.array([GRID.lowest, GRID.lowest + 3, GRID.highest], dtype=np.int32)
    tables = spec.exact(values_of(ratings, spec.view, steps)).tables
    by_item, products, covariances, squares = tables
    # The third user's error is clipped to 40, and the contribution of one rating to 20.
    assert by_item.tolist() == [[-(3 + 20) * NORM, 0]]
    assert products.tolist() == [[3 * NORM**2, 0, 0]]
    squared_step = 4.0**GRID.exponent
    assert squares.tolist() == [[(9 + 1600) * squared_step / spec.queries[3].step]]
    # Half weight for one rating where four are usual. Ratings of an item with zero factors say
    # nothing about users' factors: their covariances are those of the prior, shrunk a little.
    weight, _, of_factor = covariances[0] * spec.queries[2].step
    assert weight == 1.5 and 1.5 * (1 - 2.0**-15) < of_factor <= 1.5


@pytest.mark.parametrize("size", [0.99e29, 3e29, 1e200, np.inf, np.nan])
def test_a_very_long_user_row_raises_no_error(size: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception or a warning would depend on the ratings of one user."""
    ratings, width = every_pair(4, 3), 200
    items = random_items(np.random.default_rng(0), 3, width)

    def solve(self: ReleasedItems, pattern: Pattern, *rest: Any, **options: Any) -> Floats:
        rows = np.zeros((len(pattern), width))
        rows[1] = size
        options["inverse"][:] = np.inf if size > 1e38 else size
        return rows

    monkeypatch.setattr(ReleasedItems, "solve_users", solve)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = user_sums(items).exact(on_grid(ratings, user_view()), 1)
    assert all(table.dtype == np.int64 for table in answer.tables)


@every_set
def test_threads_change_nothing() -> None:
    random = np.random.default_rng(7)
    ratings = random_ratings(3, 400, 60)
    items, values = random_items(random, 60, 34), on_grid(ratings, user_view())
    for spec in (user_sums(items), user_totals(60)):
        one = spec.exact(values, 1)
        assert all(same_tables(one, spec.exact(values, threads)) for threads in (2, 5))


def test_a_planned_width_is_recorded_and_changes_no_sum() -> None:
    ratings, items = every_pair(4, 3), random_items(np.random.default_rng(0), 3, 2)
    values, narrow = on_grid(ratings, user_view()), user_sums(items)
    wide = UserSums(purpose="test", errors=narrow._errors, items=items, usual=4.0, width=5)
    assert same_tables(narrow.exact(values), wide.exact(values))
    assert [query.shape for query in wide.queries] == [query.shape for query in narrow.queries]
    assert [query.coordinates for query in narrow.queries] == [3 * 2, 3, 3, 1]
    assert [query.coordinates for query in wide.queries] == [3 * 5, 15, 21, 1]


def test_bad_input_is_refused() -> None:
    ratings, random = every_pair(4, 3), np.random.default_rng(0)
    items = random_items(random, 3, 2)
    along_items = on_grid(ratings, ValueView(grid=GRID, axis=Axis.ITEMS))
    for spec in (user_sums(items), user_totals(3)):
        for view in (user_view(GRIDS[1]), along_items.view):
            with pytest.raises(InvalidParameter, match="another grid"):
                spec.exact(on_grid(ratings, view))
    with pytest.raises(InvalidParameter, match="along the users"):
        UserTotals(items=3, view=along_items.view)
    with pytest.raises(InvalidParameter, match="along the users"):
        UserSums(purpose="test", errors=ErrorPass(along_items.view, first=1), items=items)
    bad_thresholds: tuple[Any, ...] = (0, -3, 1.5, True)
    for threshold in bad_thresholds:
        with pytest.raises(InvalidParameter, match="threshold"):
            user_sums(items, threshold)
    for usual in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InvalidParameter, match="usual"):
            user_sums(items, usual=usual)
    for count in (2, 4):
        with pytest.raises(InvalidParameter, match="items"):
            user_sums(random_items(random, count, 2)).exact(on_grid(ratings, user_view()))


def test_items_that_no_user_can_be_solved_from_are_refused() -> None:
    good: dict[str, Any] = {
        "rows": np.ones((3, 2)),
        "regularization": np.ones(2),
        "constant": 1.0,
        "mean": 2.5,
    }
    ReleasedItems(**good)
    broken = np.ones((3, 2))
    broken[2, 1] = math.nan
    for change in (
        {"rows": broken},
        {"rows": np.ones(3)},
        {"mean": math.nan},
        {"mean": math.inf},
        {"regularization": np.ones(3)},
        {"regularization": np.array([1.0, 0.0])},
        {"regularization": np.array([1.0, -1.0])},
        {"regularization": np.array([1.0, math.inf])},
        {"constant": 0.0},
        {"constant": math.inf},
        {"constant": math.nan},
    ):
        with pytest.raises(InvalidParameter, match="finite"):
            ReleasedItems(**(good | change))


def test_too_many_users_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    check_users(USERS_MAX - 1)
    with pytest.raises(InvalidParameter, match="users"):
        check_users(USERS_MAX)
    monkeypatch.setattr(module, "USERS_MAX", 4)
    solver, budget = BiasSolver(unit=Unit.USER), Budget.from_epsilon(1, 1e-5)
    solver.plan(every_pair(3, 3), budget)
    for begin in (solver.plan, solver.fit):
        with pytest.raises(InvalidParameter, match="users"):
            begin(every_pair(4, 3), budget)
