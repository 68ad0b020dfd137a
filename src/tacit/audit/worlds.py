"""Pairs of worlds that differ by one rating: the worst there is for a solver, or of real data."""

from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tacit.audit.verdict import DELTA
from tacit.data import load
from tacit.data.ratings import Ratings
from tacit.errors import InvalidParameter
from tacit.paper import counterexample
from tacit.paper.neighbours import id_index, popular_items, telling_rater
from tacit.privacy.budget import Budget
from tacit.solvers.contract import Session, Solver
from tacit.solvers.names import SOLVERS, make_solver
from tacit.solvers.paper import PaperDescent, PaperSolver

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
        Whose rating differs, by their indices.
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

    @property
    def values(self) -> tuple[float, float]:
        """The rating in each world."""
        place = self.worlds[0].place(self.user, self.item)
        low, high = (float(world.values()[place]) for world in self.worlds)
        return low, high


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
    options = (_USUAL.get(name, {}) if is_small else {}) | given
    if name not in SOLVERS:
        names = ", ".join(each for each, kind in SOLVERS.items() if kind.is_private)
        raise InvalidParameter(f"solver must be one of {names}, got {name!r}")
    solver = make_solver(name, **options)
    if not solver.is_private:
        raise InvalidParameter(f"{name} claims nothing: there is no claim to audit")
    return solver


def worst_pair(solver: Solver) -> Pair:
    """Return a small pair that attains what is booked, as far as one is known.

    - `paper`: one item and four users, for whom the published theorem fails.
    - `als`: everybody rates in the middle but one, from one end of the scale to the other. Then
      predictions stay in the middle, and both ratings are cut.
    - Others: one rating alone, from one end to the other.
    """
    if isinstance(solver, PaperSolver):
        return _four_users(solver)
    users = items = 16 if solver.name == "als" else 1
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
    ratings: Ratings, *, user: str | None = None, item: str | None = None, to: float | None = None
) -> Pair:
    """Return ratings as they are, and with one of them changed. Private.

    Without a user, it is one of the highest ratings of the item, of the user who rated most;
    without an item, of the item that was rated most. It becomes `to`, or the end of the scale that
    is further off.
    """
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


def _four_users(solver: PaperSolver) -> Pair:
    users = np.arange(counterexample.RATINGS.size)
    worlds = [
        _ratings(users, np.zeros_like(users), values)
        for values in (counterexample.RATINGS, counterexample.NEIGHBOUR)
    ]
    seed = 0
    if solver.factors == 1:
        # Profiles start as ±1 then; some seed gives those of the counterexample.
        descent = PaperDescent(solver.with_epsilon_i(Budget.from_epsilon(1, DELTA)), worlds[0])
        seed = next(each for each in count() if _starts_right(descent, each))
    return Pair(
        worlds=(worlds[0], worlds[1]),
        user=3,
        item=0,
        seed=seed,
        words="one item that four users rate 5, or one of them 1",
    )


def _starts_right(descent: PaperDescent, seed: int) -> bool:
    start = descent.begin(Session(seed=seed))
    signs = start["users"][:, 0] * start["items"][0, 0]
    return bool(np.array_equal(signs, counterexample.USER_STARTS * counterexample.ITEM_START))


def _ratings(
    users: npt.NDArray[np.int64], items: npt.NDArray[np.int64], values: npt.NDArray[np.float64]
) -> Ratings:
    frame = pl.DataFrame({"user_id": users, "item_id": items, "rating": values})
    return load(frame, scale="1:5:1")
