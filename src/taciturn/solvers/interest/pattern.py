"""Interest under unit `value`: implicit least squares on the public rating pattern.

Every rated pair counts 1 and every other pair 0 with a small weight. The first entry of an item's
vector is fixed to a power of its number of ratings; the others, and the coefficients of users, are
solved in turn. The pattern is public under `value`, so this costs no privacy.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from taciturn.mechanisms.query import Released
from taciturn.model.interest import Interest
from taciturn.solvers.contract import PostProcess, PublicFacts, Seeds
from taciturn.solvers.descent import Rows
from taciturn.solvers.entry import PATTERN_INTEREST
from taciturn.solvers.interest.fold_in import implicit_rows
from taciturn.solvers.interest.part import InterestPart

ROUNDS = 6
"""Number of times that both axes are solved."""

_FACTORS = ((0.0, 8), (5.0, 16), (15.0, 31), (40.0, 63))
"""Number of factors, by the minimum number of ratings of a row, over both axes."""

_POPULARITY_POWER = 0.5
"""Power of an item's number of ratings that is its popularity."""

_START = 0.1
"""Initial standard deviation of factors, relative to the root of the mean square of popularity."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PatternInterestState:
    """Interest vectors of items; the coefficients of users follow from them."""

    items: Rows


class PatternInterest(InterestPart[PatternInterestState]):
    """Interest from the public rating pattern.

    Parameters
    ----------
    facts
        Public facts of the ratings, including the rating pattern.
    threads
        Number of threads; the result does not depend on it.
    """

    published_patterns = (PATTERN_INTEREST,)
    unseen_weight = 0.3

    def __init__(self, facts: PublicFacts, threads: int | None = None) -> None:
        self._pattern, self._threads = facts.pattern, threads
        effort = 0.4 if facts.pattern.entries else 0.0
        self.steps = (PostProcess(effort=effort),) * ROUNDS
        self._parameters = Interest(
            rating_weight=1.0,
            unseen_weight=self.unseen_weight,
            regularization=self.regularization,
        )

    def initial_state(self, seeds: Seeds) -> PatternInterestState:
        """Popularity, and random factors."""
        counts = self._pattern.by_item.counts
        popularity = (counts + 1.0) ** _POPULARITY_POWER
        popularity /= math.sqrt(float(np.mean(popularity**2)))
        of_items, _ = seeds.starts()
        factors = _START * of_items.normal(size=(len(counts), self._factors()))
        return PatternInterestState(items=np.column_stack([popularity, factors]))

    def _factors(self) -> int:
        """Number of factors, from the numbers of users, items and ratings."""
        shape = len(self._pattern.by_user), len(self._pattern.by_item)
        mean = self._pattern.entries / sum(shape)
        usual = max(count for least, count in _FACTORS if mean >= least)
        return min(usual, max(1, min(shape) // 4))

    def update(
        self, step: int, state: PatternInterestState, training: Any, released: Released
    ) -> PatternInterestState:
        """State after users and then items were solved."""
        users, popularity = self._users(state), state.items[:, 0]
        # The part of the users' coefficients of popularity that their factors do not explain: then
        # the term of all pairs has no product of both.
        others = users[:, 1:]
        explained = np.linalg.lstsq(others, users[:, 0], rcond=None)[0]
        alone = users[:, 0] - others @ explained
        pattern = self._pattern.by_item
        targets = np.repeat(popularity, pattern.counts) * alone[pattern.columns]
        factors = implicit_rows(
            pattern,
            others,
            self._parameters,
            self._threads,
            targets=(1 - targets).astype(np.float32),
        )
        return PatternInterestState(items=np.column_stack([popularity, factors]))

    def _users(self, state: PatternInterestState) -> Rows:
        """Coefficients of all users."""
        return implicit_rows(self._pattern.by_user, state.items, self._parameters, self._threads)

    def item_vectors(self, state: PatternInterestState) -> Rows:
        """Interest vectors of the items."""
        return state.items

    def user_coefficients(self, state: PatternInterestState) -> Rows:
        """Coefficients of the users, up to scale; popularity alone without ratings."""
        users = self._users(state)
        users[self._pattern.by_user.counts == 0, 0] = 1.0
        return users
