"""Interest where whole users are bounded: noisy sums by item of what users turn to.

Every user's features follow from that user's own items and the released factors of the items, so
that only items are released. A user's contributions are weighted by the popularity of the items:
lists are made of popular items, whose factors then have less noise.
"""

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from taciturn.accounting.budget import Budget
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis
from taciturn.mechanisms.query import Released
from taciturn.queries.user_interest import (
    WEIGHT_MAX,
    InterestItems,
    UserInterestSums,
    user_interest_query,
)
from taciturn.queries.values import ValueView
from taciturn.solvers.contract import PublicFacts, QueryStep, Seeds
from taciturn.solvers.descent import Rows, Vector
from taciturn.solvers.entry import INTEREST_ROUNDS
from taciturn.solvers.interest.affinity import (
    Measured,
    data_weight,
    item_vectors,
    most_supported,
    whitened,
)
from taciturn.solvers.interest.part import (
    CONSTANT,
    RANKS,
    InterestPart,
    Popularity,
    purpose,
)

_SUPPORT = 0.2
"""Minimum data weight of items for a number of factors."""

_RELIABLE = 0.01
"""Minimum reliability of popularity from the first table, without factors. Below it, ratings are as
noisy, and popularity gains more from their budget than they lose."""

_MOVED, _MOVED_MAX = 0.027, 0.4
"""Budget that moves from ratings to popularity then, as a number of μ², and its maximum share.
While ratings are mostly noise, their error grows in proportion to the first."""

_RELIABLE_ENOUGH, _MOVED_BACK = 0.5, 0.5
"""Minimum reliability with which, without factors, a part of the share of interest moves to ratings
instead, and that part."""

_LIKING = 0.87
"""Mean weight of a rating by liking, relative to the root of the mean square, as usual."""

_WEIGHT_POWER = 0.5
"""Power of an item's popularity in the weight of a contribution to it."""


class UserWeights(Protocol):
    """State of a training with the released weights of items and number of users."""

    @property
    def weights(self) -> Vector:
        """Sums over the users of each item of 1/√n, with a user's number of ratings n."""

    @property
    def users(self) -> float:
        """Number of users."""


@dataclass(frozen=True, eq=False, kw_only=True)
class UserInterestState:
    """Affinity factors of items, their popularity, and the item weights of contributions.

    `rank` is −1 before it is chosen. `first_reliability` is that of popularity after its first
    table.
    """

    items: Rows
    popularity: Popularity
    weights: npt.NDArray[np.int64]
    rank: float
    first_reliability: float


class UserInterest(InterestPart[UserInterestState]):
    """Interest under unit `user`, and under `rating` if whole users are bounded.

    Parameters
    ----------
    facts
        Public facts of the ratings.
    budget
        Budget of the whole training.
    share
        Budget share of all queries of interest together.
    view
        View of the ratings that the training has, ordered by user.
    unit
        Privacy unit.
    may_move
        Whether shares may move from ratings to interest. They stay if variances are published,
        which are computed for the planned noise.
    """

    def __init__(
        self,
        facts: PublicFacts,
        budget: Budget,
        share: float,
        view: ValueView,
        unit: Unit = Unit.USER,
        *,
        may_move: bool = True,
    ) -> None:
        self._moved = min(_MOVED_MAX, _MOVED / budget.mu**2)
        self._moved_back = -_MOVED_BACK * share
        self._may_move = may_move
        self._items, self._view, self._unit = facts.items, view, unit
        self._share = share / INTEREST_ROUNDS
        # Under other units than `user`, noise is twice as large.
        self._noise = (1 if unit is Unit.USER else 2) / (budget.mu * math.sqrt(self._share))
        width = 1 + RANKS[-1]
        self.steps = tuple(
            QueryStep(
                queries=(
                    user_interest_query(
                        purpose(step, Axis.ITEMS),
                        items=facts.items,
                        columns=width,
                        width=width,
                        unit=unit,
                    ),
                ),
                shares=(self._share,),
            )
            for step in range(INTEREST_ROUNDS)
        )

    def initial_state(self, seeds: Seeds) -> UserInterestState:
        """Random factors of items, from which the first features of users follow."""
        of_items, _ = seeds.starts()
        return UserInterestState(
            items=of_items.normal(size=(self._items, RANKS[-1])),
            popularity=Popularity.unknown(self._items),
            weights=np.full(self._items, WEIGHT_MAX),
            rank=-1.0,
            first_reliability=1.0,
        )

    def begun(
        self, state: UserInterestState, training: UserWeights, released: Released
    ) -> UserInterestState:
        """State after the weights of items are released: chooses the number of factors."""
        believed = training.weights
        weights = contribution_weights(believed)
        totals = _contribution_totals(believed, weights)
        noise = self._noise / math.sqrt(1 - CONSTANT**2)
        mean = _mean_weight(training.users, totals)
        supported = [
            data_weight(totals, noise / math.sqrt(rank), rank, sampling=mean) for rank in RANKS
        ]
        rank = most_supported(RANKS, supported, _SUPPORT)
        popularity = Popularity.of_counts(
            released.tables[0][:, 0], released.noise_scales[0], believed
        )
        return replace(
            state,
            items=state.items[:, :rank],
            popularity=popularity,
            weights=weights,
            rank=float(rank),
            first_reliability=popularity.reliability,
        )

    def shares(self, step: int, state: UserInterestState) -> tuple[float, ...]:
        """Equal shares. Without factors, every table measures popularity."""
        return (self._share + self.moved(state) / INTEREST_ROUNDS,)

    def moved(self, state: UserInterestState) -> float:
        """Share that ratings leave to popularity where both are mostly noise.

        Below 0 where popularity is reliable and there is nothing else to learn.
        """
        if state.rank != 0 or not self._may_move:
            return 0.0
        if _is_noise(state):
            return self._moved
        return self._moved_back if state.first_reliability >= _RELIABLE_ENOUGH else 0.0

    def query(self, step: int, state: UserInterestState, training: UserWeights) -> UserInterestSums:
        """Σ of a constant and the features of the users."""
        return UserInterestSums(
            purpose=purpose(step, Axis.ITEMS),
            view=self._view,
            items=InterestItems(
                rows=whitened(state.items, state.popularity.counts),
                weights=state.weights,
                constant=CONSTANT if state.rank else 1.0,
                by_liking=_is_noise(state),
            ),
            width=1 + RANKS[-1],
            unit=self._unit,
        )

    def update(
        self,
        step: int,
        state: UserInterestState,
        training: UserWeights,
        released: Released,
    ) -> UserInterestState:
        """State with new factors of items, and with the popularity that the table adds."""
        (table,), (noise,) = released.tables, released.noise_scales
        before, rank = state.popularity, int(state.rank)
        constant = CONSTANT if rank else 1.0
        scale = _contribution_totals(before.counts, state.weights) / before.counts
        if _is_noise(state):
            scale = _LIKING * scale
        popularity = before.with_counts(
            table[:, 0] / (constant * scale), noise / (constant * scale)
        )
        weights = contribution_weights(popularity.counts) if rank else state.weights
        after = replace(state, popularity=popularity, weights=weights)
        if rank == 0:
            return after
        totals = scale * popularity.counts
        size = (1 - CONSTANT**2) / rank
        sums = table[:, 1:]
        measured = Measured(
            sums=sums,
            counts=totals,
            noise=noise,
            mean=sums.sum(axis=0) / totals.sum(),
            # Features have norm 1, and factors of users variance 1.
            slope=math.sqrt(size) * np.eye(rank),
            scatter=size * _mean_weight(training.users, totals) * np.eye(rank),
        )
        return replace(after, items=measured.posterior())

    def reliability(self, state: UserInterestState) -> float:
        """Share of the variance of popularity over the items that is not noise."""
        return state.popularity.reliability

    def item_vectors(self, state: UserInterestState) -> Rows:
        """Interest vectors of the items."""
        return item_vectors(state.popularity.counts, state.items)


def _is_noise(state: UserInterestState) -> bool:
    """Whether popularity is mostly noise. What users liked then makes the most of their bound."""
    return state.rank == 0 and state.first_reliability < _RELIABLE


def contribution_weights(counts: Vector) -> npt.NDArray[np.int64]:
    """Weights of the items in every contribution, from released popularity."""
    relative = (counts / counts.max()) ** _WEIGHT_POWER
    rounded = np.clip(np.rint(WEIGHT_MAX * relative), 1, WEIGHT_MAX)
    weights: npt.NDArray[np.int64] = rounded.astype(np.int64)
    return weights


def _contribution_totals(counts: Vector, weights: npt.NDArray[np.int64]) -> Vector:
    """Sum over the users of each item of the weight of their contribution.

    With item weights g, a user's contribution to item i weighs g_i/√Σ g² instead of 1/√n. Users
    are taken to have items of the same mean g².
    """
    relative = weights / WEIGHT_MAX
    mean = np.average(relative**2, weights=counts)
    totals: Vector = counts * relative / math.sqrt(mean)
    return totals


def _mean_weight(users: float, totals: Vector) -> float:
    """Mean weight of a contribution, itself weighted: squares add up to 1 for each user."""
    return users / max(float(totals.sum()), 1e-9)
