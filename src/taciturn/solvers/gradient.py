"""Noisy gradient descent on both axes: a sound and improved version of the published algorithm.

Each iteration releases Σ (v̂ − v)·f by user and by item, in one pass over the ratings, with
Gaussian noise on both. Everything else is computed from released numbers and public facts, so X and
Θ may both be published (docs/proofs/gradient.md). Three changes improve accuracy at no privacy
cost:

- biases are an additional coordinate of a profile, multiplied by a constant feature;
- a step is divided by the curvature n·E[f fᵀ], from released features and public numbers of
  ratings, plus a regularization that increases with the noise, so that a few dozen steps suffice;
- the last iterates are averaged, which reduces their noise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from taciturn._internal import validate
from taciturn.accounting.budget import Budget
from taciturn.accounting.ledger import Status
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.query import Released
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Profiles
from taciturn.queries.error_pass import ErrorPass, value_levels
from taciturn.queries.features import AxisFeatures
from taciturn.queries.prediction_errors import PredictionErrorSums, error_queries, pass_axis
from taciturn.queries.values import ValueView
from taciturn.solvers.contract import WHOLE, Algorithm, PublicFacts, Seeds, repeated
from taciturn.solvers.descent import (
    DescentSteps,
    Rows,
    centred_grid,
    in_rating_units,
    rating_scale_factor,
)
from taciturn.solvers.solver import Solver, check_factors, check_iterations

FACTORS_MAX = 4096

VALUE_LEVELS = 64
"""Minimum number of steps of the value grid; rounding errors are then far below the error of a
rating."""


@dataclass(frozen=True, kw_only=True)
class GradientSolver(Solver):
    """Gradient descent with noise on the gradients of both axes. Unit `value`, status `proven`.

    Minimises Σ (v_ij − m − b_i − c_j − ⟨x_i, θ_j⟩)² plus a regularization, where m is the
    middle of the scale.

    Parameters
    ----------
    factors
        Number of factors, k.
    iterations
        Number of steps, fixed in advance; the budget is divided among them.
    step_size
        Fraction of a full step taken in each iteration.
    regularization
        Multiplier of the default regularization, which follows from the noise and the prior.
    averaged
        Fraction of the iterates, the last ones, that are averaged.
    """

    name: ClassVar[str] = "gradient"

    factors: int = 8
    iterations: int = 30
    step_size: float = 0.3
    regularization: float = 1.0
    averaged: float = 0.5

    def __post_init__(self) -> None:
        check_factors(self.factors, FACTORS_MAX)
        check_iterations(self.iterations)
        validate.positive("step_size", self.step_size, "see the solver's default")
        validate.positive("regularization", self.regularization, "1 is usual")
        if not 0 <= validate.finite("averaged", self.averaged, "0.5 is usual") <= 1:
            raise InvalidParameter(f"averaged must be between 0 and 1, got {self.averaged}")

    def algorithm(
        self, facts: PublicFacts, budget: Budget | None, threads: int | None = None
    ) -> "GradientAlgorithm":
        """Descent algorithm for ratings with these public facts."""
        return GradientAlgorithm(DescentSteps(**self.settings), facts, budget)


@dataclass(frozen=True, kw_only=True)
class NonPrivateGradientSolver(GradientSolver):
    """The same descent without noise: not private, for comparison."""

    name: ClassVar[str] = "non-private-gradient"
    status: ClassVar[Status] = Status.NONE

    iterations: int = 60


@dataclass(frozen=True, eq=False, kw_only=True)
class DescentState:
    """Rows of both axes, and the running sums for averaging."""

    users: Rows
    items: Rows
    user_sums: Rows
    item_sums: Rows


AnyState = TypeVar("AnyState", bound=DescentState)


@dataclass(frozen=True, eq=False, kw_only=True)
class RatingWeights:
    """Weights of the ratings in the gradient of each row.

    sums: sum of the weights of its ratings; means: their mean, itself weighted by weight.
    """

    sums: npt.NDArray[Any]
    means: npt.NDArray[np.float64] | float = 1.0


class TwoAxisDescent(Algorithm[AnyState], Generic[AnyState]):
    """Descent on the gradients of both axes; subclasses differ in their public facts."""

    def __init__(self, steps: DescentSteps, facts: PublicFacts, levels: int) -> None:
        self._steps, self._facts = steps, facts
        grid = centred_grid(facts.scale, levels)
        self._middle = (facts.scale.low + facts.scale.high) / 2
        self.view = ValueView(grid=grid, axis=pass_axis(facts.shape), offset=self._middle)
        self._unit = rating_scale_factor(facts.scale)

    def _start(self, seeds: Seeds) -> DescentState:
        of_items, of_users = seeds.starts()
        users = self._steps.initial(of_users, self._facts.users)
        items = self._steps.initial(of_items, self._facts.items)
        return DescentState(
            users=users,
            items=items,
            user_sums=np.zeros_like(users),
            item_sums=np.zeros_like(items),
        )

    def _steps_at(self, state: AnyState) -> DescentSteps:
        """Descent steps for the number of factors of a state."""
        return replace(self._steps, factors=state.items.shape[1] - 1)

    def _unit_at(self, state: AnyState) -> float:
        """Rating scale factor: converts a bias to rating units."""
        return self._unit

    def _mean_at(self, state: AnyState) -> float:
        """Mean rating relative to the middle of the scale."""
        return 0.0

    def _counts(self, state: AnyState) -> dict[Axis, npt.NDArray[Any]]:
        """Number of ratings of each row: public under unit `value`."""
        pattern = self._facts.pattern
        return {axis: pattern.along(axis).counts for axis in Axis}

    def _weights(self, state: AnyState) -> dict[Axis, RatingWeights]:
        """Weights of the ratings of each row. Default: 1 for every rating."""
        return {axis: RatingWeights(sums=each) for axis, each in self._counts(state).items()}

    def _centre(self, axis: Axis, rows: Rows, counts: npt.NDArray[Any], unit: float) -> Rows | None:
        """Prior mean of the rows of an axis; None if it is zero."""
        return None

    def _features(self, state: AnyState) -> tuple[AxisFeatures, AxisFeatures]:
        """Users and items as axes of a pass."""
        unit, steps = self._unit_at(state), self._steps_at(state)
        users = steps.pass_features(state.users, unit, unit, self._mean_at(state))
        return users, steps.pass_features(state.items, unit)

    def _descended(
        self, number: int, state: AnyState, gradients: Sequence[Rows], noise: Sequence[float]
    ) -> AnyState:
        """State after iteration `number`, from noisy gradients by user and by item."""
        counts, unit, steps = self._counts(state), self._unit_at(state), self._steps_at(state)
        weights = self._weights(state)
        rows = {Axis.USERS: state.users, Axis.ITEMS: state.items}
        after: dict[Axis, Rows] = {}
        for axis, gradient, scale in zip(Axis, gradients, noise, strict=True):
            after[axis] = steps.descended(
                rows[axis],
                gradient / unit,
                noise=scale / unit,
                counts=weights[axis].sums,
                weight=weights[axis].means,
                curvature=steps.curvature(rows[axis.other], counts[axis.other]),
                centre=self._centre(axis, rows[axis], counts[axis], unit),
            )
        users, items = after[Axis.USERS], after[Axis.ITEMS]
        if number < steps.averaged_from:
            return replace(state, users=users, items=items)
        return replace(
            state,
            users=users,
            items=items,
            user_sums=state.user_sums + users,
            item_sums=state.item_sums + items,
        )

    def _final_rows(self, state: AnyState) -> tuple[Rows, Rows]:
        """Released rows of users and of items, averaged over steps."""
        averaged = self._steps.averaged_rows
        return averaged(state.users, state.user_sums), averaged(state.items, state.item_sums)

    def model(self, state: AnyState) -> FactorModel:
        """Released model, in rating units."""
        unit, ids = self._unit_at(state), self._facts
        users, items = self._final_rows(state)
        return FactorModel(
            scale=ids.scale,
            mean=self._middle + self._mean_at(state),
            users=Profiles.from_rows(ids.user_ids, in_rating_units(users, unit)),
            items=Profiles.from_rows(ids.item_ids, in_rating_units(items, unit)),
        )


class GradientAlgorithm(TwoAxisDescent[DescentState]):
    """Descent under unit `value`."""

    unit = Unit.VALUE

    def __init__(self, steps: DescentSteps, facts: PublicFacts, budget: Budget | None) -> None:
        self.budget = budget
        self._share = WHOLE / (2 * steps.iterations)
        ratio = budget.mu * math.sqrt(self._share) if budget else 0.0
        super().__init__(steps, facts, value_levels(ratio, VALUE_LEVELS))
        self._errors = ErrorPass(self.view, first=1)
        queries = error_queries("", self._errors, facts.pattern, columns=1 + steps.factors)
        purposes = map(self._purpose, range(steps.iterations))
        self.schedule = repeated(queries, (self._share, self._share), purposes)

    def _purpose(self, step: int) -> str:
        return f"gradient {step + 1} of {self._steps.iterations}"

    def initial_state(self, seeds: Seeds) -> DescentState:
        """Profiles drawn from their prior."""
        return self._start(seeds)

    def query(self, step: int, state: DescentState) -> PredictionErrorSums:
        """Sums of prediction error × feature at the current profiles."""
        users, items = self._features(state)
        return PredictionErrorSums(
            purpose=self._purpose(step),
            errors=self._errors,
            pattern=self._facts.pattern,
            users=users,
            items=items,
        )

    def update(self, step: int, state: DescentState, released: Released) -> DescentState:
        """One step against the noisy gradients."""
        return self._descended(step, state, released.tables, released.noise_scales)
