"""Alternating least squares with biases: each axis is solved exactly given the other.

The inputs are the rating pattern and exact or noisy values of the rated pairs; the result is as
private as these values.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from taciturn._internal import validate
from taciturn._internal.ridge import solve_rows
from taciturn.accounting.budget import Budget
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis
from taciturn.mechanisms.grid import ValueGrid
from taciturn.mechanisms.query import Released
from taciturn.model import assumptions
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Profiles
from taciturn.queries.weighted_sums import EveryRating
from taciturn.solvers.contract import (
    WHOLE,
    Algorithm,
    ExactStep,
    PostProcess,
    PublicFacts,
    QueryStep,
    Seeds,
    Step,
)
from taciturn.solvers.descent import rating_scale_factor
from taciturn.solvers.solver import check_factors, check_iterations

FACTORS_MAX = 1024

PRIOR_RATINGS = 200
"""Number of ratings added to that of each row in the regularization."""

BIAS_REGULARIZATION = 4.0

_START = 0.1
"""Initial standard deviation of factors, on a scale of width 4."""

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Regularization:
    """Diagonal added to the normal equations of a row with n ratings.

    by_count · n + fixed for factors; `bias` for the bias.
    """

    by_count: float
    fixed: float
    bias: float


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LeastSquaresState:
    """Values of the rated pairs minus their mean, in both orders, and the rows of both axes."""

    by_user: Floats
    by_item: Floats
    mean: float
    noise: float
    users: Rows
    items: Rows


class LeastSquaresAlgorithm(Algorithm[LeastSquaresState]):
    """Reads a value for every rated pair, then alternates between the axes.

    Parameters
    ----------
    facts
        Public facts of the ratings, including the rating pattern.
    budget
        Budget of the values; None for exact values.
    factors, iterations
        Number of factors, and number of times that both axes are solved.
    strength
        λ on a scale of width 4, without the part added for noise.
    threads
        Number of threads; the result does not depend on it.
    """

    unit = Unit.VALUE

    def __init__(
        self,
        facts: PublicFacts,
        budget: Budget | None,
        *,
        factors: int,
        iterations: int,
        strength: float,
        threads: int | None = None,
    ) -> None:
        self.budget, self._facts, self._threads = budget, facts, threads
        self._factors, self._strength = factors, strength
        grid = ValueGrid.for_scale(facts.scale.low, facts.scale.high)
        self._spec = EveryRating(purpose="every rating", pattern=facts.pattern.by_user, grid=grid)
        first: Step = ExactStep()
        if budget is not None:
            first = QueryStep(queries=self._spec.queries, shares=(WHOLE,))
        self.schedule = (first, *[PostProcess()] * iterations)

    def query(self, step: int, state: LeastSquaresState) -> EveryRating:
        """Query for every rating."""
        return self._spec

    def _regularization(self, noise: float) -> Regularization:
        """Regularization: λ · (number of ratings + `PRIOR_RATINGS`), plus that of a Gaussian prior.

        The second part increases with the standard deviation of the noise of the values.
        """
        unit = rating_scale_factor(self._facts.scale)
        by_count = self._strength * unit
        prior = assumptions.INTERACTION_VARIANCE / self._factors**0.5
        return Regularization(
            by_count=by_count,
            fixed=PRIOR_RATINGS * by_count + noise**2 / unit / prior,
            bias=BIAS_REGULARIZATION + (noise / unit) ** 2 / assumptions.BIAS**2,
        )

    def initial_state(self, seeds: Seeds) -> LeastSquaresState:
        """Random factors and no biases."""
        of_items, of_users = seeds.starts()
        scale = _START * math.sqrt(rating_scale_factor(self._facts.scale))
        users, items = (
            random.normal(scale=scale, size=(count, self._factors + 1))
            for random, count in zip((of_users, of_items), self._facts.shape, strict=True)
        )
        users[:, 0] = items[:, 0] = 0
        nothing = np.zeros(0, dtype=np.float32)
        return LeastSquaresState(
            by_user=nothing, by_item=nothing, mean=0.0, noise=0.0, users=users, items=items
        )

    @cached_property
    def _item_order(self) -> npt.NDArray[np.int64]:
        """Permutation that sorts pairs by item; users of an item stay in order."""
        return np.argsort(self._facts.pattern.by_user.columns, kind="stable")

    def update(self, step: int, state: LeastSquaresState, released: Released) -> LeastSquaresState:
        """State with the values read, or with both axes solved once, items first."""
        if step == 0:
            (values,), (noise,) = released.tables, released.noise_scales
            values = values.reshape(-1)
            scale = self._facts.scale
            mean = float(np.clip(np.mean(values, dtype=np.float64), scale.low, scale.high))
            centred = (values - values.dtype.type(mean)).astype(np.float32)
            return replace(
                state,
                by_user=centred,
                by_item=centred[self._item_order],
                mean=mean,
                noise=noise,
            )
        items = self._solve(Axis.ITEMS, state.by_item, state.users, state.noise)
        users = self._solve(Axis.USERS, state.by_user, items, state.noise)
        return replace(state, users=users, items=items)

    def _solve(self, axis: Axis, values: Floats, others: Rows, noise: float) -> Rows:
        """Rows of one axis given those of the other."""
        added, pattern = self._regularization(noise), self._facts.pattern.along(axis)
        by_count = np.full(others.shape[1], added.by_count)
        fixed = np.full(others.shape[1], added.fixed)
        by_count[0], fixed[0] = 0.0, added.bias
        return solve_rows(
            pattern.starts,
            pattern.columns,
            values,
            others,
            by_count=by_count,
            fixed=fixed,
            threads=self._threads,
        )

    def model(self, state: LeastSquaresState) -> FactorModel:
        """Model; it may be released only if the values are noisy."""
        facts = self._facts
        return FactorModel(
            scale=facts.scale,
            mean=state.mean,
            users=Profiles.from_rows(facts.user_ids, state.users),
            items=Profiles.from_rows(facts.item_ids, state.items),
        )


@dataclass(frozen=True, kw_only=True)
class LeastSquaresSettings:
    """Settings of alternating least squares on one value for each rating.

    Parameters
    ----------
    factors
        Number of factors, k.
    iterations
        Number of times that both axes are solved; that costs no privacy.
    regularization
        λ on a scale of width 4; it is scaled with the width, like squared profiles.
    """

    factors: int = 20
    iterations: int = 20
    regularization: float = 0.03

    def __post_init__(self) -> None:
        check_factors(self.factors, FACTORS_MAX)
        check_iterations(self.iterations)
        validate.positive("regularization", self.regularization, "0.03 is usual")

    def algorithm(
        self, facts: PublicFacts, budget: Budget | None, threads: int | None = None
    ) -> LeastSquaresAlgorithm:
        """Algorithm on noisy ratings; without a budget, on exact ones."""
        return LeastSquaresAlgorithm(
            facts,
            budget,
            factors=self.factors,
            iterations=self.iterations,
            strength=self.regularization,
            threads=threads,
        )
