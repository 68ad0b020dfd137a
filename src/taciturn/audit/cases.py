"""Pairs of neighbouring datasets: worst cases for a solver and its unit, or from real data."""

from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn.accounting.budget import Budget
from taciturn.accounting.units import Unit
from taciturn.audit import counterexample
from taciturn.audit.neighbours import id_index, popular_items, telling_rater
from taciturn.data import load
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.solvers.catalog import CATALOG, is_free, make_solver
from taciturn.solvers.contract import Algorithm, PublicFacts, Seeds, Session
from taciturn.solvers.solver import DELTA, Solver

EPSILON = 20.0
"""Default ε of an audit with many runs; a smaller ε needs far more runs."""

PAPER_EPSILON = 1.0
"""Default ε for the paper's algorithm, which leaks many times what it claims."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Pair:
    """Two neighbouring datasets. Private if made from real ratings.

    Attributes
    ----------
    datasets
        The ratings of each dataset.
    user, item
        Indices of the user and the item whose rating differs. Under unit `user`, the item is one
        that the user rated.
    seed
        The public seed of all runs.
    words
        Description of the pair.
    """

    datasets: tuple[Ratings, Ratings]
    user: int
    item: int
    seed: int = 0
    words: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Case:
    """Case to audit: a solver with its budget, and the neighbouring datasets to distinguish."""

    solver: Solver
    budget: Budget | None
    pair: Pair

    def session(self, **options: Any) -> Session:
        """Session of one run: a single thread, since many runs share the machine."""
        return Session(seed=self.pair.seed, threads=1, **options)


def audited_solver(name: str, *, is_small: bool = True, **options: Any) -> Solver:
    """Solver with the given name and options; raises if it makes no privacy claim.

    For a small case, the defaults of `paper` are those of the counterexample. `als` and `gradient`
    have every kind of release but only a few of each, so that many runs take little time.
    """
    if name not in CATALOG:
        names = ", ".join(each for each, entry in CATALOG.items() if entry.is_private)
        raise InvalidParameter(f"solver must be one of {names}, got {name!r}")
    given = {option: value for option, value in options.items() if value is not None}
    unit = Unit(given.get("unit", CATALOG[name].default_unit))
    small = (_SMALL if unit is Unit.VALUE else _SMALL_PRIVATE_PATTERN).get(name, {})
    options = (small if is_small else {}) | given
    solver: Solver = make_solver(name, **options)
    if not solver.is_private:
        raise InvalidParameter(f"{name} makes no privacy claim, so there is no claim to audit")
    if is_free(name, unit):
        raise InvalidParameter(
            f"{name} releases nothing that unit {unit} protects, so there is no claim to audit; "
            "choose another unit"
        )
    return solver


def worst_pair(solver: Solver) -> Pair:
    """Small pair whose privacy loss attains the recorded μ, where such a pair is known.

    - `paper`: the counterexample to the published theorem, with one item and four users.
    - `als`: all ratings are in the middle of the scale, except one that moves from end to end.
      Predictions stay in the middle, so both values of that rating are clipped.
    - Other solvers: a single rating that moves from one end of the scale to the other.
    - Under unit `rating`: all ratings are in the middle; one rating at the end of the scale is
      present or absent.
    - Under unit `user`: all ratings are in the middle; a user who alternates between both ends of
      the scale, which no profile can fit, is present or absent.
    """
    if solver.has_private_items:
        return _four_users(solver)
    if solver.unit is not Unit.VALUE:
        return _present_or_absent(Unit(solver.unit))
    users = items = 16 if solver.clips_residuals else 1
    rows, columns = (each.ravel() for each in np.indices((users, items)))
    values = np.full(rows.size, 3.0)
    datasets = [_ratings(rows, columns, np.append(end, values[1:])) for end in (1.0, 5.0)]
    words = "a single rating, 1 or 5"
    if users > 1:
        words = f"{users} users rate {items} items 3, except one rating that is 1 or 5"
    return Pair(
        datasets=(datasets[0], datasets[1]),
        user=0,
        item=0,
        words=words,
    )


def chosen_pair(
    ratings: Ratings,
    unit: Unit = Unit.VALUE,
    *,
    user: str | None = None,
    item: str | None = None,
    to: float | None = None,
) -> Pair:
    """The given ratings and a neighbouring dataset. Private.

    Under unit `value` one rating is changed, under `rating` it is removed, and under `user` all
    ratings of that user are removed. The default item is the one with most ratings. The default
    user is, among those who rated the item highest, the one with most ratings. A changed rating
    becomes `to`, by default the more distant end of the scale.
    """
    if to is not None and unit is not Unit.VALUE:
        raise InvalidParameter(
            f"--unit {unit} removes ratings instead of changing them: leave out --to"
        )
    if unit is Unit.USER and item is not None:
        raise InvalidParameter("--unit user removes all ratings of a user: leave out --item")
    if unit is Unit.USER and user is not None:
        row = id_index(ratings.user_ids, "user", user)
        return _removed(ratings, unit, row, None)
    if user is not None and item is None:
        raise InvalidParameter("--user alone does not choose a rating: give --item too")
    if item is not None:
        column = id_index(ratings.item_ids, "item", item)
    else:
        column = popular_items(ratings)[0]
    if user is not None:
        row = id_index(ratings.user_ids, "user", user)
    else:
        row = telling_rater(ratings, column)
    if unit is not Unit.VALUE:
        return _removed(ratings, unit, row, column)
    place, scale = ratings.place(row, column), ratings.scale
    value = float(ratings.values()[place])
    if to is None:
        to = scale.low if value - scale.low >= scale.high - value else scale.high
    if to == value:
        raise InvalidParameter("the rating already has the value of --to; give another value")
    other = ratings.replaced(np.array([place]), np.array([to]))
    ids = ratings.user_ids[row], ratings.item_ids[column]
    words = f"user {ids[0]} rates item {ids[1]} {value:g} or {to:g}"
    return Pair(datasets=(ratings, other), user=row, item=column, words=words)


def _removed(ratings: Ratings, unit: Unit, user: int, item: int | None) -> Pair:
    """The given ratings, and the same without one rating or without one user."""
    keep = np.ones(len(ratings), dtype=np.bool_)
    begin, end = ratings.by_user.starts[user : user + 2]
    if begin == end:
        raise InvalidParameter("this user has no ratings; choose another --user")
    if item is None:
        item = int(ratings.by_user.columns[begin])
    if unit is Unit.USER:
        keep[begin:end] = False
        words = f"user {ratings.user_ids[user]} is present or not"
    else:
        keep[ratings.place(user, item)] = False
        ids = ratings.user_ids[user], ratings.item_ids[item]
        words = f"user {ids[0]} rates item {ids[1]} or not"
    return Pair(datasets=(ratings, ratings.select(keep)), user=user, item=item, words=words)


def _present_or_absent(unit: Unit, size: int = 16) -> Pair:
    """All ratings in the middle of the scale, with and without one extreme rating or user."""
    rows, columns = (each.ravel() for each in np.indices((size, size)))
    first = rows == 0
    if unit is Unit.USER:
        values = np.where(first, np.where(columns % 2 == 0, 1.0, 5.0), 3.0)
        words = f"{size - 1} users rate {size} items 3; one who rates 1 and 5 is present or not"
        keep = ~first
    else:
        values = np.where(first & (columns == 0), 5.0, 3.0)
        words = f"{size} users rate {size} items 3, except one rating that is 5 or absent"
        keep = ~(first & (columns == 0))
    ratings = _ratings(rows, columns, values)
    return Pair(datasets=(ratings, ratings.select(keep)), user=0, item=0, words=words)


def matching(ratings: Ratings, most: int, seed: int) -> npt.NDArray[np.int64]:
    """Positions of at most `most` ratings in `by_user`, no two of one user or of one item.

    A greedy matching in an order given by the public seed. It depends on the rating pattern only,
    not on the values.
    """
    users, items = ratings.rows(), ratings.by_user.columns
    order = np.random.default_rng(seed).permutation(len(ratings))
    taken_users = np.zeros(ratings.shape[0], dtype=np.bool_)
    taken_items = np.zeros(ratings.shape[1], dtype=np.bool_)
    places: list[int] = []
    for place in order.tolist():
        if len(places) == most:
            break
        user, item = users[place], items[place]
        if not (taken_users[user] or taken_items[item]):
            taken_users[user] = taken_items[item] = True
            places.append(place)
    return np.sort(np.array(places, dtype=np.int64))


def banded(size: int, width: int = 16) -> Ratings:
    """Ratings for canaries: user i rates the `width` items from i on, with indices modulo `size`.

    All ratings are in the middle of the scale, so that predictions stay there for any canaries.
    """
    users = np.repeat(np.arange(size), min(width, size))
    items = (users + np.tile(np.arange(min(width, size)), size)) % size
    return _ratings(users, items, np.full(users.size, 3.0))


_SMALL: dict[str, dict[str, Any]] = {
    "als": {"factors": 1, "iterations": 2},
    "gradient": {"factors": 2, "iterations": 10},
    "paper": {
        "factors": 1,
        "iterations": counterexample.ITERATIONS,
        "step_size": counterexample.STEP_SIZE,
        "norm_bound": counterexample.NORM_BOUND,
    },
}
"""Default options of small cases, by solver."""

_SMALL_PRIVATE_PATTERN: dict[str, dict[str, Any]] = {"als": {"factors": 1, "iterations": 4}}
"""Default options of small cases under units that protect the rating pattern."""


def _four_users(solver: Solver) -> Pair:
    users = np.arange(counterexample.RATINGS.size)
    datasets = [
        _ratings(users, np.zeros_like(users), values)
        for values in (counterexample.RATINGS, counterexample.NEIGHBOUR)
    ]
    seed, facts = 0, PublicFacts.of(datasets[0], solver.unit)
    configured, _ = solver.spending(Budget.from_epsilon(1, DELTA))
    algorithm = configured.algorithm(facts, None)
    if algorithm.initial_state(Seeds()).users.shape[1] == 1:
        # With one factor, profiles start as ±1; search for a seed with the signs of the proof.
        seed = next(each for each in count() if _starts_right(algorithm, each))
    return Pair(
        datasets=(datasets[0], datasets[1]),
        user=3,
        item=0,
        seed=seed,
        words="four users rate one item 5, except one rating that is 5 or 1",
    )


def _starts_right(algorithm: Algorithm[Any], seed: int) -> bool:
    start = algorithm.initial_state(Seeds(seed=seed))
    signs = start.users[:, 0] * start.items[0, 0]
    return bool(np.array_equal(signs, counterexample.USER_STARTS * counterexample.ITEM_START))


def _ratings(
    users: npt.NDArray[np.int64], items: npt.NDArray[np.int64], values: npt.NDArray[np.float64]
) -> Ratings:
    frame = pl.DataFrame({"user_id": users, "item_id": items, "rating": values})
    return load(frame, scale="1:5:1")
