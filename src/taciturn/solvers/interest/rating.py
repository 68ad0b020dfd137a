"""Interest under unit `rating`: noisy sums of features over the pattern, by item and by user.

Item factors follow from the raters of each item and user factors from the items of each user, in
turn, by `affinity`. Both axes are released, so that all features are public. Where noise leaves no
room for factors, every table by item counts ratings.
"""

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from taciturn.accounting.budget import Budget
from taciturn.data.pattern import Axis
from taciturn.mechanisms.query import Released
from taciturn.queries.pattern_sums import PatternSums, pattern_query
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

_SUPPORT = 0.12
"""Minimum product of the data weights of items and users for a number of factors."""


class RatingCounts(Protocol):
    """State of a training with released numbers of ratings of each user and item."""

    @property
    def user_counts(self) -> Vector:
        """Numbers of ratings of the users."""

    @property
    def item_counts(self) -> Vector:
        """Numbers of ratings of the items."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RatingInterestState:
    """Affinity factors of users and items, and the popularity of items.

    `rank` is −1 before it is chosen.
    """

    users: Rows
    items: Rows
    popularity: Popularity
    rank: float


class RatingInterest(InterestPart[RatingInterestState]):
    """Interest under unit `rating`.

    Parameters
    ----------
    facts
        Public facts of the ratings.
    budget
        Budget of the whole training.
    share
        Budget share of all queries of interest together.
    view
        View of the ratings that the training has.
    """

    def __init__(self, facts: PublicFacts, budget: Budget, share: float, view: ValueView) -> None:
        self._facts, self._view, self._mu = facts, view, budget.mu
        axes = [Axis.ITEMS, Axis.USERS] * INTEREST_ROUNDS
        self._axes = axes[:-1]
        self._share = share / len(self._axes)
        width = 1 + RANKS[-1]
        self.steps = tuple(
            QueryStep(
                queries=(
                    pattern_query(
                        self._purpose(step), axis, facts.shape, columns=width, width=width
                    ),
                ),
                shares=(self._share,),
            )
            for step, axis in enumerate(self._axes)
        )

    def _purpose(self, step: int) -> str:
        return purpose(step // 2, self._axes[step])

    def initial_state(self, seeds: Seeds) -> RatingInterestState:
        """Random users, from whose features the first factors of items follow."""
        _, of_users = seeds.starts()
        users = of_users.normal(size=(self._facts.users, RANKS[-1]))
        items = np.zeros((self._facts.items, RANKS[-1]))
        return RatingInterestState(
            users=users,
            items=items,
            popularity=Popularity.unknown(self._facts.items),
            rank=-1.0,
        )

    def begun(
        self, state: RatingInterestState, counts: RatingCounts, released: Released
    ) -> RatingInterestState:
        """State after numbers of ratings are released: chooses the number of factors."""
        noise = 1 / (self._mu * math.sqrt(self._share * (1 - CONSTANT**2)))
        weights = [
            data_weight(counts.item_counts, noise, rank)
            * data_weight(counts.user_counts, noise, rank)
            for rank in RANKS
        ]
        rank = most_supported(RANKS, weights, _SUPPORT)
        return replace(
            state,
            users=whitened(state.users[:, :rank], counts.user_counts),
            items=state.items[:, :rank],
            popularity=Popularity.of_counts(
                released.tables[1][:, 0], released.noise_scales[1], counts.item_counts
            ),
            rank=float(rank),
        )

    def shares(self, step: int, state: RatingInterestState) -> tuple[float, ...]:
        """Equal shares. Without factors, every table by item counts ratings."""
        return (self._share,)

    def query(self, step: int, state: RatingInterestState, counts: RatingCounts) -> PatternSums:
        """Σ of a constant and the factors of the counterparts."""
        axis = self._axes[step]
        rows = state.users if axis is Axis.ITEMS else whitened(state.items, counts.item_counts)
        return PatternSums(
            purpose=self._purpose(step),
            axis=axis,
            shape=self._facts.shape,
            view=self._view,
            features=features(rows),
            width=1 + RANKS[-1],
        )

    def update(
        self,
        step: int,
        state: RatingInterestState,
        counts: RatingCounts,
        released: Released,
    ) -> RatingInterestState:
        """State with the factors of the axis of a table, and with the popularity that it adds."""
        axis, (table,), (noise,) = self._axes[step], released.tables, released.noise_scales
        if axis is Axis.ITEMS:
            constant = CONSTANT if state.rank else 1.0
            popularity = state.popularity.with_counts(table[:, 0] / constant, noise / constant)
            state = replace(state, popularity=popularity)
        if state.rank == 0:
            return state
        own, others = counts.item_counts, counts.user_counts
        rows = state.users
        if axis is Axis.USERS:
            own, others, rows = others, own, whitened(state.items, own)
        found = _measured(table[:, 1:], own, noise, rows, others).posterior()
        if axis is Axis.ITEMS:
            return replace(state, items=found)
        return replace(state, users=whitened(found, own))

    def reliability(self, state: RatingInterestState) -> float:
        """Share of the variance of popularity over the items that is not noise."""
        return state.popularity.reliability

    def item_vectors(self, state: RatingInterestState) -> Rows:
        """Interest vectors of the items."""
        return item_vectors(state.popularity.counts, state.items)

    def user_coefficients(self, state: RatingInterestState) -> Rows:
        """Coefficients of the users, up to scale: 1 for popularity, then their factors."""
        return np.column_stack([np.ones(len(state.users)), state.users])


def features(rows: Rows) -> Rows:
    """Features of counterparts with these factors: a constant, and factors of bounded norm.

    Norms above the median are clipped to it. Without factors the constant is 1.
    """
    if rows.shape[1] == 0:
        return np.ones((len(rows), 1))
    norms = np.linalg.norm(rows, axis=1)
    bound = max(float(np.median(norms)), 1e-12)
    inside = rows / np.maximum(norms, bound)[:, None] * math.sqrt(1 - CONSTANT**2)
    return np.column_stack([np.full(len(rows), CONSTANT), inside])


def _measured(sums: Rows, counts: Vector, noise: float, rows: Rows, others: Vector) -> Measured:
    """Sums of the features of counterparts with these factors and numbers of ratings."""
    given, shares = features(rows)[:, 1:], others / others.sum()
    mean = shares @ given
    centred = rows - shares @ rows
    weighted = given * shares[:, None]
    return Measured(
        sums=sums,
        counts=counts,
        noise=noise,
        mean=mean,
        slope=weighted.T @ centred,
        scatter=weighted.T @ given - np.outer(mean, mean),
    )
