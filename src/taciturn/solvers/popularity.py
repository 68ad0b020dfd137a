"""Popularity of items from noisy numbers of ratings: the same list for every user.

The baseline of ranked lists. Under unit `rating` the number of ratings of each item is released
with the whole budget; under `user`, the sum of their weights 1/√n, where n is the number of ratings
of the user. One table may spend a limited budget, so a larger one is divided among several. Under
`value` the rating pattern is public and the numbers are exact. No ratings are predicted.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal import validate
from taciturn.accounting import sampler
from taciturn.accounting.budget import Budget
from taciturn.accounting.ledger import Status
from taciturn.accounting.units import DEFAULT_UNIT, Unit, UnitName
from taciturn.data.pattern import Axis
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import ValueGrid
from taciturn.mechanisms.query import Released
from taciturn.model import assumptions
from taciturn.model.factor_model import FactorModel
from taciturn.model.interest import Interest
from taciturn.model.profiles import Prior, Profiles
from taciturn.queries.item_counts import ItemCounts
from taciturn.queries.values import ValueView
from taciturn.solvers.contract import (
    WHOLE,
    Algorithm,
    ExactStep,
    OwnerOnly,
    PostProcess,
    PublicFacts,
    QueryStep,
    Seeds,
)
from taciturn.solvers.descent import NoisyCount, shrunk_counts
from taciturn.solvers.entry import POPULARITY, POPULARITY_TABLE
from taciturn.solvers.solver import Solver

Vector = npt.NDArray[np.float64]

_COUNT_MIN = 0.05
"""Minimum mean count of an item that is assumed where noise hides the counts."""

_TABLES_MAX = 1000
"""Maximum number of tables; a budget that needs more is refused."""

_INTEREST = Interest(rating_weight=1.0, unseen_weight=0.1, regularization=0.01)
"""Parameters of interest. With one column they do not affect the order of a list."""


@dataclass(frozen=True, kw_only=True)
class PopularitySolver(Solver):
    """Most popular items first, for every user. Status `proven`. Predicts no ratings.

    Parameters
    ----------
    unit
        Privacy unit: `value`, `rating` (the default) or `user`.
    """

    name: ClassVar[str] = "popularity"
    units: ClassVar[frozenset[Unit]] = frozenset(Unit)

    unit: UnitName = DEFAULT_UNIT

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", validate.choice("unit", self.unit, Unit))
        if self.unit not in self.units:
            raise InvalidParameter(
                f"{self.name} is not private, so unit does not apply; leave it out"
            )

    def algorithm(
        self, facts: PublicFacts, budget: Budget | None, threads: int | None = None
    ) -> Algorithm[Any]:
        """One release of counts, or the public counts under unit `value`."""
        if self.unit is Unit.VALUE:
            return PublicCounts(facts, budget)
        return NoisyCounts(facts, self.require_budget(budget), Unit(self.unit))


@dataclass(frozen=True, kw_only=True)
class NonPrivatePopularitySolver(PopularitySolver):
    """`popularity` on exact numbers of ratings: not private, for comparison."""

    name: ClassVar[str] = "non-private-popularity"
    status: ClassVar[Status] = Status.NONE
    units: ClassVar[frozenset[Unit]] = frozenset({Unit.VALUE})

    unit: UnitName = Unit.VALUE


@dataclass(frozen=True, eq=False, kw_only=True)
class PopularityState:
    """Number of ratings of each item, or its posterior mean, and the sum of the noisy tables."""

    counts: Vector
    total: Vector


class _PopularityAlgorithm(Algorithm[PopularityState]):
    """Model from the counts of items."""

    _facts: PublicFacts

    def initial_state(self, seeds: Seeds) -> PopularityState:
        """No item is more popular than another."""
        return PopularityState(counts=np.ones(self._facts.items), total=np.zeros(self._facts.items))

    def model(self, state: PopularityState) -> FactorModel:
        """Released model: popularity, and profiles without biases or factors."""
        facts, unit = self._facts, self.unit
        popularity = state.counts / (float(state.counts.std()) or 1.0)
        return FactorModel(
            scale=facts.scale,
            mean=(facts.scale.low + facts.scale.high) / 2,
            users=None if unit is Unit.USER else _profiles(facts.user_ids, np.ones(facts.users)),
            items=_profiles(facts.item_ids, popularity),
            prior=self._prior() if unit is Unit.USER else None,
            interest=_INTEREST,
        )

    def _prior(self) -> Prior:
        """Prior of a user's bias, for folding in: public constants."""
        residual, bias = (
            assumptions.in_rating_units(each, self._facts.scale) ** 2
            for each in (assumptions.RESIDUAL_WITHOUT_FACTORS, assumptions.BIAS_SHRUNK)
        )
        return Prior(residual_variance=residual, variances=(bias,))


class NoisyCounts(_PopularityAlgorithm):
    """Noisy counts of items, under unit `rating` or `user`: the mean of equal tables."""

    def __init__(self, facts: PublicFacts, budget: Budget, unit: Unit) -> None:
        self.budget, self._facts, self.unit = budget, facts, unit
        scale = facts.scale
        tables = tables_for(budget)
        self._specs = [
            ItemCounts(
                items=facts.items,
                users=facts.users if unit is Unit.RATING else None,
                view=ValueView(grid=ValueGrid.for_scale(scale.low, scale.high), axis=Axis.USERS),
                unit=unit,
                prefix=POPULARITY_TABLE.format(step=1 + step, steps=tables),
            )
            for step in range(tables)
        ]
        shares = (WHOLE / tables,)
        self.schedule = tuple(
            QueryStep(queries=each.queries, shares=shares) for each in self._specs
        )

    def query(self, step: int, state: PopularityState) -> ItemCounts:
        """The same counts in every step."""
        return self._specs[step]

    def update(self, step: int, state: PopularityState, released: Released) -> PopularityState:
        """Posterior means of the counts, from the mean of all tables."""
        (table,), (noise,) = released.tables, released.noise_scales
        items, total = len(table), state.total + table[:, 0]
        counts, noise = total / (1 + step), noise / math.sqrt(1 + step)
        ratings = NoisyCount(float(counts.sum()), noise * math.sqrt(items))
        usual = ratings.cautious(_COUNT_MIN * items) / items
        return PopularityState(counts=shrunk_counts(counts, noise, usual), total=total)

    def owner_only(self, state: PopularityState, ratings: Ratings) -> OwnerOnly:
        """Users, whose ids are private under unit `user`."""
        if self.unit is not Unit.USER:
            return OwnerOnly()
        return OwnerOnly(users=_profiles(ratings.user_ids, np.ones(len(ratings.user_ids))))


class PublicCounts(_PopularityAlgorithm):
    """Exact counts of items, which are public under unit `value`: nothing is queried.

    Without a budget the training is not private and records that it read exact ratings.
    """

    unit = Unit.VALUE

    def __init__(self, facts: PublicFacts, budget: Budget | None) -> None:
        self.budget, self._facts = budget, facts
        self.schedule = (PostProcess() if budget else ExactStep(),)
        self.published_patterns = (POPULARITY,)

    def initial_state(self, seeds: Seeds) -> PopularityState:
        """Numbers of ratings by item."""
        counts = self._facts.pattern.by_item.counts.astype(np.float64)
        return PopularityState(counts=counts, total=counts)

    def query(self, step: int, state: PopularityState) -> ItemCounts:
        """No step has a query."""
        raise InvalidParameter("counts are public under unit value; there is nothing to query")

    def update(self, step: int, state: PopularityState, released: Released) -> PopularityState:
        """The counts stay as they are."""
        return state


def tables_for(budget: Budget) -> int:
    """Number of equal tables that spend a budget: one, unless a table may not spend it alone."""
    needed = budget.mu**2 / sampler.RATIO_MAX**2 * (1 + 1e-9)
    return min(_TABLES_MAX, max(1, math.ceil(needed)))


def _profiles(ids: pl.Series, interests: Vector) -> Profiles:
    """Profiles without biases and factors, with one column of interests."""
    found = Profiles.from_rows(ids, np.zeros((len(ids), 1)))
    return Profiles(
        ids=ids,
        biases=found.biases,
        factors=found.factors,
        interests=interests.astype(np.float32)[:, None],
    )
