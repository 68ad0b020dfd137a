"""Alternating least squares with biases: each axis is solved exactly while the other rests.

Knows the rating pattern and some values for the rated pairs, exact or noisy; its result is as
private as those are.
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
"""Ratings that the regularization counts for a row beyond its own."""

BIAS_REGULARIZATION = 4.0

_START = 0.1
"""Initial standard deviation of factors, where the scale is 4 wide."""

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
    """Reads a value for every rated pair, then alternates.

    Parameters
    ----------
    facts
        Public facts of the ratings, the rating pattern among them.
    budget
        Budget of the values; None reads exact ones.
    factors, iterations
        Length of a profile, and how often both axes are solved.
    strength
        λ for a scale that is 4 wide, before what noise adds.
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
        """Every rating by itself."""
        return self._spec

    def _regularization(self, noise: float) -> Regularization:
        """λ times the number of ratings and a few hundred more, and what a prior asks for.

        A Gaussian prior asks for more where values carry noise of this standard deviation.
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
        """Order of pairs by item; users keep their order within each."""
        return np.argsort(self._facts.pattern.by_user.columns, kind="stable")

    def update(self, step: int, state: LeastSquaresState, released: Released) -> LeastSquaresState:
        """Take the values, or solve both axes once, items first."""
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
        """Rows of one axis, those of the other given."""
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
        """The model; it may be released only if the values were noised."""
        facts = self._facts
        return FactorModel(
            scale=facts.scale,
            mean=state.mean,
            users=Profiles.from_rows(facts.user_ids, state.users),
            items=Profiles.from_rows(facts.item_ids, state.items),
        )


@dataclass(frozen=True, kw_only=True)
class LeastSquaresSettings:
    """Settings that the solvers by alternating least squares share.

    Parameters
    ----------
    factors
        Length of a profile, k.
    iterations
        Number of times that both axes are solved; that costs no privacy.
    regularization
        λ for a scale that is 4 wide; it grows with the width, as the squares of profiles do.
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
        """Least squares on noisy ratings, or on exact ones without a budget."""
        return LeastSquaresAlgorithm(
            facts,
            budget,
            factors=self.factors,
            iterations=self.iterations,
            strength=self.regularization,
            threads=threads,
        )
