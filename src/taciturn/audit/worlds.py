"""Pairs of neighbouring worlds: the worst there is for a solver and its unit, or of real data."""

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
from taciturn.solvers.catalog import CATALOG, make_solver
from taciturn.solvers.contract import Algorithm, PublicFacts, Seeds, Session
from taciturn.solvers.solver import DELTA, Solver

EPSILON = 20.0
"""What is audited with many runs when no ε is given; a small one needs far more of them."""

PAPER_EPSILON = 1.0
"""For the paper's algorithm, whose leak is many times what is claimed."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Pair:
    """Two worlds. Private if made from real ratings.

    Attributes
    ----------
    worlds
        The ratings in each.
    user, item
        Whose rating differs, and of what, by their indices; under unit `user` the item is one of
        those rated.
    seed
        The public seed of all runs.
    words
        What the pair is.
    """

    worlds: tuple[Ratings, Ratings]
    user: int
    item: int
    seed: int = 0
    words: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Case:
    """What is audited: a solver with its budget, and a pair of worlds to tell apart."""

    solver: Solver
    budget: Budget | None
    pair: Pair

    def session(self, **options: Any) -> Session:
        """Return how runs are made: one thread each, since many run at once."""
        return Session(seed=self.pair.seed, threads=1, **options)


def audited_solver(name: str, *, is_small: bool = True, **options: Any) -> Solver:
    """Return the solver of a name; raise if it claims nothing that could be audited.

    For a small case and without other options, `paper` is that of the counterexample, and `als` and
    `gradient` have every kind of release but few of them: many runs then take little time.
    """
    given = {option: value for option, value in options.items() if value is not None}
    unit = Unit(given.get("unit", Unit.VALUE))
    usual = _USUAL.get(name, {}) if unit is Unit.VALUE else _HIDDEN.get(name, {})
    options = (usual if is_small else {}) | given
    if name not in CATALOG:
        names = ", ".join(each for each, entry in CATALOG.items() if entry.is_private)
        raise InvalidParameter(f"solver must be one of {names}, got {name!r}")
    solver: Solver = make_solver(name, **options)
    if not solver.is_private:
        raise InvalidParameter(f"{name} claims nothing: there is no claim to audit")
    return solver


def worst_pair(solver: Solver) -> Pair:
    """Return a small pair that attains what is booked, as far as one is known.

    - `paper`: one item and four users, for whom the published theorem fails.
    - `als`: everybody rates in the middle but one, from one end of the scale to the other. Then
      predictions stay in the middle, and both ratings are cut.
    - Others: one rating alone, from one end to the other.
    - Under `rating`: everybody rates in the middle; one more rating at the end is there or not.
    - Under `user`: everybody rates in the middle; somebody who rates from end to end, so that no
      profile explains it, is there or not.
    """
    if solver.has_private_items:
        return _four_users(solver)
    if solver.unit is not Unit.VALUE:
        return _there_or_not(solver.unit)
    users = items = 16 if solver.clips_residuals else 1
    rows, columns = (each.ravel() for each in np.indices((users, items)))
    values = np.full(rows.size, 3.0)
    worlds = [_ratings(rows, columns, np.append(end, values[1:])) for end in (1.0, 5.0)]
    words = "one rating alone" if users == 1 else f"{users} users rate all of {items} items 3, but"
    return Pair(
        worlds=(worlds[0], worlds[1]),
        user=0,
        item=0,
        words=f"{words} {'is' if users == 1 else 'for one rating:'} 1 or 5",
    )


def chosen_pair(
    ratings: Ratings,
    unit: Unit = Unit.VALUE,
    *,
    user: str | None = None,
    item: str | None = None,
    to: float | None = None,
) -> Pair:
    """Return ratings as they are, and a neighbour. Private.

    Under `value` one rating is changed, under `rating` it is removed, under `user` all of that user
    are. Without a user, it is one of the highest ratings of the item, of the user who rated most;
    without an item, of the item that was rated most. A changed one becomes `to`, or the end of the
    scale that is further off.
    """
    if to is not None and unit is not Unit.VALUE:
        raise InvalidParameter(f"under unit {unit} nothing is changed, but removed: leave out --to")
    if unit is Unit.USER and item is not None:
        raise InvalidParameter("under unit user all ratings of somebody differ: leave out --item")
    if unit is Unit.USER and user is not None:
        row = id_index(ratings.user_ids, "user", user)
        return _removed(ratings, unit, row, None)
    if user is not None and item is None:
        raise InvalidParameter("say which rating of that user: give --item too")
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
        raise InvalidParameter("the rating has that value already; give another --to")
    other = ratings.replaced(np.array([place]), np.array([to]))
    ids = ratings.user_ids[row], ratings.item_ids[column]
    words = f"user {ids[0]} rates item {ids[1]} {value:g}, or {to:g}"
    return Pair(worlds=(ratings, other), user=row, item=column, words=words)


def _removed(ratings: Ratings, unit: Unit, user: int, item: int | None) -> Pair:
    """Return ratings as they are, and without one of them or without all of one user's."""
    keep = np.ones(len(ratings), dtype=np.bool_)
    begin, end = ratings.by_user.starts[user : user + 2]
    if begin == end:
        raise InvalidParameter("that user has no ratings; choose one who has")
    if item is None:
        item = int(ratings.by_user.columns[begin])
    if unit is Unit.USER:
        keep[begin:end] = False
        words = f"user {ratings.user_ids[user]} is there, or not"
    else:
        keep[ratings.place(user, item)] = False
        ids = ratings.user_ids[user], ratings.item_ids[item]
        words = f"user {ids[0]} rates item {ids[1]}, or not"
    return Pair(worlds=(ratings, ratings.select(keep)), user=user, item=item, words=words)


def _there_or_not(unit: Unit, size: int = 16) -> Pair:
    """Return people who rate everything in the middle, and one who does not, there or not."""
    rows, columns = (each.ravel() for each in np.indices((size, size)))
    first = rows == 0
    if unit is Unit.USER:
        values = np.where(first, np.where(columns % 2 == 0, 1.0, 5.0), 3.0)
        words = f"{size - 1} people rate {size} items 3; one who rates 1 and 5 is there, or not"
        keep = ~first
    else:
        values = np.where(first & (columns == 0), 5.0, 3.0)
        words = f"{size} users rate {size} items 3, but for one rating: 5, or none"
        keep = ~(first & (columns == 0))
    ratings = _ratings(rows, columns, values)
    return Pair(worlds=(ratings, ratings.select(keep)), user=0, item=0, words=words)


def matching(ratings: Ratings, most: int, seed: int) -> npt.NDArray[np.int64]:
    """Return places of ratings, in the order of `by_user`, no two of one user or of one item.

    At most so many; a public seed chooses. Depends on who rated what, not on how.
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
    """Return ratings for canaries: as many users as items, each with some neighbours in a ring.

    All rate in the middle, so that predictions stay there whatever the canaries are.
    """
    users = np.repeat(np.arange(size), min(width, size))
    items = (users + np.tile(np.arange(min(width, size)), size)) % size
    return _ratings(users, items, np.full(users.size, 3.0))


_USUAL: dict[str, dict[str, Any]] = {
    "als": {"factors": 1, "iterations": 2},
    "gradient": {"factors": 2, "iterations": 10},
    "paper": {
        "factors": 1,
        "iterations": counterexample.ITERATIONS,
        "step_size": counterexample.STEP_SIZE,
        "norm_bound": counterexample.NORM_BOUND,
    },
}


_HIDDEN: dict[str, dict[str, Any]] = {"als": {"factors": 1, "iterations": 4}}
"""The same under units that hide who rated what."""


def _four_users(solver: Solver) -> Pair:
    users = np.arange(counterexample.RATINGS.size)
    worlds = [
        _ratings(users, np.zeros_like(users), values)
        for values in (counterexample.RATINGS, counterexample.NEIGHBOUR)
    ]
    seed, facts = 0, PublicFacts.of(worlds[0], solver.unit)
    configured, _ = solver.spending(Budget.from_epsilon(1, DELTA))
    algorithm = configured.algorithm(facts, None)
    if algorithm.initial_state(Seeds()).users.shape[1] == 1:
        # Profiles start as ±1 then; some seed gives those of the counterexample.
        seed = next(each for each in count() if _starts_right(algorithm, each))
    return Pair(
        worlds=(worlds[0], worlds[1]),
        user=3,
        item=0,
        seed=seed,
        words="one item that four users rate 5, or one of them 1",
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
