"""Unit `user`: descent on items; each user is solved exactly from their own ratings.

Only sums over all users are released. First the weight of each item, the number of users and totals
of their mean ratings. Then each step releases Σ w·r·f by item, where w = 1/√n for a user with n
ratings, r are prediction errors clipped to about their standard deviation, and f is the user's own
profile, solved from released items. It also releases the mean product of features and the mean
square of the errors (docs/proofs/user.md). The release holds the items, and the prior with which a
user folds in.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from taciturn.accounting.budget import Budget
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis
from taciturn.data.ratings import Ratings
from taciturn.mechanisms.query import Released
from taciturn.model import assumptions
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Prior, Profiles
from taciturn.queries.per_user import ReleasedItems, UserSums, UserTotals, user_queries
from taciturn.queries.values import ValueView
from taciturn.solvers.als.clipped_errors import ClippedErrors, gradient_noise
from taciturn.solvers.clipping import ClipRule
from taciturn.solvers.contract import WHOLE, Algorithm, OwnerOnly, PublicFacts, QueryStep, Seeds
from taciturn.solvers.descent import (
    DescentSteps,
    NoisyCount,
    Rows,
    Vector,
    centred_grid,
    in_rating_units,
    levels_for,
    long_tailed,
    mean_and_unit,
    prior_means,
    rank_of,
    rating_scale_factor,
    shrunk_counts,
)

_WEIGHT_SHARE, _TOTAL_SHARE, _PRODUCT_SHARE, _SQUARE_SHARE = 0.03, 0.02, 0.02, 0.005
"""Budget shares of item weights, totals, all products of features and all mean squares."""

_ITERATIONS = 24

_FACTORS_START = 0.5
"""Initial standard deviation of factors, as a fraction of that of their prior."""

_LONGEST = 4.0
"""Maximum norm of features, in multiples of the constant feature."""

RANKS = ((0.2, 4), (0.7, 6), (0.85, 8))
"""Number of factors by the minimum data weight of items."""

_RATINGS_PER_COEFFICIENT = 2
"""Minimum number of a usual user's ratings for each coefficient of a profile. With fewer, profiles
fit the noise of single ratings, and so do the items that are fitted to them."""


@dataclass(frozen=True, eq=False, kw_only=True)
class UserState:
    """Item rows, the running sums for averaging, and the released totals of the users."""

    items: Rows
    item_sums: Rows
    weights: Vector
    users: float
    mean: float
    rating_unit: float
    standard_deviation: float


class UserAlgorithm(Algorithm[UserState]):
    """Descent under unit `user`.

    Parameters
    ----------
    facts
        Public facts of the ratings.
    budget
        Budget of all releases.
    factors
        Number of factors. Default: from the noisy weights and the noise.
    iterations
        Number of steps. Default: 24.
    threads
        Number of threads for the owner-only profiles of users.
    """

    unit = Unit.USER

    def __init__(
        self,
        facts: PublicFacts,
        budget: Budget,
        factors: int | None,
        iterations: int | None,
        threads: int | None = None,
    ) -> None:
        self.budget, self._facts, self._threads = budget, facts, threads
        self._is_rank_free = factors is None
        self._steps = _descent_steps(factors, iterations)
        scale = facts.scale
        self._middle, self._unit = (scale.low + scale.high) / 2, rating_scale_factor(scale)
        self._share = _gradient_share(self._steps)
        ratio = budget.mu * math.sqrt(self._share)
        grid = centred_grid(scale, levels_for(ratio))
        self._view = ValueView(grid=grid, axis=Axis.USERS, offset=self._middle)
        self._clip = ClipRule.for_mu(budget.mu)
        self._errors = ClippedErrors(
            view=self._view, clip=self._clip, ratio=ratio, iterations=self._steps.iterations
        )
        self._totals = UserTotals(items=facts.items, view=self._view)
        self.schedule = self._planned()

    def _planned(self) -> tuple[QueryStep, ...]:
        """Weights and totals, then sums by item, products and mean squares in every iteration."""
        width, count = 1 + self._steps.factors, self._steps.iterations
        errors = self._errors.at(assumptions.RATING, self._unit)
        queries = user_queries("", errors, items=self._facts.items, columns=width, width=width)
        shares = self._share, _PRODUCT_SHARE / count, _SQUARE_SHARE / count
        first = QueryStep(queries=self._totals.queries, shares=(_WEIGHT_SHARE, _TOTAL_SHARE))
        return self._errors.schedule(first, queries, shares)

    def initial_state(self, seeds: Seeds) -> UserState:
        """Items drawn from their prior; independent of the ratings."""
        of_items, _ = seeds.starts()
        items = of_items.normal(size=(self._facts.items, self._steps.factors + 1))
        items *= _FACTORS_START * self._steps.priors
        items[:, 0] = 0
        return UserState(
            items=items,
            item_sums=np.zeros_like(items),
            weights=np.zeros(len(items)),
            users=1.0,
            mean=0.0,
            rating_unit=self._unit,
            standard_deviation=assumptions.RATING,
        )

    def query(self, step: int, state: UserState) -> UserTotals | UserSums:
        """Weights and totals first; then sums of prediction error × the users' features."""
        if step == 0:
            return self._totals
        return UserSums(
            purpose=self._errors.purpose(step),
            errors=self._errors.at(state.standard_deviation, state.rating_unit),
            items=self._items(state, state.items, state.mean),
            width=1 + self._steps.factors,
        )

    def update(self, step: int, state: UserState, released: Released) -> UserState:
        """One step of the items against the noisy gradient, corrected for clipping."""
        if step == 0:
            return self._begun(state, released)
        gradient, triangle, squares = released.tables
        attenuation, users, unit = self._clip.attenuation, state.users, state.rating_unit
        steps = self._steps_at(state)
        products = _symmetric(triangle[0] / users, 1 + steps.factors)
        # Features have norm 1, so the constant feature determines the norm of the profile.
        first = max(float(products[0, 0]), 1e-9)
        length = min(max(1.0, 1 / math.sqrt(first)), _LONGEST / steps.constant) * steps.constant
        items = steps.descended(
            state.items,
            gradient / (attenuation * unit),
            noise=released.noise_scales[0] / (attenuation * unit),
            counts=state.weights,
            curvature=products * length,
            centre=prior_means(state.items, state.weights),
            weight=self._weight(state),
        )
        standard_deviation = self._clip.updated_standard_deviation(
            state.standard_deviation,
            float(squares[0, 0]) / users / unit**2,
            released.noise_scales[2] / users / unit**2,
        )
        after = replace(state, items=items, standard_deviation=standard_deviation)
        if step > steps.averaged_from:
            after = replace(after, item_sums=state.item_sums + items)
        return after

    def _begun(self, state: UserState, released: Released) -> UserState:
        """State after weights, number of users, mean and rating scale factor are released."""
        weights, totals = released.tables
        noise = released.noise_scales[1]
        count = NoisyCount(float(totals[0, 0]), noise)
        users = max(1.0, count.value)
        mean, unit = mean_and_unit(totals[0, 1:], noise, count, self._view.grid)
        counts = shrunk_counts(weights[:, 0], released.noise_scales[0])
        after = replace(state, weights=counts, users=users, mean=mean, rating_unit=unit)
        if not self._is_rank_free:
            return after
        usual = self._errors.noise
        weight = self._steps.data_weight(after.weights, usual, self._weight(after))
        # Σ w over the ratings of a user is the square root of their number.
        ratings = max(0.0, float(weights.sum()) / users) ** 2
        width = 1 + rank_of(weight, _ranks(ratings))
        return replace(
            after,
            items=after.items[:, :width].copy(),
            item_sums=after.item_sums[:, :width].copy(),
        )

    def _weight(self, state: UserState) -> float:
        """Mean weight of a rating, weighted by itself: Σ w²/Σ w."""
        return min(1.0, state.users / max(1.0, float(state.weights.sum())))

    def _steps_at(self, state: UserState) -> DescentSteps:
        """Descent steps for the number of factors of a state."""
        return replace(self._steps, factors=state.items.shape[1] - 1)

    def _items(self, state: UserState, rows: Rows, mean: float) -> ReleasedItems:
        """Items in rating units, from which users are solved."""
        prior = self._prior(state)
        return ReleasedItems(
            rows=in_rating_units(rows, state.rating_unit),
            regularization=prior.residual_variance / np.array(prior.variances),
            constant=self._steps.constant * math.sqrt(state.rating_unit),
            mean=mean,
        )

    def _prior(self, state: UserState) -> Prior:
        """Prior of a user's profile."""
        standard_deviations = in_rating_units(
            self._steps_at(state).priors[None], state.rating_unit
        )[0]
        standard_deviations[0] *= self._steps.constant
        residual = state.standard_deviation * state.rating_unit
        return Prior(
            residual_variance=residual**2,
            variances=tuple(float(each) for each in standard_deviations**2),
        )

    def _released_items(self, state: UserState) -> ReleasedItems:
        rows = self._steps.averaged_rows(state.items, state.item_sums)
        return self._items(state, rows, self._middle + state.mean)

    def model(self, state: UserState) -> FactorModel:
        """Released model: items, and the prior with which users fold in."""
        items = self._released_items(state)
        return FactorModel(
            scale=self._facts.scale,
            mean=items.mean,
            users=None,
            items=Profiles.from_rows(self._facts.item_ids, items.rows),
            prior=self._prior(state),
        )

    def owner_only(self, state: UserState, ratings: Ratings) -> OwnerOnly:
        """Profile of every user, as `fold_in` gives it: an exact function of their ratings."""
        items = self._released_items(state)
        targets = (ratings.values() - items.mean).astype(np.float32)
        users = items.solve_users(ratings.pattern.by_user, targets, self._threads)
        return OwnerOnly(users=Profiles.from_rows(ratings.user_ids, users))


def most_user_factors(items: int, budget: Budget, users: float, ratings: float) -> int:
    """Default number of factors for `users` users with `ratings` ratings each."""
    steps, clip = _descent_steps(None, None), ClipRule.for_mu(budget.mu)
    noise = gradient_noise(clip, budget.mu * math.sqrt(_gradient_share(steps)))
    weights = long_tailed(users * math.sqrt(ratings) / max(1, items))
    weight = steps.data_weight(weights, noise, 1 / math.sqrt(ratings))
    return rank_of(weight, _ranks(ratings))


def _ranks(ratings: float) -> list[tuple[float, int]]:
    """Ranks that users with this number of ratings can support."""
    most = ratings / _RATINGS_PER_COEFFICIENT - 1
    return [(least, rank) for least, rank in RANKS if rank <= most]


def _descent_steps(factors: int | None, iterations: int | None) -> DescentSteps:
    return DescentSteps(
        factors=RANKS[-1][1] if factors is None else factors,
        iterations=iterations or _ITERATIONS,
        step_size=0.4,
        regularization=0.8,
        averaged=0.75,
        constant=0.6,
    )


def _gradient_share(steps: DescentSteps) -> float:
    """Budget share of each gradient."""
    left = WHOLE - _WEIGHT_SHARE - _TOTAL_SHARE - _PRODUCT_SHARE - _SQUARE_SHARE
    return left / steps.iterations


def _symmetric(triangle: Rows, width: int) -> Rows:
    """Symmetric matrix with the given upper triangle."""
    matrix = np.zeros((width, width))
    matrix[np.triu_indices(width)] = triangle
    return matrix + np.triu(matrix, 1).T
