"""Unit `rating`: descent on clipped prediction errors with noisy counts.

First, noisy numbers of ratings of every user and item and noisy totals of the ratings are released.
Each step then releases Σ w·r·f by user and by item as one table and Σ r², with prediction errors r
clipped to about their standard deviation. Adding or removing one rating changes the table by at
most the clipping threshold, half of the bound for changing a value. The weights w follow from the
noisy counts and give more of a rating to the side that knows less. The descent divides by
Σ w·E[f fᵀ], which needs only the counts, so nothing else about the rating pattern is queried
(docs/proofs/rating.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from taciturn.accounting.budget import Budget
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis
from taciturn.mechanisms.query import Released
from taciturn.model import assumptions
from taciturn.model.factor_model import FactorModel
from taciturn.queries.joint_errors import Balance, JointErrorSums, joint_queries
from taciturn.queries.totals import RatingTotals
from taciturn.solvers.als.clipped_errors import ClippedErrors, gradient_noise
from taciturn.solvers.als.fold_in import UserPrior
from taciturn.solvers.als.public_items import PublicItems
from taciturn.solvers.als.stacked import RowPrior, StackedGradients
from taciturn.solvers.als.uncertainty import with_both_variances
from taciturn.solvers.clipping import ClipRule
from taciturn.solvers.contract import WHOLE, PublicFacts, QueryStep, Seeds
from taciturn.solvers.descent import (
    DescentSteps,
    NoisyCount,
    Rows,
    Vector,
    in_rating_units,
    levels_for,
    long_tailed,
    mean_and_unit,
    prior_means,
    rank_of,
    shrunk_counts,
)
from taciturn.solvers.gradient import DescentState, RatingWeights, TwoAxisDescent

_COUNT_SHARE, _TOTAL_SHARE, _SQUARE_SHARE = 0.01, 0.01, 0.008
"""Budget shares of each table of counts, of the totals, and of all sums of squares together."""

RANKS = ((0.23, 2), (0.32, 4), (0.6, 8), (0.7, 12), (0.78, 16), (0.88, 24))
RANKS_FOLD_IN = ((0.15, 4), (0.52, 8), (0.6, 12), (0.75, 16), (0.78, 24))
"""Number of factors by the minimum product of the data weights of users and items, if users are
published and if they fold in. Noise in many factors of a user does harm only if these are used."""

_EQUAL = math.sqrt(0.5)
"""Weight of a rating on each side if both have equally many ratings."""

_RATINGS_MIN = 1.0
"""Number of ratings that is assumed where noise hides it."""

ITERATIONS_WITHOUT_FACTORS = 24
"""Default number of steps without factors; fewer than with them."""

_GROWTH = 0.5, 0.5
"""Growth of the weights of gradients in a training without factors. Both axes move at once, so that
early gradients were taken further from the result."""

_FOLDED_VARIANCE = 0.65
"""Variance of a folded-in factor, as a fraction of its prior in training. Released rows are shrunk
and noisy, so they determine the directions in which users differ, and this constant how much."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RatingState(DescentState):
    """Rows, counts, mean, rating scale factor and residual standard deviation, all as released.

    `user_gradients` and `item_gradients` are averages of gradients. They determine the rows of a
    training without factors; one with factors averages rows.
    """

    user_gradients: StackedGradients
    item_gradients: StackedGradients
    user_counts: Vector
    item_counts: Vector
    total: float
    mean: float
    rating_unit: float
    standard_deviation: float


class RatingAlgorithm(TwoAxisDescent[RatingState]):
    """Descent under unit `rating`.

    Parameters
    ----------
    facts
        Public facts of the ratings.
    budget
        Budget of all releases.
    factors
        Number of factors. Default: from the noisy counts and the noise; none if factors would not
        help even if every user had rated every item.
    iterations
        Number of steps. Default: the less noise, the more steps.
    has_variances
        Whether the model includes posterior variances.
    """

    unit = Unit.RATING

    def __init__(
        self,
        facts: PublicFacts,
        budget: Budget,
        factors: int | None,
        iterations: int | None,
        *,
        has_variances: bool = False,
        ranks: Sequence[tuple[float, int]] = RANKS,
    ) -> None:
        self.budget, self._has_variances = budget, has_variances
        self._public, self._ranks = PublicItems.of(facts), ranks
        if factors is None and most_factors(facts.shape, budget) == 0:
            factors = 0 if self._public is None else self._public.factors
        steps = _descent_steps(budget, factors, iterations)
        self._share = _gradient_share(steps)
        ratio = budget.mu * math.sqrt(self._share)
        super().__init__(steps, facts, levels_for(ratio))
        self._item_features = facts.item_features
        self._is_rank_free, self._clip = factors is None, ClipRule.for_mu(budget.mu)
        self._errors = ClippedErrors(
            view=self.view, clip=self._clip, ratio=ratio, iterations=steps.iterations
        )
        self._totals = RatingTotals(shape=facts.shape, view=self.view)
        self.schedule = self._planned()

    def _planned(self) -> tuple[QueryStep, ...]:
        """Counts and totals, then the gradients and the sum of squares in every iteration."""
        width = 1 + self._steps.factors
        errors = self._errors.at(assumptions.RATING, self._unit)
        queries = joint_queries("", errors, self._facts.shape, columns=width, width=width)
        shares = self._share, _SQUARE_SHARE / self._steps.iterations
        first = QueryStep(
            queries=self._totals.queries, shares=(_COUNT_SHARE, _COUNT_SHARE, _TOTAL_SHARE)
        )
        return self._errors.schedule(first, queries, shares)

    def initial_state(self, seeds: Seeds) -> RatingState:
        """Profiles drawn from their prior; independent of the ratings."""
        start = self._start(seeds)
        if self._public is not None:
            start = self._public.begun(start, self._steps, self._unit)
        return RatingState(
            **vars(start),
            user_gradients=StackedGradients.none(self._facts.users, 1),
            item_gradients=StackedGradients.none(self._facts.items, 1),
            user_counts=np.zeros(self._facts.users),
            item_counts=np.zeros(self._facts.items),
            total=1.0,
            mean=0.0,
            rating_unit=self._unit,
            standard_deviation=assumptions.RATING,
        )

    def query(self, step: int, state: RatingState) -> RatingTotals | JointErrorSums:
        """Counts and totals first; then sums of prediction error × feature."""
        if step == 0:
            return self._totals
        users, items = self._features(state)
        return JointErrorSums(
            purpose=self._errors.purpose(step),
            errors=self._errors.at(state.standard_deviation, state.rating_unit),
            balance=Balance.of(state.user_counts, state.item_counts),
            width=1 + self._steps.factors,
            users=users,
            items=items,
        )

    def update(self, step: int, state: RatingState, released: Released) -> RatingState:
        """One step against the noisy gradients, corrected for clipping."""
        if step == 0:
            return self._begun(state, released)
        attenuation, (sums, squares) = self._clip.attenuation, released.tables
        gradients = np.split(sums / attenuation, [self._facts.users])
        noise = [released.noise_scales[0] / attenuation] * 2
        move = self._descended if state.items.shape[1] > 1 else self._stacked
        after = move(step - 1, state, gradients, noise)
        divisor = state.total * state.rating_unit**2
        standard_deviation = self._clip.updated_standard_deviation(
            state.standard_deviation,
            float(squares[0, 0]) / divisor,
            released.noise_scales[1] / divisor,
        )
        return replace(after, standard_deviation=standard_deviation)

    def _stacked(
        self, number: int, state: RatingState, gradients: Sequence[Rows], noise: Sequence[float]
    ) -> RatingState:
        """State without factors after iteration `number`: biases from all gradients so far."""
        counts, unit, steps = self._counts(state), state.rating_unit, self._steps_at(state)
        weights = self._weights(state)
        rows = {Axis.USERS: state.users, Axis.ITEMS: state.items}
        stacked = {Axis.USERS: state.user_gradients, Axis.ITEMS: state.item_gradients}
        after: dict[Axis, Rows] = {}
        for axis, gradient, scale in zip(Axis, gradients, noise, strict=True):
            stacked[axis] = stacked[axis].updated(
                rows[axis],
                gradient / unit,
                weights[axis].sums,
                steps.curvature(rows[axis.other], counts[axis.other]),
                constant=steps.constant,
                growth=_GROWTH,
            )
            after[axis] = stacked[axis].rows(
                steps,
                self._bias_prior(axis, counts[axis], unit),
                noise=scale / unit,
                counts=weights[axis].sums,
                weight=weights[axis].means,
            )
        return replace(
            state,
            users=after[Axis.USERS],
            items=after[Axis.ITEMS],
            user_gradients=stacked[Axis.USERS],
            item_gradients=stacked[Axis.ITEMS],
        )

    def _begun(self, state: RatingState, released: Released) -> RatingState:
        """State after the counts, mean and rating scale factor are released; sets the rank."""
        *tables, totals = released.tables
        *of_counts, noise = released.noise_scales
        total = NoisyCount(float(totals[0, 0]), noise)
        count = total.cautious(_RATINGS_MIN)
        users, items = (
            shrunk_counts(table[:, 0], each, count / len(table))
            for table, each in zip(tables, of_counts, strict=True)
        )
        mean, unit = mean_and_unit(totals[0, 1:], noise, total, self.view.grid)
        after = replace(
            state, user_counts=users, item_counts=items, total=count, mean=mean, rating_unit=unit
        )
        factors = self._steps.factors
        if self._is_rank_free:
            noise = self._errors.noise / _EQUAL
            weight = _product_weight(self._steps, users, items, noise)
            factors = rank_of(weight, self._ranks)
        if self._public is not None:
            if self._is_rank_free:
                factors = min(max(factors, self._public.factors), self._steps.factors)
            return self._public.begun(after, replace(self._steps, factors=factors), unit)
        rows = ("users", "items", "user_sums", "item_sums")
        return replace(
            after, **{name: getattr(after, name)[:, : 1 + factors].copy() for name in rows}
        )

    def model(self, state: RatingState) -> FactorModel:
        """Released model, in rating units."""
        found = super().model(state)
        if not self._has_variances:
            return found
        steps = self._steps_at(state)
        return with_both_variances(
            found,
            steps,
            self._final_rows(state),
            (state.user_counts, state.item_counts),
            weights=tuple(self._weights(state).values()),
            standard_deviation=state.standard_deviation,
            noise=self._averaged_noise(state),
            unit=state.rating_unit,
        )

    def _final_rows(self, state: RatingState) -> tuple[Rows, Rows]:
        """Released rows of users and of items; without factors, those of the last step."""
        if state.items.shape[1] > 1:
            return super()._final_rows(state)
        return state.users, state.items

    def _averaged_noise(self, state: RatingState) -> tuple[Vector, Vector]:
        """Variances of the noise of averaged gradients, in residual variances."""
        if state.items.shape[1] > 1:
            each = np.full(state.items.shape[1], 1 / self._steps.releases_averaged)
            shares = each, each
        else:
            shares = state.user_gradients.noise, state.item_gradients.noise
        users, items = (self._errors.noise**2 * share for share in shares)
        return users, items

    def user_prior(self, state: RatingState) -> UserPrior:
        """Prior of a user's profile, for folding in.

        Mean and directions are those of the released users, weighted by their noisy counts.
        Variances are those assumed in training, in units of the released rating scale factor.
        """
        unit, steps = state.rating_unit, self._steps_at(state)
        rows = in_rating_units(self._final_rows(state)[0], unit)
        found = UserPrior.of_rows(
            rows,
            state.user_counts,
            residual_variance=(state.standard_deviation * unit) ** 2,
        )
        assumed = in_rating_units(steps.priors[None], unit)[0]
        total = _FOLDED_VARIANCE * float((assumed[1:] ** 2).sum())
        return replace(
            found,
            bias_variance=float(assumed[0] * steps.constant) ** 2,
            covariance=found.covariance * (total / max(float(np.trace(found.covariance)), 1e-300)),
        )

    def _centre(self, axis: Axis, rows: Rows, counts: Vector, unit: float) -> Rows:
        """Prior means of rows: from noisy counts and, for items, from public inputs."""
        if axis is Axis.USERS:
            return prior_means(rows, counts)
        if self._public is None:
            return prior_means(rows, counts, self._item_features)
        steps = replace(self._steps, factors=rows.shape[1] - 1)
        return self._public.means(steps, unit, rows, counts, self._item_features)

    def _bias_prior(self, axis: Axis, counts: Vector, unit: float) -> RowPrior:
        """Prior of biases in a training without factors."""
        if axis is Axis.USERS:
            return RowPrior.by_count(counts)
        if self._public is None:
            return RowPrior.by_count(counts, self._item_features)
        return self._public.prior(
            replace(self._steps, factors=0), unit, counts, self._item_features
        )

    def _counts(self, state: RatingState) -> dict[Axis, npt.NDArray[Any]]:
        return {Axis.USERS: state.user_counts, Axis.ITEMS: state.item_counts}

    def _weights(self, state: RatingState) -> dict[Axis, RatingWeights]:
        """Weights as if every row had rated counterparts in proportion to their counts."""
        balance, counts = Balance.of(state.user_counts, state.item_counts), self._counts(state)
        found = {}
        for axis in Axis:
            means, squares = balance.moments(axis, counts[axis.other])
            found[axis] = RatingWeights(sums=counts[axis] * means, means=squares / means)
        return found

    def _unit_at(self, state: RatingState) -> float:
        return state.rating_unit

    def _mean_at(self, state: RatingState) -> float:
        return state.mean


def most_factors(shape: tuple[int, int], budget: Budget, ratings: float | None = None) -> int:
    """Default number of factors for `ratings` ratings, or if every user rated every item."""
    if ratings is not None:
        return rank_of(expected_weight(shape, budget, ratings), RANKS)
    steps, clip = _descent_steps(budget, None, None), ClipRule.for_mu(budget.mu)
    users, items = (np.full(1, float(count)) for count in reversed(shape))
    noise = gradient_noise(clip, _EQUAL * budget.mu * math.sqrt(_gradient_share(steps)))
    return rank_of(_product_weight(steps, users, items, noise), RANKS)


def expected_weight(shape: tuple[int, int], budget: Budget, ratings: float) -> float:
    """Product of the data weights of users and items for `ratings` ratings."""
    steps, clip = _descent_steps(budget, None, None), ClipRule.for_mu(budget.mu)
    users, items = (long_tailed(ratings / max(1, count)) for count in shape)
    noise = gradient_noise(clip, _EQUAL * budget.mu * math.sqrt(_gradient_share(steps)))
    return _product_weight(steps, users, items, noise)


def _product_weight(steps: DescentSteps, users: Vector, items: Vector, noise: float) -> float:
    """Product of the data weights of users and items with these numbers of ratings."""
    return steps.data_weight(users, noise) * steps.data_weight(items, noise)


def _descent_steps(budget: Budget, factors: int | None, iterations: int | None) -> DescentSteps:
    usual = ITERATIONS_WITHOUT_FACTORS if factors == 0 else min(80, round(24 + 24 * budget.mu))
    return DescentSteps(
        factors=RANKS[-1][1] if factors is None else factors, iterations=iterations or usual
    )


def _gradient_share(steps: DescentSteps) -> float:
    """Budget share of both gradients of a step together."""
    left = WHOLE - 2 * _COUNT_SHARE - _TOTAL_SHARE - _SQUARE_SHARE
    return left / steps.iterations
