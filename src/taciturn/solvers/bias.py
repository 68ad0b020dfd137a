"""Mean, item biases and user biases from noisy sums of ratings.

Under unit `value` there are three releases: Σ v by item, by user and over all ratings. The mean and
both kinds of biases are computed from them and from the rating pattern, which is public.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from taciturn._internal import validate
from taciturn.accounting.budget import Budget
from taciturn.accounting.ledger import Status
from taciturn.accounting.units import DEFAULT_UNIT, Unit, UnitName
from taciturn.data.pattern import Axis
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import FeatureGrid, ValueGrid
from taciturn.mechanisms.query import Released
from taciturn.model import assumptions
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Profiles
from taciturn.queries.residuals import Residuals, ResidualTotal
from taciturn.queries.values import ValueView
from taciturn.queries.weighted_sums import WeightedSums
from taciturn.scale import Scale
from taciturn.solvers.als.fold_in import UserPrior
from taciturn.solvers.als.public_items import PublicItems
from taciturn.solvers.als.rating import RatingAlgorithm
from taciturn.solvers.als.user import UserAlgorithm
from taciturn.solvers.contract import WHOLE, Algorithm, PostProcess, PublicFacts, QueryStep, Seeds
from taciturn.solvers.entry import SUM_OF_RATINGS
from taciturn.solvers.solver import Solver

Vector = npt.NDArray[np.float64]

_ROUNDS = 30
"""Number of alternations between the two axes; they cost no privacy."""

_MEAN_SHARE = 0.01
"""Budget share of the sum over all ratings. Item sums and user sums share the rest equally."""


@dataclass(frozen=True, kw_only=True)
class BiasSolver(Solver):
    """Mean, item and user biases. Status `proven`.

    Minimises Σ (v_ij − m − b_i − c_j)² plus a regularization of b and c that depends on the noise.
    Under `rating` and `user` it is `als` without factors.

    Parameters
    ----------
    unit
        Privacy unit: `value`, `rating` (the default) or `user`.
    regularization
        Multiplier of the default regularization, which follows from the noise and the prior; only
        under `value`.
    """

    name: ClassVar[str] = "bias"
    units: ClassVar[frozenset[Unit]] = frozenset(Unit)

    unit: UnitName = DEFAULT_UNIT
    regularization: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", validate.choice("unit", self.unit, Unit))
        validate.positive("regularization", self.regularization, "1 is usual")
        if self.unit is not Unit.VALUE and not self.is_private:
            raise InvalidParameter(
                f"{self.name} is not private, so unit does not apply; leave it out"
            )
        if self.unit is not Unit.VALUE and self.regularization != 1:
            raise InvalidParameter(
                f"unit {self.unit} chooses the regularization itself; leave it out, or use unit "
                "value"
            )

    def algorithm(
        self, facts: PublicFacts, budget: Budget | None, threads: int | None = None
    ) -> Algorithm[Any]:
        """Algorithm for the privacy unit."""
        if self.unit is Unit.RATING:
            return RatingAlgorithm(facts, self.require_budget(budget), 0, None)
        if self.unit is Unit.USER:
            return UserAlgorithm(facts, self.require_budget(budget), 0, None, threads)
        return BiasAlgorithm(facts, budget, self.regularization, threads)


@dataclass(frozen=True, kw_only=True)
class NonPrivateBiasSolver(BiasSolver):
    """`bias` on exact sums: not private, for comparison."""

    name: ClassVar[str] = "non-private-bias"
    status: ClassVar[Status] = Status.NONE
    units: ClassVar[frozenset[Unit]] = frozenset({Unit.VALUE})

    unit: UnitName = Unit.VALUE


@dataclass(frozen=True, eq=False, kw_only=True)
class BiasState:
    """Noisy sums by axis, standard deviations of their noise, and finally mean and biases.

    `total` is the noisy sum of all ratings minus the middle of the scale.
    """

    item_sums: Vector
    user_sums: Vector
    item_noise: float
    user_noise: float
    total: float
    total_noise: float
    mean: float
    items: Vector
    users: Vector


class BiasAlgorithm(Algorithm[BiasState]):
    """Three releases and a least-squares solution, under unit `value`."""

    unit = Unit.VALUE

    def __init__(
        self,
        facts: PublicFacts,
        budget: Budget | None,
        regularization: float = 1.0,
        threads: int | None = None,
    ) -> None:
        self.budget, self._facts, self._regularization = budget, facts, regularization
        self._threads = threads
        self._public = PublicItems.of(facts)
        grid, features = ValueGrid.for_scale(facts.scale.low, facts.scale.high), FeatureGrid()
        self._specs = tuple(
            WeightedSums(
                purpose=f"sums of ratings by {axis.singular}",
                axis=axis,
                pattern=facts.pattern.along(axis),
                view=ValueView(grid=grid, axis=axis),
                features=np.full(
                    (facts.pattern.along(axis).width, 1), features.bound, dtype=np.int32
                ),
                feature_grid=features,
            )
            for axis in (Axis.ITEMS, Axis.USERS)
        )
        self._total = self._sum_of_ratings()
        share = (WHOLE - _MEAN_SHARE) / 2
        releases = [QueryStep(queries=spec.queries, shares=(share,)) for spec in self._specs]
        total = QueryStep(queries=self._total.queries, shares=(_MEAN_SHARE,))
        self.schedule = (*releases, total, PostProcess())

    def _sum_of_ratings(self) -> ResidualTotal:
        """Query for the sum of all ratings minus the middle of the scale."""
        facts = self._facts
        view = ValueView(
            grid=ValueGrid.for_scale(-facts.scale.range / 2, facts.scale.range / 2),
            axis=Axis.USERS,
            offset=_middle(facts.scale),
        )
        pattern = facts.pattern.by_user
        predictions = np.zeros(pattern.entries, dtype=np.int32)
        residuals = Residuals(view, pattern, predictions, view.grid.range)
        return ResidualTotal(
            purpose=SUM_OF_RATINGS, residuals=residuals, power=1, proof="grid.md#sensitivity"
        )

    def initial_state(self, seeds: Seeds) -> BiasState:
        """State that is independent of the ratings."""
        users, items = (np.zeros(count) for count in self._facts.shape)
        return BiasState(
            item_sums=items,
            user_sums=users,
            item_noise=0.0,
            user_noise=0.0,
            total=0.0,
            total_noise=0.0,
            mean=0.0,
            items=items,
            users=users,
        )

    def query(self, step: int, state: BiasState) -> WeightedSums | ResidualTotal:
        """Sums of ratings by item, then by user, then over all ratings."""
        return self._total if step == 2 else self._specs[step]

    def update(self, step: int, state: BiasState, released: Released) -> BiasState:
        """State with the released sums; solved after the last release."""
        if step == 3:
            return self._solved(state)
        (table,), (noise,) = released.tables, released.noise_scales
        if step == 2:
            return replace(state, total=float(table[0, 0]), total_noise=noise)
        if step == 0:
            return replace(state, item_sums=table[:, 0], item_noise=noise)
        return replace(state, user_sums=table[:, 0], user_noise=noise)

    def _solved(self, state: BiasState) -> BiasState:
        """Mean, item and user biases by alternating least squares on noisy sums."""
        pattern = self._facts.pattern
        patterns = pattern.by_item, pattern.by_user
        counts = [each.counts.astype(float) for each in patterns]
        sums, noise = (state.item_sums, state.user_sums), (state.item_noise, state.user_noise)
        mean = self._mean(state)
        residual, prior = self._variances()
        added = [
            self._regularization * (residual + scale**2 / np.maximum(count, 1)) / prior
            for count, scale in zip(counts, noise, strict=True)
        ]
        centres = [np.zeros(count.size) for count in counts]
        if self._public is not None:
            centres[0] = self._public.biases
        biases = [centre.copy() for centre in centres]
        for number in range(2 * _ROUNDS):
            own, other = number % 2, 1 - number % 2
            explained = counts[own] * mean + patterns[own].product(biases[other], self._threads)
            weighted = sums[own] - explained + added[own] * centres[own]
            biases[own] = weighted / (counts[own] + added[own])
        return replace(state, mean=mean, items=biases[0], users=biases[1])

    def _variances(self) -> tuple[float, float]:
        """Assumed variances of residuals and of biases, in rating units."""
        residual, prior = (
            assumptions.in_rating_units(each, self._facts.scale) ** 2
            for each in (assumptions.RESIDUAL_WITHOUT_FACTORS, assumptions.BIAS_SHRUNK)
        )
        return residual, prior

    def _mean(self, state: BiasState) -> float:
        """Posterior mean of the mean rating, whose prior is about the middle of the scale.

        Both tables have the same total as the ratings, each with its own noise.
        """
        scale, count = self._facts.scale, self._facts.pattern.entries
        middle = _middle(scale)
        precision, seen = 1 / assumptions.in_rating_units(assumptions.MEAN, scale) ** 2, 0.0
        for total, noise in (
            (state.total, state.total_noise),
            *(
                (float(sums.sum()) - count * middle, each * math.sqrt(sums.size))
                for sums, each in (
                    (state.item_sums, state.item_noise),
                    (state.user_sums, state.user_noise),
                )
            ),
        ):
            weight = count**2 / max(noise**2, 1e-12)
            precision += weight
            seen += weight * total / count
        return float(np.clip(middle + seen / precision, scale.low, scale.high))

    def model(self, state: BiasState) -> FactorModel:
        """Released model: profiles without factors."""
        return FactorModel(
            scale=self._facts.scale,
            mean=state.mean,
            users=Profiles.from_rows(self._facts.user_ids, state.users[:, None]),
            items=Profiles.from_rows(self._facts.item_ids, state.items[:, None]),
        )

    def user_prior(self, state: BiasState) -> UserPrior:
        """Prior of a user's bias, for folding in: public constants."""
        residual, prior = self._variances()
        return UserPrior(
            residual_variance=residual,
            mean=np.zeros(1),
            bias_variance=prior,
            covariance=np.zeros((0, 0)),
        )


def _middle(scale: Scale) -> float:
    return (scale.low + scale.high) / 2
