"""Algorithm 1 of Mugdho and Imtiaz to the letter, whose privacy theorem is false.

Profiles X (items) and Θ (users) start as standard normals scaled to norm 1. Each iteration computes
both gradients at the old profiles,

    ∇X = (V̂ − V) clip(Θ, C) + λX,    ∇Θ = (V̂ − V)ᵀ clip(X, C) + λΘ,

adds N(0, σ²) with σ = τC/ε_i · √(2 ln(1.25/δ_i)) to ∇Θ alone, and takes a step on both sides. Only
Θ is released. The sums are exact on a grid (taciturn.queries.prediction_errors) and the noise is
secure, like everywhere in Taciturn; what is missing is a proof.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from taciturn._internal import parallel, validate
from taciturn.accounting.budget import Budget
from taciturn.accounting.events import GaussianRelease
from taciturn.accounting.gaussian import check_delta, check_stated_delta
from taciturn.accounting.renyi import mu_at_zcdp
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.extent import Extent, ideal_mu
from taciturn.mechanisms.gate import Gate
from taciturn.mechanisms.grid import ValueGrid
from taciturn.mechanisms.noise import NoiseSource
from taciturn.mechanisms.query import BoundedQuery
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Profiles
from taciturn.queries.prediction_errors import (
    NORM,
    RatedPairs,
    ResidualSums,
    ResidualTables,
    Side,
    reach_max,
    value_levels,
)
from taciturn.solvers.catalog import CENTRED, FALSE_THEOREM, LARGE, NARROW, STOPPED
from taciturn.solvers.contract import (
    PLAIN,
    Fit,
    Seeds,
    Session,
    check_descent,
    check_ratings,
    settings,
)
from taciturn.solvers.gradient import FACTORS_MAX
from taciturn.solvers.run import Asked, Run, State, planned

Rows = npt.NDArray[np.float64]

VALUE_LEVELS = 128
"""Steps that the scale is divided into, at least."""


class Centre(StrEnum):
    """What is subtracted from ratings before training."""

    NONE = "none"
    ITEM_MEAN = "item-mean"


@dataclass(frozen=True, kw_only=True)
class PaperSolver:
    """The paper's Algorithm 1: noise on the user side only. Unit `value`, status `claimed`.

    Minimises ½ Σ (v_ij − ⟨x_i, θ_j⟩)² + ½λ(‖X‖² + ‖Θ‖²).

    Parameters
    ----------
    factors, iterations, step_size, regularization, norm_bound
        The paper's n, J, μ, λ and C.
    epsilon_i, delta_i
        Privacy parameters of one iteration. Without `epsilon_i`, it is solved from a budget whose
        ε is taken as the paper's overall ε_opt.
    delta
        Overall δ at which the claim is stated when `epsilon_i` is given.
    centre
        `item-mean` subtracts each item's exact mean, as the paper's experiments did. The claim does
        not cover it.
    tau
        The range that the noise is scaled for; the declared scale's when omitted. The experiments
        used the largest rating: more noise than the claim asks for.
    tolerance, patience
        Stops when the training error hardly falls any more, see `has_settled`, as the experiments
        did. That depends on the ratings, and the claim does not cover it.
    """

    name: ClassVar[str] = "paper"
    is_private: ClassVar[bool] = True
    has_private_items: ClassVar[bool] = True

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
        check_descent(self, FACTORS_MAX)
        if validate.finite("regularization", self.regularization, "the paper uses 0") < 0:
            raise InvalidParameter(f"regularization must not be negative: {self.regularization}")
        validate.positive("norm_bound", self.norm_bound, "the paper uses 1")
        check_delta(self.delta_i, "delta_i", "the paper uses 0.01")
        check_stated_delta(self.delta)
        for name in ("epsilon_i", "tau", "tolerance"):
            if getattr(self, name) is not None:
                validate.positive(name, getattr(self, name), "leave it out for the default")
        validate.positive_integer("patience", self.patience, "15 is closest to the paper")
        object.__setattr__(self, "centre", validate.choice("centre", self.centre, Centre))

    def with_epsilon_i(self, budget: Budget | None) -> "PaperSolver":
        """Return the configuration with ε_i, solved from ε_opt = budget.epsilon if need be."""
        if self.epsilon_i is not None:
            if budget is not None:
                raise InvalidParameter("give the paper a budget or an epsilon_i, not both")
            return self
        if budget is None:
            raise InvalidParameter("the paper's algorithm needs a budget or an epsilon_i")
        mu = mu_at_zcdp(budget.epsilon, budget.delta)
        epsilon_i = mu * math.sqrt(2 * math.log(1.25 / self.delta_i) / self.iterations)
        return replace(self, epsilon_i=epsilon_i, delta=budget.delta)

    @parallel.without_blas_threads
    def fit(self, ratings: Ratings, budget: Budget | None = None, session: Session = PLAIN) -> Fit:
        """Train. Reads private data; under the paper's claim, users may be released, items not."""
        check_ratings(ratings)
        solver = self.with_epsilon_i(budget)
        run = Run(session)
        descent = PaperDescent(solver, ratings, session.threads)
        asked = solver._asked(descent, ratings.shape[0])
        gate = run.gate(Unit.VALUE, solver.claimed_budget(), asked)
        values = descent.values(ratings)

        def step(number: int, state: State) -> State:
            measurement = descent.measurement(number, state)
            released = gate.release(measurement, values, share=solver.share(gate))
            return descent.step(number, state, released, measurement.private)

        state = run.steps(
            solver.iterations, lambda: descent.begin(session.seeds), step, solver._has_settled
        )
        return Fit(
            solver=self.name,
            settings=settings(solver),
            model=FactorModel(
                scale=ratings.scale,
                mean=0.0,
                users=_profiles(ratings.user_ids, np.zeros(len(state["users"])), state["users"]),
                items=None,
            ),
            private_items=_profiles(ratings.item_ids, descent.means, state["items"]),
            ledger=run.finish(),
            owner_view={"rmse_before_step": state["errors"].tolist()},
        )

    def plan(self, ratings: Ratings, budget: Budget | None = None) -> list[GaussianRelease]:
        """Return the events that `fit` would book. Reads public facts only."""
        solver = self.with_epsilon_i(budget)
        descent = PaperDescent(replace(solver, centre=Centre.NONE), ratings)
        flaw = solver._flaw(ratings.scale.range)
        asked = [
            (replace(query, flaw=flaw), share)
            for query, share in solver._asked(descent, ratings.shape[0])
        ]
        return planned(Unit.VALUE, solver.claimed_budget(), asked)

    def _asked(self, descent: "PaperDescent", users: int) -> Asked:
        """All queries with the share of μ² that gives them the paper's noise."""
        query = descent.measurement(0, descent.begin(Seeds())).query
        share = (self._ratio / ideal_mu(self.claimed_budget(), self.extent(users))) ** 2
        return [
            (replace(query, purpose=_purpose(number)), share) for number in range(self.iterations)
        ]

    def extent(self, users: int) -> Extent:
        """Extent of all iterations together."""
        coordinates = self.factors * self.iterations
        return Extent(
            coordinates=coordinates, releases=self.iterations, numbers=users * coordinates
        )

    @property
    def _ratio(self) -> float:
        """Claimed sensitivity over noise scale of one iteration."""
        return (self.epsilon_i or math.nan) / math.sqrt(2 * math.log(1.25 / self.delta_i))

    def claimed_budget(self) -> Budget:
        """Return the budget of a gate for all iterations, from the claimed sensitivity."""
        # A little more than is claimed: a gate sets some aside, and the noise is the paper's.
        mu = self._ratio * math.sqrt(self.iterations) * 1.001
        return Budget.from_mu(mu, self.delta)

    def gate(
        self, users: int, *, noise: NoiseSource | None = None, threads: int | None = None
    ) -> Gate:
        """Gate for all iterations, outside of a run."""
        return Gate(
            budget=self.claimed_budget(),
            unit=Unit.VALUE,
            noise=noise,
            threads=threads,
            extent=self.extent(users),
        )

    def share(self, gate: Gate) -> float:
        """Return the share of a gate's μ² that gives one iteration the paper's noise."""
        return (self._ratio / gate.mu) ** 2

    def _flaw(self, scale_range: float) -> str:
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

    def _has_settled(self, state: State) -> bool:
        return self.tolerance is not None and has_settled(
            state["errors"], self.tolerance, self.patience
        )


def has_settled(errors: npt.NDArray[np.float64], tolerance: float, patience: int) -> bool:
    """Return whether the last `patience` errors hardly improve on those before them.

    The least of them is then less than `tolerance` below the least before them. With 5e-5 and 15 it
    is as close as any to the paper's numbers of iterations (docs/reproduction.md).
    """
    if errors.size <= patience:
        return False
    return bool(errors[:-patience].min() - errors[-patience:].min() < tolerance)


class PaperDescent:
    """The steps of Algorithm 1. Its item side depends on the ratings and is private."""

    def __init__(self, solver: PaperSolver, ratings: Ratings, threads: int | None = None) -> None:
        self._solver, self._threads = solver, threads
        self._pairs = RatedPairs(ratings)
        self._count = max(1, len(ratings))
        scale = ratings.scale
        low, high, levels = scale.low, scale.high, value_levels(solver._ratio, VALUE_LEVELS)
        self.means = np.zeros(ratings.shape[1])
        if solver.centre is Centre.ITEM_MEAN:
            self.means = item_means(ratings)
            low, high, levels = -scale.range, scale.range, 2 * levels
        self._grid = ValueGrid.for_scale(low, high, levels)
        self._step = math.ldexp(1.0, self._grid.exponent)
        self._tau = scale.range if solver.tau is None else solver.tau
        self._flaw = solver._flaw(scale.range)

    def values(self, ratings: Ratings) -> npt.NDArray[np.int32]:
        """Return the ratings, centred, on the grid. Reads private data."""
        return self._pairs.values(ratings, self._grid, self.means)

    def begin(self, seeds: Seeds) -> State:
        """Return the profiles before the first step: standard normals, scaled to norm 1."""
        rows = [
            random.normal(size=(count, self._solver.factors))
            for random, count in zip(seeds.starts(), self._pairs.shape[::-1], strict=True)
        ]
        items_rows, user_rows = (each / np.linalg.norm(each, axis=1)[:, None] for each in rows)
        return {"users": user_rows, "items": items_rows, "errors": np.empty(0)}

    def measurement(self, number: int, state: State) -> "_PaperStep":
        """Return the measurement of an iteration."""
        bound = self._solver.norm_bound
        users, items = parallel.together(
            [partial(_clipped_side, state[name], bound) for name in ("users", "items")],
            self._threads,
        )
        sums = ResidualSums(
            purpose=_purpose(number),
            pairs=self._pairs,
            users=users,
            items=items,
            values=self._grid,
            reach=reach_max(self._grid),
        )
        query = replace(
            sums.queries[0],
            purpose=_purpose(number),
            sensitivity=self._tau / self._step * NORM,
            proof="paper-gap.md#what-is-claimed",
            flaw=self._flaw,
        )
        return _PaperStep(query, sums)

    def step(
        self,
        number: int,
        state: State,
        released: npt.NDArray[np.float64],
        private: ResidualTables,
    ) -> State:
        """Return the next profiles. Reads the exact item gradient: the item side is private."""
        solver = self._solver

        def move(rows: Rows, sums: npt.NDArray[Any], unit: float) -> Rows:
            # rows − step_size · (norm_bound · sums + regularization · rows)
            moved: Rows = np.multiply(sums, -solver.step_size * solver.norm_bound * unit)
            if solver.regularization:
                moved -= solver.step_size * solver.regularization * rows
            moved += rows
            return moved

        users, items = parallel.together(
            [
                lambda: move(state["users"], released, 1.0),
                lambda: move(state["items"], private.items, self._step / NORM),
            ],
            self._threads,
        )
        error = self._step * math.sqrt(private.squares / self._count)
        return {"users": users, "items": items, "errors": np.append(state["errors"], error)}


class _PaperStep:
    """The user-side gradient, whose sensitivity is only claimed; keeps the item side apart."""

    def __init__(self, query: BoundedQuery, sums: ResidualSums) -> None:
        self.query = query
        self._sums = sums

    def exact(
        self, values: npt.NDArray[np.int32], threads: int | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the exact user-side sums. Reads private data."""
        self.private = self._sums.tables(values, threads)
        return self.private.users


def _purpose(number: int) -> str:
    return f"gradient of the user profiles, iteration {number + 1}"


def _clipped_side(rows: Rows, bound: float) -> Side:
    """Return profiles as one side of a pass: features cut to the norm bound, predictions whole."""
    lengths = np.sqrt(np.einsum("nk,nk->n", rows, rows))
    return Side(rows, 1 / np.maximum(lengths, bound), np.zeros(len(rows)))


def item_means(ratings: Ratings) -> npt.NDArray[np.float64]:
    """Return each item's exact mean rating, that of all without any. Reads private data."""
    side = ratings.by_item
    counts = np.diff(side.starts)
    totals = np.bincount(
        np.repeat(np.arange(counts.size), counts),
        weights=ratings.scale.decode(side.codes),
        minlength=counts.size,
    )
    means: npt.NDArray[np.float64] = totals / np.maximum(counts, 1)
    means[counts == 0] = totals.sum() / max(1, counts.sum())
    return means


def _profiles(ids: object, biases: Rows, factors: Rows) -> Profiles:
    return Profiles(
        ids=ids,  # type: ignore[arg-type]
        biases=biases.astype(np.float32),
        factors=factors.astype(np.float32),
    )
