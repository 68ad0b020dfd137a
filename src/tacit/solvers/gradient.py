"""Noisy gradient descent on both sides: the paper's algorithm made sound, and then improved.

Each iteration releases Σ (v̂ − v)·f by item and by user, in one pass over the ratings, with Gaussian
noise on both; everything else follows from what was released and from public facts, so X and Θ may
both be published (docs/proofs/gradient.md). Three things cost nothing and gain much:

- biases are one more coordinate of a profile, multiplied with a constant feature;
- a step is divided by the curvature that the released features and the public numbers of ratings
  tell, n·E[f fᵀ], and by a ridge that grows with the noise, so that a few dozen
  steps are enough;
- the iterates of the last steps are averaged, and their noise with them.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit import _validate
from tacit.data.ratings import Ratings
from tacit.errors import InvalidParameter
from tacit.privacy.budget import Budget
from tacit.privacy.events import GaussianRelease
from tacit.privacy.grid import ValueGrid
from tacit.privacy.mechanism import Gate
from tacit.privacy.residuals import RatedPairs, ResidualSums, Side, value_levels
from tacit.privacy.units import Unit
from tacit.solvers.contract import (
    PLAIN,
    Fit,
    Profiles,
    Session,
    check_budget,
    check_descent,
    check_ratings,
    settings,
)
from tacit.solvers.run import Run, State

Rows = npt.NDArray[np.float64]

FACTORS_MAX = 4096

VALUE_LEVELS = 64
"""Steps of the value grid, at least: rounding errors are far below the usual error of a rating."""

# What is assumed of ratings in advance, on a scale of width 4: deviations of a rating from its
# prediction, of a bias, and of what the factors add. Only the ridge depends on them.
_WIDTH = 4.0
_RESIDUAL, _BIAS, _INTERACTION = 0.87, 0.45, 0.32

_CONSTANT = 0.5
"""The constant feature beside a profile; it decides how much of the noise biases get."""

_CLIPPED = 0.1
"""Share of feature rows that are cut to the norm of the next."""


@dataclass(frozen=True, kw_only=True)
class GradientSolver:
    """Gradient descent with noise on the gradients of both sides. Unit `value`, status `proven`.

    Minimises Σ (v_ij − m − b_i − c_j − ⟨x_i, θ_j⟩)² plus a ridge, m being the scale's midpoint.

    Parameters
    ----------
    factors
        Length of a profile, k.
    iterations
        Steps, fixed in advance; the budget is divided among them.
    step_size
        Part of a whole step that is taken each time.
    regularization
        Factor of the ridge that the noise and usual ratings suggest.
    averaged
        Share of the last iterates that are averaged.
    """

    name: ClassVar[str] = "gradient"
    is_private: ClassVar[bool] = True

    factors: int = 8
    iterations: int = 30
    step_size: float = 0.3
    regularization: float = 1.0
    averaged: float = 0.5

    def __post_init__(self) -> None:
        check_descent(self, FACTORS_MAX)
        _validate.positive("regularization", self.regularization, "1 is usual")
        if not 0 <= _validate.finite("averaged", self.averaged, "0.5 is usual") <= 1:
            raise InvalidParameter(f"averaged must lie between 0 and 1, got {self.averaged}")

    def fit(self, ratings: Ratings, budget: Budget | None = None, session: Session = PLAIN) -> Fit:
        """Train on ratings within a budget. Reads private data; the fit may be released."""
        check_ratings(ratings)
        check_budget(self, budget)
        run = Run(session)
        door = run.door(Unit.VALUE, budget)
        descent = GradientDescent(self, ratings, budget)
        values = descent.pairs.values(ratings, descent.grid, descent.middle)

        def step(number: int, state: State) -> State:
            sums = descent.sums(number, *descent.sides(state))
            released = door.release_together(sums, values, shares=(self.share, self.share))
            noise = [door.noise_scale(query, self.share) for query in sums.queries]
            return descent.step(number, state, released, noise)

        state = run.steps(self.iterations, lambda: descent.begin(session), step)
        ledger = run.finish()
        mean, users, items = descent.profiles(state)
        return Fit(
            solver=self.name,
            settings=settings(self),
            scale=ratings.scale,
            mean=mean,
            users=Profiles(ids=ratings.user_ids, biases=users[:, 0], factors=users[:, 1:]),
            items=Profiles(ids=ratings.item_ids, biases=items[:, 0], factors=items[:, 1:]),
            ledger=ledger,
        )

    @property
    def share(self) -> float:
        """The share of μ² that each of the two releases of an iteration gets."""
        # A little less than all, so that the sum does not round to more than 1.
        return (1 - 2.0**-40) / (2 * self.iterations)

    def plan(self, ratings: Ratings, budget: Budget | None = None) -> list[GaussianRelease]:
        """Return the events that `fit` would book. Reads public facts only."""
        check_budget(self, budget)
        if budget is None:
            return []
        gate, descent = Gate(budget=budget, unit=Unit.VALUE), GradientDescent(self, ratings, budget)
        sides = descent.sides(descent.begin(PLAIN))
        return [
            gate.plan(query, self.share)
            for number in range(self.iterations)
            for query in descent.sums(number, *sides).queries
        ]


@dataclass(frozen=True, kw_only=True)
class NonPrivateGradientSolver(GradientSolver):
    """The same descent without noise: not private, for comparison."""

    name: ClassVar[str] = "non-private-gradient"
    is_private: ClassVar[bool] = False

    iterations: int = 60


class GradientDescent:
    """One descent: its public facts, and the steps between releases. Holds no private value.

    Rows of state have the bias first, then the factors, in units in which the scale is 4 wide.
    """

    def __init__(self, solver: GradientSolver, ratings: Ratings, budget: Budget | None) -> None:
        self._solver = solver
        self.pairs = RatedPairs(ratings)
        scale = ratings.scale
        ratio = budget.mu * math.sqrt(solver.share) if budget else 0.0
        levels = value_levels(ratio, VALUE_LEVELS)
        # Ratings are centred at the middle of the declared scale.
        self.middle = (scale.low + scale.high) / 2
        self.grid = ValueGrid.for_scale(-scale.range / 2, scale.range / 2, levels)
        self._unit = scale.range / _WIDTH
        width = math.sqrt(_INTERACTION) / solver.factors**0.25
        self._priors = np.array([_BIAS / _CONSTANT] + [width] * solver.factors)
        averaged = math.ceil(solver.averaged * solver.iterations)
        self._averaged_from = solver.iterations - averaged
        # How many releases the noise of the result is spread over, about.
        self._spread = max(0.7 * averaged, 1 / min(1.0, solver.step_size))

    def begin(self, session: Session) -> State:
        """Return the profiles before the first step."""
        of_items, of_users = session.starts()
        rows = [
            random.normal(size=(count, self._solver.factors + 1))
            for random, count in zip((of_users, of_items), self.pairs.shape, strict=True)
        ]
        for side in rows:
            side *= self._priors
            side[:, 0] = 0
        return {
            "users": rows[0],
            "items": rows[1],
            "user_sums": np.zeros_like(rows[0]),
            "item_sums": np.zeros_like(rows[1]),
        }

    def sides(self, state: State) -> tuple[Side, Side]:
        """Return users and items as sides of a pass."""
        return _side(state["users"], self._unit, self._unit), _side(state["items"], self._unit, 1.0)

    def sums(self, number: int, users: Side, items: Side) -> ResidualSums:
        """Return the measurement of an iteration."""
        return ResidualSums(
            purpose=f"gradient {number + 1} of {self._solver.iterations}",
            pairs=self.pairs,
            users=users,
            items=items,
            values=self.grid,
            first=1,
        )

    def step(
        self,
        number: int,
        state: State,
        released: tuple[npt.NDArray[np.float64], ...],
        noise: list[float],
    ) -> State:
        """Return the next state, from released gradients by user and by item."""
        sides = {name: _raw(state[name]) for name in ("users", "items")}
        counts = self.counts(state)
        after: State = {}
        for name, other, gradient, scale in (
            ("users", "items", released[0], noise[0]),
            ("items", "users", released[1], noise[1]),
        ):
            after[name] = self._descend(
                state[name],
                gradient / self._unit,
                scale / self._unit,
                counts[name],
                *sides[other],
                counts[other],
            )
        is_averaged = number >= self._averaged_from
        for name, sums in (("users", "user_sums"), ("items", "item_sums")):
            after[sums] = state[sums] + after[name] if is_averaged else state[sums]
        return after

    def counts(self, state: State) -> dict[str, npt.NDArray[Any]]:
        """Return how many ratings each row has: public under unit `value`."""
        return {"users": self.pairs.user_counts, "items": self.pairs.item_counts}

    def _descend(
        self,
        rows: Rows,
        gradient: Rows,
        noise: float,
        counts: npt.NDArray[Any],
        others: Rows,
        shrink: npt.NDArray[np.float64],
        other_counts: npt.NDArray[Any],
    ) -> Rows:
        """Return rows after one step, given the other side's features and how they were shrunk."""
        solver = self._solver
        weights = other_counts / max(1, other_counts.sum())
        # The mean curvature of a rating, in coordinates in which the prior is a unit sphere.
        curvature = (others * (weights * shrink)[:, None]).T @ others
        whitened = self._priors[:, None] * curvature * self._priors
        eigenvalues, axes = np.linalg.eigh(whitened)
        transform = self._priors[:, None] * axes
        bend = counts[:, None] * np.maximum(eigenvalues, 1e-9)
        spread = noise**2 * (transform**2).sum(axis=0) / self._spread
        ridge = solver.regularization * (_RESIDUAL**2 + spread / np.maximum(bend, 1e-9))
        inside = (_constant_first(rows, 1 / _CONSTANT) / self._priors) @ axes
        inside -= solver.step_size * (gradient @ transform + ridge * inside) / (bend + ridge)
        return _constant_first((inside @ axes.T) * self._priors, _CONSTANT)

    def profiles(
        self, state: State
    ) -> tuple[float, npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return mean, user rows and item rows in the units of the ratings."""
        averaged = self._solver.iterations - self._averaged_from
        users, items = state["users"], state["items"]
        if averaged > 0:
            users, items = state["user_sums"] / averaged, state["item_sums"] / averaged
        units = np.full(users.shape[1], math.sqrt(self._unit))
        units[0] = self._unit
        return self.middle, (users * units).astype(np.float32), (items * units).astype(np.float32)


def _raw(rows: Rows) -> tuple[Rows, npt.NDArray[np.float64]]:
    """Return features, a constant beside each profile, and the factor that bounds their norm."""
    features = rows.copy()
    features[:, 0] = _CONSTANT
    norms = np.linalg.norm(features, axis=1)
    bound = np.quantile(norms, 1 - _CLIPPED)
    shrink: npt.NDArray[np.float64] = 1 / np.maximum(norms, bound)
    return features, shrink


def _side(rows: Rows, unit: float, product_unit: float) -> Side:
    """Return profiles as one side of a pass, predicting in the units of the ratings."""
    features, shrink = _raw(rows)
    return Side(features, shrink, rows[:, 0] * unit, product_unit)


def _constant_first(rows: Rows, factor: float) -> Rows:
    """Return rows with the bias in units in which its feature is 1, or back."""
    scaled = rows.copy()
    scaled[:, 0] *= factor
    return scaled
