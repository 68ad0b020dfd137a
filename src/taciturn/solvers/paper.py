"""Algorithm 1 of Mugdho and Imtiaz, exactly as published; its privacy theorem is false.

Profiles X (items) and Θ (users) start as standard normals scaled to norm 1. Each iteration computes
both gradients at the old profiles,

    ∇X = (V̂ − V) clip(Θ, C) + λX,    ∇Θ = (V̂ − V)ᵀ clip(X, C) + λΘ,

adds N(0, σ²) with σ = τC/ε_i · √(2 ln(1.25/δ_i)) to ∇Θ alone, and takes a step on both axes. Only
Θ is released. The sums are exact on a grid (taciturn.queries.prediction_errors) and the noise is
secure, as everywhere in Taciturn; only a proof is missing. The item axis depends on the ratings
without noise, so the state of this algorithm is private.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal import parallel, validate
from taciturn.accounting.budget import Budget
from taciturn.accounting.gaussian import check_delta, check_stated_delta
from taciturn.accounting.ledger import Status
from taciturn.accounting.renyi import mu_at_zcdp
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.extent import Extent, ideal_mu
from taciturn.mechanisms.grid import ValueGrid
from taciturn.mechanisms.query import Answer, BoundedQuery, Released
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Profiles
from taciturn.queries.error_pass import ErrorPass, margin_max, value_levels
from taciturn.queries.features import NORM, AxisFeatures
from taciturn.queries.prediction_errors import (
    PredictionErrorSums,
    error_queries,
    pass_axis,
)
from taciturn.queries.values import Centre, GridValues, ValueView
from taciturn.solvers.contract import Algorithm, OwnerOnly, PublicFacts, QueryStep, Seeds
from taciturn.solvers.flaws import CENTRED, FALSE_THEOREM, LARGE, NARROW, STOPPED
from taciturn.solvers.gradient import FACTORS_MAX
from taciturn.solvers.solver import Solver, check_factors, check_iterations

Rows = npt.NDArray[np.float64]

VALUE_LEVELS = 128
"""Minimum number of grid steps of the scale."""


@dataclass(frozen=True, kw_only=True)
class PaperSolver(Solver):
    """The paper's Algorithm 1: noise on the user gradient only. Unit `value`, status `claimed`.

    Minimises ½ Σ (v_ij − ⟨x_i, θ_j⟩)² + ½λ(‖X‖² + ‖Θ‖²).

    Parameters
    ----------
    factors, iterations, step_size, regularization, norm_bound
        The paper's n, J, μ, λ and C.
    epsilon_i, delta_i
        Privacy parameters of one iteration. Default for `epsilon_i`: solved from the budget, whose
        ε is used as the paper's overall ε_opt.
    delta
        Overall δ at which the claim is stated when `epsilon_i` is given.
    centre
        `item-mean` subtracts each item's exact mean, as the paper's experiments did. The claim does
        not cover it.
    tau
        Range for which the noise is scaled. Default: that of the declared scale. The experiments
        used the largest rating, which is more noise than the claim requires.
    tolerance, patience
        Stopping rule of the experiments: stop when the training error no longer decreases; see
        `has_settled`. It depends on the ratings, and the claim does not cover it.
    """

    name: ClassVar[str] = "paper"
    status: ClassVar[Status] = Status.CLAIMED
    has_private_items: ClassVar[bool] = True
    claim: ClassVar[str] = "by the paper's own formula"

    factors: int = 20
    iterations: int = 300
    step_size: float = 5e-4
    regularization: float = 0.0
    norm_bound: float = 1.0
    epsilon_i: float | None = None
    delta_i: float = 0.01
    delta: float = 1e-5
    centre: Centre = Centre.NONE
    tau: float | None = None
    tolerance: float | None = None
    patience: int = 15

    def __post_init__(self) -> None:
        check_factors(self.factors, FACTORS_MAX)
        check_iterations(self.iterations)
        validate.positive("step_size", self.step_size, "see the solver's default")
        if validate.finite("regularization", self.regularization, "the paper uses 0") < 0:
            raise InvalidParameter(
                f"regularization must not be negative, got {self.regularization}"
            )
        validate.positive("norm_bound", self.norm_bound, "the paper uses 1")
        check_delta(self.delta_i, "delta_i", "the paper uses 0.01")
        check_stated_delta(self.delta)
        for name in ("epsilon_i", "tau", "tolerance"):
            if getattr(self, name) is not None:
                validate.positive(name, getattr(self, name), "leave it out for the default")
        validate.positive_integer("patience", self.patience, "15 is closest to the paper")
        object.__setattr__(self, "centre", validate.choice("centre", self.centre, Centre))

    def resolved(self, budget: Budget | None) -> "PaperSolver":
        """Configuration with ε_i, solved from ε_opt = budget.epsilon unless it is given."""
        if self.epsilon_i is not None:
            if budget is not None:
                raise InvalidParameter("pass either a budget or epsilon_i, not both")
            return self
        if budget is None:
            raise InvalidParameter("the paper's algorithm needs a budget or epsilon_i")
        return self._spending(mu_at_zcdp(budget.epsilon, budget.delta), budget.delta)

    @property
    def takes_no_budget(self) -> bool:
        """Whether ε_i is given."""
        return self.epsilon_i is not None

    def spending(self, budget: Budget) -> tuple["PaperSolver", None]:
        """Solver and budget; the paper's formula is not tight, so the exact ε allows less noise."""
        return self._spending(budget.mu, budget.delta), None

    def _spending(self, mu: float, delta: float) -> "PaperSolver":
        """Configuration whose iterations compose to the claimed μ."""
        epsilon_i = mu * math.sqrt(2 * math.log(1.25 / self.delta_i) / self.iterations)
        return replace(self, epsilon_i=epsilon_i, delta=delta)

    def stated_delta(self, budget: Budget | None) -> float:
        """δ of the budget, or of the solver if it has its own ε_i."""
        return self.delta if budget is None else budget.delta

    def claimed_epsilon(self, certified: float, budget: Budget | None) -> float:
        """ε of the budget, by the paper's formula; without a budget, the certified ε."""
        return certified if budget is None else budget.epsilon

    def algorithm(
        self, facts: PublicFacts, budget: Budget | None, threads: int | None = None
    ) -> "PaperAlgorithm":
        """Algorithm 1 with the paper's noise."""
        return PaperAlgorithm(self.resolved(None), facts, threads=threads)

    @property
    def ratio(self) -> float:
        """Claimed sensitivity over noise scale of one iteration."""
        return (self.epsilon_i or math.nan) / math.sqrt(2 * math.log(1.25 / self.delta_i))

    def claimed_budget(self) -> Budget:
        """Budget of a gate for all iterations, from the claimed sensitivity."""
        # Slightly more than claimed, because a gate reserves a part; the noise stays that of the
        # paper.
        return Budget.from_mu(self.ratio * math.sqrt(self.iterations) * 1.001, self.delta)

    def flaw(self, scale_range: float) -> str:
        """Reasons why the claim has no valid proof."""
        flaws = [FALSE_THEOREM]
        if self.centre is Centre.ITEM_MEAN:
            flaws.append(CENTRED)
        if self.tolerance is not None:
            flaws.append(STOPPED)
        if self.tau is not None and self.tau < scale_range:
            flaws.append(NARROW)
        if self.epsilon_i is not None and self.epsilon_i >= 1:
            flaws.append(LARGE)
        return " ".join(flaws)


def has_settled(errors: npt.NDArray[np.float64], tolerance: float, patience: int) -> bool:
    """Whether the last `patience` errors improve by less than `tolerance` on all earlier ones.

    With 5e-5 and 15, this rule is as close as any to the paper's numbers of iterations
    (docs/benchmarks/reproduction.md).
    """
    if errors.size <= patience:
        return False
    return bool(errors[:-patience].min() - errors[-patience:].min() < tolerance)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PaperState:
    """Profiles of both axes, subtracted item means, and training errors. Private.

    `errors` holds the exact training error before each step so far.
    """

    users: Rows
    items: Rows
    item_means: Rows
    errors: Rows


class PaperAlgorithm(Algorithm[PaperState]):
    """Algorithm 1. Its item axis depends on the ratings without noise: its state is private.

    Parameters
    ----------
    solver
        Configuration with ε_i.
    facts
        Public facts of the ratings.
    is_noised
        Whether to add noise; without noise, ε_i only determines the grid.
    threads
        Number of threads; the result does not depend on it.
    """

    unit = Unit.VALUE

    def __init__(
        self,
        solver: PaperSolver,
        facts: PublicFacts,
        *,
        is_noised: bool = True,
        threads: int | None = None,
    ) -> None:
        self._solver, self._facts, self._threads = solver, facts, threads
        self.budget = solver.claimed_budget() if is_noised else None
        scale = facts.scale
        low, high, levels = scale.low, scale.high, value_levels(solver.ratio, VALUE_LEVELS)
        if solver.centre is Centre.ITEM_MEAN:
            low, high, levels = -scale.range, scale.range, 2 * levels
        grid = ValueGrid.for_scale(low, high, levels)
        self._step = math.ldexp(1.0, grid.exponent)
        view = ValueView(grid=grid, axis=pass_axis(facts.shape), centre=solver.centre)
        self._errors = ErrorPass(view, margin=margin_max(grid))
        users, _ = error_queries("", self._errors, facts.pattern, columns=solver.factors)
        tau = scale.range if solver.tau is None else solver.tau
        self._claim = replace(
            users,
            purpose="gradient of the user profiles, iteration ",
            sensitivity=tau / self._step * NORM,
            proof="paper-gap.md#what-is-claimed",
            flaw=solver.flaw(scale.range),
        )
        self._planned = tuple(
            replace(self._claim, purpose=f"{self._claim.purpose}{step + 1}")
            for step in range(solver.iterations)
        )
        extent = Extent.of(self._planned)
        share = (solver.ratio / ideal_mu(solver.claimed_budget(), extent)) ** 2
        self.schedule = tuple(QueryStep(queries=(each,), shares=(share,)) for each in self._planned)

    def initial_state(self, seeds: Seeds) -> PaperState:
        """Standard normals, scaled to norm 1."""
        rows = [
            random.normal(size=(count, self._solver.factors))
            for random, count in zip(seeds.starts(), self._facts.shape[::-1], strict=True)
        ]
        items, users = (each / np.linalg.norm(each, axis=1)[:, None] for each in rows)
        means = np.zeros(self._facts.items)
        return PaperState(users=users, items=items, item_means=means, errors=np.empty(0))

    def query(self, step: int, state: PaperState) -> "PaperGradient":
        """Gradient of the user profiles at the current state."""
        bound = self._solver.norm_bound
        users, items = parallel.together(
            [partial(_clipped_features, rows, bound) for rows in (state.users, state.items)],
            self._threads,
        )
        sums = PredictionErrorSums(
            purpose=self._planned[step].purpose,
            errors=self._errors,
            users=users,
            items=items,
            pattern=self._facts.pattern,
        )
        return PaperGradient(self._planned[step], sums)

    def update(self, step: int, state: PaperState, released: Released) -> PaperState:
        """State after a step on both axes. Uses the exact item gradient, so it is private."""
        solver, private = self._solver, released.private

        def move(rows: Rows, sums: npt.NDArray[Any], unit: float) -> Rows:
            # rows − step_size · (norm_bound · sums + regularization · rows)
            moved: Rows = np.multiply(sums, -solver.step_size * solver.norm_bound * unit)
            if solver.regularization:
                moved -= solver.step_size * solver.regularization * rows
            moved += rows
            return moved

        users, items = parallel.together(
            [
                lambda: move(state.users, released.tables[0], 1.0),
                lambda: move(state.items, private.items, self._step / NORM),
            ],
            self._threads,
        )
        error = self._step * math.sqrt(private.squares / max(1, self._facts.pattern.entries))
        return PaperState(
            users=users,
            items=items,
            item_means=state.item_means if private.item_means is None else private.item_means,
            errors=np.append(state.errors, error),
        )

    def is_settled(self, state: PaperState) -> bool:
        """Whether the training error no longer decreases, as in the paper's experiments."""
        solver = self._solver
        return solver.tolerance is not None and has_settled(
            state.errors, solver.tolerance, solver.patience
        )

    def model(self, state: PaperState) -> FactorModel:
        """Model with user profiles only: the paper's claim does not cover items."""
        users = _profiles(self._facts.user_ids, np.zeros(len(state.users)), state.users)
        return FactorModel(scale=self._facts.scale, mean=0.0, users=users, items=None)

    def owner_only(self, state: PaperState, ratings: Ratings) -> OwnerOnly:
        """Item profiles and training errors, which are exact."""
        items = _profiles(self._facts.item_ids, state.item_means, state.items)
        return OwnerOnly(items=items, facts={"rmse_before_step": state.errors.tolist()})


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PaperPrivate:
    """Exact by-products of a pass. Private; Algorithm 1 uses all but the first."""

    users: npt.NDArray[np.int64]
    items: npt.NDArray[np.int64]
    squares: int
    item_means: Rows | None


class PaperGradient:
    """Gradient of the user profiles, whose sensitivity is only claimed, and exact item gradient."""

    def __init__(self, query: BoundedQuery, sums: PredictionErrorSums) -> None:
        self.queries, self.view, self._sums = (query,), sums.view, sums

    def exact(self, values: GridValues, threads: int | None = None) -> Answer:
        """Exact sums by user, and private by-products. Reads private data."""
        tables = self._sums.tables(values, threads)
        private = PaperPrivate(
            users=tables.users,
            items=tables.items,
            squares=tables.squares,
            item_means=values.item_means,
        )
        return Answer((tables.users,), private)


def _clipped_features(rows: Rows, bound: float) -> AxisFeatures:
    """Profiles as one axis of a pass; the norm bound applies to features, not to predictions."""
    lengths = np.sqrt(np.einsum("nk,nk->n", rows, rows))
    return AxisFeatures(rows, 1 / np.maximum(lengths, bound), np.zeros(len(rows)))


def _profiles(ids: pl.Series, biases: Rows, factors: Rows) -> Profiles:
    return Profiles(ids=ids, biases=biases.astype(np.float32), factors=factors.astype(np.float32))
