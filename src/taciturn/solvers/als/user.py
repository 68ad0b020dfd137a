"""Unit `user`: users are solved exactly, each from their own ratings, and items by descent.

Nothing about a user is released but sums over all users: first the weight of each item, the number
of users and how they rate; then, step by step, Σ w·r·f by item, with w = 1/√n for a user of n
ratings, prediction errors r clipped to about their usual size and f the user's own profile, solved
from released items; and with it the mean product of features and the mean square of errors
(docs/proofs/user.md). The release holds items, and the prior that is needed to solve a user from
their own ratings.
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
from taciturn.solvers.als.clipped_errors import ClippedErrors
from taciturn.solvers.clipping import ClipRule
from taciturn.solvers.contract import WHOLE, Algorithm, OwnerOnly, PublicFacts, QueryStep, Seeds
from taciturn.solvers.descent import (
    DescentSteps,
    Rows,
    Vector,
    centred_grid,
    in_rating_units,
    levels_for,
    mean_and_unit,
    prior_means,
    rank_of,
    rating_scale_factor,
    shrunk_counts,
)

_WEIGHT_SHARE, _TOTAL_SHARE, _PRODUCT_SHARE, _SQUARE_SHARE = 0.03, 0.02, 0.02, 0.005
"""Budget shares: of item weights, of totals, of all products of features, of all mean squares."""

_ITERATIONS = 24

_FACTORS_START = 0.5
"""Initial standard deviation of factors, as a fraction of their prior's."""

_LONGEST = 4.0
"""Maximum norm of features, in multiples of the constant feature."""

RANKS = ((0.2, 4), (0.7, 6), (0.85, 8))
"""Number of factors, by the data weight of items that it needs."""


@dataclass(frozen=True, eq=False, kw_only=True)
class UserState:
    """Item rows, the sums of those that are averaged, and what was released of the users."""

    items: Rows
    item_sums: Rows
    weights: Vector
    users: float
    mean: float
    rating_unit: float
    deviation: float


class UserAlgorithm(Algorithm[UserState]):
    """The descent under unit `user`.

    Parameters
    ----------
    facts
        Public facts of the ratings.
    budget
        Budget of all releases.
    factors
        Number of factors; as many as weights and noise leave room for when None.
    iterations
        Number of steps; the usual number when None.
    threads
        Number of threads for solving the owner's view of the users.
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
        self._steps = DescentSteps(
            factors=RANKS[-1][1] if factors is None else factors,
            iterations=iterations or _ITERATIONS,
            step_size=0.4,
            regularization=0.8,
            averaged=0.75,
            constant=0.6,
        )
        scale = facts.scale
        self._middle, self._unit = (scale.low + scale.high) / 2, rating_scale_factor(scale)
        left = WHOLE - _WEIGHT_SHARE - _TOTAL_SHARE - _PRODUCT_SHARE - _SQUARE_SHARE
        self._share = left / self._steps.iterations
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
        """Items drawn from their prior; nothing is known of the users."""
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
            deviation=assumptions.RATING,
        )

    def query(self, step: int, state: UserState) -> UserTotals | UserSums:
        """Weights and totals first; then sums of prediction error × the users' features."""
        if step == 0:
            return self._totals
        return UserSums(
            purpose=self._errors.purpose(step),
            errors=self._errors.at(state.deviation, state.rating_unit),
            items=self._items(state, state.items, state.mean),
            width=1 + self._steps.factors,
        )

    def update(self, step: int, state: UserState, released: Released) -> UserState:
        """One step of the items against the noisy gradient, corrected for clipping."""
        if step == 0:
            return self._begun(state, released)
        gradient, triangle, squares = released.tables
        kept, users, unit = self._clip.attenuation, state.users, state.rating_unit
        steps = self._steps_at(state)
        products = _symmetric(triangle[0] / users, 1 + steps.factors)
        # Features have norm 1; the constant among them shows how long profiles were.
        first = max(float(products[0, 0]), 1e-9)
        length = min(max(1.0, 1 / math.sqrt(first)), _LONGEST / steps.constant) * steps.constant
        items = steps.descended(
            state.items,
            gradient / (kept * unit),
            noise=released.noise_scales[0] / (kept * unit),
            counts=state.weights,
            curvature=products * length,
            centre=prior_means(state.items, state.weights),
            weight=self._weight(state),
        )
        mean_square = float(squares[0, 0]) / users / unit**2
        deviation = self._clip.deviation(state.deviation, mean_square)
        after = replace(state, items=items, deviation=deviation)
        if step > steps.averaged_from:
            after = replace(after, item_sums=state.item_sums + items)
        return after

    def _begun(self, state: UserState, released: Released) -> UserState:
        """The first state that knows weights, users, mean and rating scale factor."""
        weights, totals = released.tables
        users = max(1.0, float(totals[0, 0]))
        mean, unit = mean_and_unit(totals[0, 1:], users, self._view.grid)
        counts = shrunk_counts(weights[:, 0], released.noise_scales[0])
        after = replace(state, weights=counts, users=users, mean=mean, rating_unit=unit)
        if not self._is_rank_free:
            return after
        usual = self._errors.noise
        weight = self._steps.data_weight(after.weights, usual, self._weight(after))
        width = 1 + rank_of(weight, RANKS)
        return replace(
            after,
            items=after.items[:, :width].copy(),
            item_sums=after.item_sums[:, :width].copy(),
        )

    def _weight(self, state: UserState) -> float:
        """Usual weight of a rating: Σ w² over Σ w."""
        return min(1.0, state.users / max(1.0, float(state.weights.sum())))

    def _steps_at(self, state: UserState) -> DescentSteps:
        """Steps for as many factors as a state has."""
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
        deviations = in_rating_units(self._steps_at(state).priors[None], state.rating_unit)[0]
        deviations[0] *= self._steps.constant
        residual = state.deviation * state.rating_unit
        return Prior(
            residual_variance=residual**2,
            variances=tuple(float(each) for each in deviations**2),
        )

    def _released_items(self, state: UserState) -> ReleasedItems:
        rows = self._steps.averaged_rows(state.items, state.item_sums)
        return self._items(state, rows, self._middle + state.mean)

    def model(self, state: UserState) -> FactorModel:
        """The released model: items, and the prior by which users fold in."""
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


def _symmetric(triangle: Rows, width: int) -> Rows:
    """Symmetric matrix with the given upper triangle."""
    matrix = np.zeros((width, width))
    matrix[np.triu_indices(width)] = triangle
    return matrix + np.triu(matrix, 1).T
