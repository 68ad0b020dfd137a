"""Unit `user`: descent on items; each user is solved exactly from their own ratings.

Only sums over all users are released. First the weight of each item, the number of users and totals
of their mean ratings. Then each step releases Σ c·r·f by item, where r are prediction errors, f is
the user's own profile, solved from released items, and c clips the user's whole contribution to the
residual standard deviation. It also releases mean products of features, mean posterior covariances
and the mean square of the errors (docs/proofs/user.md).

A user's factors are uncertain, and items must not be fitted to that uncertainty as if it were
taste. The expected gradient of an item x over the posterior of its raters, with covariance P, is
Σ c·(r·f + P·x). The second term shrinks factors exactly as far as users' ratings leave them open,
so more factors or more budget do not overfit. The release holds the items, and the prior with which
a user folds in. With public item features, users have coefficients of their own for them, and the
prior mean of an item depends on its features.
"""

import math
from dataclasses import replace

import numpy as np

from taciturn.accounting.budget import Budget
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis
from taciturn.data.ratings import Ratings
from taciturn.mechanisms.query import Released
from taciturn.model import assumptions
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Prior, Profiles
from taciturn.queries.per_user import UserTotals
from taciturn.queries.user_sums import ReleasedItems, UserSums, user_queries
from taciturn.queries.values import ValueView
from taciturn.solvers.als.clipped_errors import ClippedErrors
from taciturn.solvers.als.fold_in import solved_users
from taciturn.solvers.als.public_items import PublicItems
from taciturn.solvers.als.stacked import RowPrior, StackedGradients
from taciturn.solvers.als.uncertainty import UserErrors, with_item_variances
from taciturn.solvers.als.user_covariance import UserCovariance
from taciturn.solvers.als.user_plan import (
    ATTENUATION,
    COVARIANCE_SHARE,
    GROWTH,
    PRODUCT_SHARE,
    SQUARE_SHARE,
    TOTAL_SHARE,
    WEIGHT_SHARE,
    gradient_share,
    supported_factors,
    user_steps,
)
from taciturn.solvers.als.user_state import UserState
from taciturn.solvers.clipping import ClipRule
from taciturn.solvers.contract import Algorithm, OwnerOnly, PublicFacts, QueryStep, Seeds
from taciturn.solvers.descent import (
    DescentSteps,
    NoisyCount,
    Rows,
    Vector,
    centred_grid,
    in_rating_units,
    levels_for,
    mean_and_unit,
    rating_scale_factor,
    shrunk_counts,
)
from taciturn.solvers.entry import OWN_PROFILES

_FACTORS_START = 0.5
"""Initial standard deviation of factors, as a fraction of that of their prior."""

_LONGEST = 4.0
"""Maximum norm of features, in multiples of the constant feature."""

_CLIP = ClipRule(2.0)
"""Prediction errors are clipped to twice their standard deviation for robustness. The bound of a
user's contribution is half of that, one standard deviation."""

_FEATURE_VARIANCE = 0.05
"""Prior variance of the part of a user's ratings that item features explain."""

_WEIGHT_MIN = 0.05
"""Minimum mean weight of an item that is assumed where noise hides the weights."""

_USUAL = 2.0
"""Number of ratings from which posterior covariances have full weight, relative to a usual user."""


class UserAlgorithm(Algorithm[UserState]):
    """Descent under unit `user`, and under other units if whole users are bounded.

    Under other units the noise is that for any change of one user's ratings: twice as large for
    sums by item, whose contributions can turn around (docs/proofs/user.md).

    Parameters
    ----------
    facts
        Public facts of the ratings.
    budget
        Budget of all releases.
    factors
        Number of factors. Default: from the noisy weights and the noise.
    iterations
        Number of steps. Default: the less noise, the more steps.
    threads
        Number of threads for the owner-only profiles of users.
    has_variances
        Whether the model includes posterior variances of items.
    unit
        Privacy unit.
    """

    def __init__(
        self,
        facts: PublicFacts,
        budget: Budget,
        factors: int | None,
        iterations: int | None,
        threads: int | None = None,
        *,
        has_variances: bool = False,
        unit: Unit = Unit.USER,
    ) -> None:
        self.budget, self._facts, self._threads = budget, facts, threads
        self.unit, is_user = unit, unit is Unit.USER
        self.served_exactly = None if is_user else OWN_PROFILES
        self._has_variances = has_variances
        self._is_rank_free = factors is None
        self._steps = user_steps(budget.mu if is_user else budget.mu / 2, factors, iterations)
        scale = facts.scale
        self._middle, self._unit = (scale.low + scale.high) / 2, rating_scale_factor(scale)
        self._share = gradient_share(self._steps)
        ratio = budget.mu * math.sqrt(self._share)
        grid = centred_grid(scale, levels_for(ratio))
        self.view = ValueView(grid=grid, axis=Axis.USERS, offset=self._middle)
        self._features, self._public = facts.item_features, PublicItems.of(facts)
        self._errors = ClippedErrors(
            view=self.view, clip=_CLIP, ratio=ratio, iterations=self._steps.iterations
        )
        mu, most = budget.mu, max(1, self._steps.averaged_count) / self._steps.iterations
        self._square_noise = _CLIP.multiplier**2 / (
            _CLIP.slope * mu * math.sqrt(SQUARE_SHARE * most)
        )
        self._total_noise = math.sqrt((3 if is_user else 4) / TOTAL_SHARE) / mu
        self._ratio = ratio if is_user else ratio / 2
        self._totals = UserTotals(items=facts.items, view=self.view, unit=unit)
        self.schedule = self._planned()

    def _planned(self) -> tuple[QueryStep, ...]:
        """Weights and totals, then sums by item, products and mean squares in every iteration."""
        width, count = 1 + self._steps.factors, self._steps.iterations
        errors = self._errors.at(assumptions.RATING, self._unit)
        queries = user_queries(
            "",
            errors,
            items=self._facts.items,
            features=self._features.shape[1],
            columns=width,
            width=width,
            unit=self.unit,
        )
        each = (PRODUCT_SHARE, COVARIANCE_SHARE, SQUARE_SHARE)
        shares = self._share, *(share / count for share in each)
        first = QueryStep(queries=self._totals.queries, shares=(WEIGHT_SHARE, TOTAL_SHARE))
        return self._errors.schedule(first, queries, shares)

    def initial_state(self, seeds: Seeds) -> UserState:
        """Items drawn from their prior; independent of the ratings."""
        of_items, _ = seeds.starts()
        items = of_items.normal(size=(self._facts.items, self._steps.factors + 1))
        items *= _FACTORS_START * self._steps.priors
        items[:, 0] = 0
        if self._public is not None:
            items = self._public.started(items, self._steps, self._unit)
        return UserState(
            items=items,
            gradients=StackedGradients.none(*items.shape),
            weights=np.zeros(len(items)),
            users=1.0,
            ratings=1.0,
            covariance=UserCovariance.unknown(self._steps.factors, self._features.shape[1]),
            mean=0.0,
            rating_unit=self._unit,
            standard_deviation=assumptions.RATING,
            square_sum=0.0,
        )

    def query(self, step: int, state: UserState) -> UserTotals | UserSums:
        """Weights and totals first; then sums of prediction error × the users' features."""
        if step == 0:
            return self._totals
        return UserSums(
            purpose=self._errors.purpose(step),
            errors=self._errors.at(state.standard_deviation, state.rating_unit),
            items=self._items(state, state.items, state.mean),
            usual=_USUAL * max(1.0, state.ratings),
            width=1 + self._steps.factors,
            unit=self.unit,
        )

    def update(self, step: int, state: UserState, released: Released) -> UserState:
        """One step of the items against the noisy gradient, corrected for clipping."""
        if step == 0:
            return self._begun(state, released)
        gradient, triangle, covariances, squares = released.tables
        users, unit, steps = state.users, state.rating_unit, self._steps_at(state)
        products = _symmetric(triangle[0] / users, 1 + steps.factors)
        # Features have norm 1, so the constant feature determines the norm of the profile.
        first = max(float(products[0, 0]), 1e-9)
        length = min(max(1.0, 1 / math.sqrt(first)), _LONGEST / steps.constant) * steps.constant
        covariance = state.covariance.updated(
            covariances[0], released.noise_scales[2], self._assumed(state), state.users
        )
        expected = covariance.expected_gradient(
            state.items, self._features, self._standard_deviations(state)
        )
        scale = ATTENUATION * unit
        gradients = state.gradients.updated(
            state.items,
            gradient / scale + state.weights[:, None] * expected.gradient / length,
            state.weights,
            products * length + expected.curvature / length,
            constant=steps.constant,
            growth=GROWTH,
        )
        items = gradients.rows(
            steps,
            self._item_prior(state),
            noise=released.noise_scales[0] / scale,
            counts=state.weights,
            weight=self._weight(state) * _excess(state.standard_deviation),
        )
        mean_square = float(squares[0, 0]) / users / unit**2
        standard_deviation = _CLIP.updated_standard_deviation(
            state.standard_deviation,
            mean_square,
            released.noise_scales[3] / users / unit**2,
        )
        errors = state.square_sum
        if step > steps.averaged_from:
            errors += _CLIP.variance(state.standard_deviation, mean_square)
        return replace(
            state,
            items=items,
            gradients=gradients,
            covariance=covariance,
            standard_deviation=standard_deviation,
            square_sum=errors,
        )

    def _item_prior(self, state: UserState) -> RowPrior:
        """Prior of the items' rows."""
        if self._public is None:
            return RowPrior.by_count(state.weights, self._features)
        return self._public.prior(
            self._steps_at(state), state.rating_unit, state.weights, self._features
        )

    def _assumed(self, state: UserState) -> Vector:
        """Posterior variances of a usual user's factors, as shares of their prior variances."""
        weights = state.weights / max(1e-9, float(state.weights.sum()))
        squares = weights @ state.items[:, 1:] ** 2
        prior = self._standard_deviations(state)[1 : state.items.shape[1]] ** 2
        information = state.ratings * squares * prior / state.standard_deviation**2
        assumed: Vector = 1 / (1 + information)
        return assumed

    def _begun(self, state: UserState, released: Released) -> UserState:
        """State after weights, number of users, mean and rating scale factor are released."""
        weights, totals = released.tables
        noise = released.noise_scales[1]
        count = NoisyCount(float(totals[0, 0]), noise)
        users = max(1.0, count.value)
        mean, unit = mean_and_unit(totals[0, 1:], noise, count, self.view.grid)
        size, of_weights = len(weights), released.noise_scales[0]
        whole = NoisyCount(float(weights.sum()), of_weights * math.sqrt(size))
        usual = whole.cautious(_WEIGHT_MIN * size, 1.0) / size
        counts = shrunk_counts(weights[:, 0], of_weights, usual)
        # Σ w over the ratings of a user is the square root of their number.
        ratings = max(0.0, float(weights.sum()) / users) ** 2
        after = replace(
            state, weights=counts, users=users, ratings=ratings, mean=mean, rating_unit=unit
        )
        factors = self._steps.factors
        if self._is_rank_free:
            factors = supported_factors(
                self._steps, after.weights, self._ratio, self._weight(after), ratings
            )
            if self._public is not None:
                factors = min(max(factors, self._public.factors), self._steps.factors)
        items = after.items[:, : 1 + factors].copy()
        if self._public is not None:
            items = self._public.started(items, replace(self._steps, factors=factors), unit)
        return replace(
            after,
            items=items,
            gradients=StackedGradients.none(*items.shape),
            covariance=UserCovariance.unknown(factors, self._features.shape[1]),
        )

    def _weight(self, state: UserState) -> float:
        """Mean weight of a rating, weighted by itself: Σ w²/Σ w."""
        return min(1.0, state.users / max(1.0, float(state.weights.sum())))

    def _steps_at(self, state: UserState) -> DescentSteps:
        """Descent steps for the number of factors of a state."""
        return replace(self._steps, factors=state.items.shape[1] - 1)

    def _items(self, state: UserState, rows: Rows, mean: float) -> ReleasedItems:
        """Items in rating units, from which users are solved."""
        prior, unit = self._prior(state), state.rating_unit
        return ReleasedItems(
            rows=in_rating_units(rows, unit),
            regularization=prior.residual_variance / np.array(prior.variances),
            constant=self._steps.constant * math.sqrt(unit),
            mean=mean,
            features=self._features * math.sqrt(unit) if self._features.shape[1] else None,
        )

    def _standard_deviations(self, state: UserState) -> Vector:
        """Prior standard deviations of a user's bias, factors and coefficients of features."""
        learnt = self._steps_at(state).priors.copy()
        learnt[0] *= self._steps.constant
        # Features have variance 1, so that their coefficients share the variance they explain.
        count = self._features.shape[1]
        return np.concatenate(
            [learnt, np.full(count, math.sqrt(_FEATURE_VARIANCE / max(1, count)))]
        )

    def _prior(self, state: UserState) -> Prior:
        """Prior of a user's profile."""
        deviations = in_rating_units(self._standard_deviations(state)[None], state.rating_unit)[0]
        residual = state.standard_deviation * state.rating_unit
        return Prior(
            residual_variance=residual**2,
            variances=tuple(float(each) for each in deviations**2),
        )

    def _released_items(self, state: UserState) -> ReleasedItems:
        return self._items(state, state.items, self._middle + state.mean)

    def model(self, state: UserState) -> FactorModel:
        """Released model: items, and the prior with which users fold in."""
        return self._released(state)

    def _released(self, state: UserState) -> FactorModel:
        items = self._released_items(state)
        found = FactorModel(
            scale=self._facts.scale,
            mean=items.mean,
            users=None,
            items=Profiles.from_rows(self._facts.item_ids, items.whole),
            prior=self._prior(state),
        )
        if not self._has_variances:
            return found
        return with_item_variances(
            found,
            self._steps_at(state),
            state.weights,
            UserErrors(
                square=state.square_sum / max(1, self._steps.averaged_count),
                square_noise=self._square_noise / state.users,
                total_noise=self._total_noise / state.users,
                ratings=state.ratings,
            ),
            standard_deviation=state.standard_deviation,
            noise=state.gradients.noise / (ATTENUATION * self._ratio) ** 2,
            weight=self._weight(state),
            unit=state.rating_unit,
        )

    def owner_only(self, state: UserState, ratings: Ratings) -> OwnerOnly:
        """Profile of every user, as `fold_in` gives it: an exact function of their ratings."""
        return OwnerOnly(users=solved_users(self._released(state), ratings, self._threads))


def _excess(standard_deviation: float) -> float:
    """Residual variance relative to its assumption, at least 1.

    Where it is smaller, so are biases: the rating scale factor was estimated too large.
    """
    return max(1.0, standard_deviation / assumptions.RESIDUAL) ** 2


def _symmetric(triangle: Rows, width: int) -> Rows:
    """Symmetric matrix with the given upper triangle."""
    matrix = np.zeros((width, width))
    matrix[np.triu_indices(width)] = triangle
    return matrix + np.triu(matrix, 1).T
