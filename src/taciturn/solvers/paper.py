"""Algorithm 1 of Mugdho and Imtiaz, exactly as published; its privacy theorem is false.

Profiles X (items) and Θ (users) start as standard normals scaled to norm 1. Each iteration computes
both gradients at the old profiles,

    ∇X = (V̂ − V) clip(Θ, C) + λX,    ∇Θ = (V̂ − V)ᵀ clip(X, C) + λΘ,

adds N(0, σ²) with σ = τC/ε_i · √(2 ln(1.25/δ_i)) to ∇Θ alone, and takes a step on both axes. Only
Θ is released. There is no proof to keep, so gradients are summed in floats and rounded to a grid
(taciturn.queries.float_pass); the noise is drawn on that grid and is secure, as everywhere in
Taciturn. The item axis depends on the ratings without noise, so the state of this algorithm is
private.
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
from taciturn.accounting.events import Rows as Axes
from taciturn.accounting.gaussian import check_delta, check_stated_delta
from taciturn.accounting.ledger import Status
from taciturn.accounting.renyi import mu_at_zcdp
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.extent import Extent, ideal_mu
from taciturn.mechanisms.grid import ValueGrid
from taciturn.mechanisms.query import Answer, BoundedQuery, Released
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Profiles
from taciturn.queries.error_pass import value_levels
from taciturn.queries.features import NORM
from taciturn.queries.float_pass import FloatFeatures, FloatPass
from taciturn.queries.values import Centre, GridValues, ValueView
from taciturn.solvers.contract import Algorithm, OwnerOnly, PublicFacts, QueryStep, Seeds
from taciturn.solvers.flaws import CENTRED, FALSE_THEOREM, LARGE, NARROW, STOPPED
from taciturn.solvers.gradient import FACTORS_MAX
from taciturn.solvers.solver import Solver, check_factors, check_iterations

Rows = npt.NDArray[np.float64]

VALUE_LEVELS = 2**14
"""Minimum number of steps of the scale to which ratings are rounded."""

_SUM_LEVELS = 128
"""Minimum number of steps of the scale, in units of `NORM` steps of the sums."""

_ERROR_MAX = 256
"""Prediction errors are clipped to this multiple of the width of the scale. The paper does not clip
them, but a sum on a grid needs a bound."""


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
        Whether to add noise; without noise, ε_i only determines the grid of the sums.
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
        low, high = scale.low, scale.high
        if solver.centre is Centre.ITEM_MEAN:
            low, high = -scale.range, scale.range
        grid = ValueGrid.for_scale(low, high, VALUE_LEVELS)
        self._view = ValueView(grid=grid, axis=Axis.USERS, centre=solver.centre)
        levels = value_levels(solver.ratio, _SUM_LEVELS)
        exponent = ValueGrid.for_scale(0.0, scale.range, levels).exponent - (NORM.bit_length() - 1)
        self._pass = FloatPass(step=math.ldexp(1.0, exponent), limit=_ERROR_MAX * scale.range)
        tau = scale.range if solver.tau is None else solver.tau
        counts = facts.pattern.by_user.counts
        self._claim = BoundedQuery(
            purpose="gradient of the user profiles, iteration ",
            unit=Unit.VALUE,
            rows=Axes.USERS,
            shape=(len(counts), solver.factors),
            exponent=exponent,
            sensitivity=tau / self._pass.step,
            coordinates=solver.factors,
            magnitude=max(1, int(counts.max(initial=0)))
            * math.ceil(self._pass.limit / self._pass.step),
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
            [partial(FloatFeatures, rows, bound) for rows in (state.users, state.items)],
            self._threads,
        )
        return PaperGradient(self._planned[step], self._view, self._pass, users, items)

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
                lambda: move(state.items, private.items, self._pass.step),
            ],
            self._threads,
        )
        error = math.sqrt(private.squares / max(1, self._facts.pattern.entries))
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
    squares: float
    item_means: Rows | None


class PaperGradient:
    """Gradient of the user profiles, whose sensitivity is only claimed, and exact item gradient."""

    def __init__(
        self,
        query: BoundedQuery,
        view: ValueView,
        floats: FloatPass,
        users: FloatFeatures,
        items: FloatFeatures,
    ) -> None:
        self.queries, self.view, self._pass = (query,), view, floats
        self._users, self._items = users, items

    def exact(self, values: GridValues, threads: int | None = None) -> Answer:
        """Sums by user without noise, and private by-products. Reads private data."""
        values.check(self.view)
        sums = self._pass.run(values, self._users, self._items, threads)
        private = PaperPrivate(
            users=sums.users,
            items=sums.items,
            squares=sums.squares,
            item_means=values.item_means,
        )
        return Answer((sums.users,), private)


def _profiles(ids: pl.Series, biases: Rows, factors: Rows) -> Profiles:
    return Profiles(ids=ids, biases=biases.astype(np.float32), factors=factors.astype(np.float32))
