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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from taciturn._internal import parallel, validate
from taciturn.accounting.budget import Budget
from taciturn.accounting.events import GaussianRelease
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import ValueGrid
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Profiles
from taciturn.queries.prediction_errors import RatedPairs, ResidualSums, Side, value_levels
from taciturn.solvers.contract import (
    PLAIN,
    Fit,
    Seeds,
    Session,
    check_budget,
    check_descent,
    check_ratings,
    settings,
)
from taciturn.solvers.descent import WIDTH, Rows, Steps
from taciturn.solvers.run import Asked, Run, State, planned

FACTORS_MAX = 4096

VALUE_LEVELS = 64
"""Steps of the value grid, at least: rounding errors are far below the usual error of a rating."""


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
        validate.positive("regularization", self.regularization, "1 is usual")
        if not 0 <= validate.finite("averaged", self.averaged, "0.5 is usual") <= 1:
            raise InvalidParameter(f"averaged must lie between 0 and 1, got {self.averaged}")

    @parallel.without_blas_threads
    def fit(self, ratings: Ratings, budget: Budget | None = None, session: Session = PLAIN) -> Fit:
        """Train on ratings within a budget. Reads private data; the fit may be released."""
        check_ratings(ratings)
        check_budget(self, budget)
        run = Run(session)
        descent = self.descent(ratings, budget)
        door = run.door(Unit.VALUE, budget, self.asked(descent))
        values = descent.pairs.values(ratings, descent.grid, descent.middle)

        def step(number: int, state: State) -> State:
            sums = descent.sums(number, *descent.sides(state))
            released = door.release_together(sums, values, shares=(self.share, self.share))
            noise = [door.noise_scale(query, self.share) for query in sums.queries]
            return descent.step(number, state, released, noise)

        state = run.steps(self.iterations, lambda: descent.begin(session.seeds), step)
        ledger = run.finish()
        mean, users, items = descent.profiles(state)
        return Fit(
            solver=self.name,
            settings=settings(self),
            model=FactorModel(
                scale=ratings.scale,
                mean=mean,
                users=Profiles(ids=ratings.user_ids, biases=users[:, 0], factors=users[:, 1:]),
                items=Profiles(ids=ratings.item_ids, biases=items[:, 0], factors=items[:, 1:]),
            ),
            ledger=ledger,
        )

    @property
    def share(self) -> float:
        """The share of μ² that each of the two releases of an iteration gets."""
        # A little less than all, so that the sum does not round to more than 1.
        return (1 - 2.0**-40) / (2 * self.iterations)

    def descent(self, ratings: Ratings, budget: Budget | None) -> "GradientDescent":
        """Return the descent on these ratings. Reads public facts only."""
        ratio = budget.mu * math.sqrt(self.share) if budget else 0.0
        levels = value_levels(ratio, VALUE_LEVELS)
        return GradientDescent(Steps(**settings(self)), ratings, levels)

    def plan(self, ratings: Ratings, budget: Budget | None = None) -> list[GaussianRelease]:
        """Return the events that `fit` would book. Reads public facts only."""
        check_budget(self, budget)
        if budget is None:
            return []
        return planned(Unit.VALUE, budget, self.asked(self.descent(ratings, budget)))

    def asked(self, descent: "GradientDescent") -> Asked:
        """All queries with their shares of μ²; they do not depend on what is released."""
        sides = descent.sides(descent.begin(Seeds()))
        return [
            (query, self.share)
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
    """One descent: its public facts, and the steps between releases. Holds no private value."""

    def __init__(self, steps: Steps, ratings: Ratings, levels: int) -> None:
        self._steps = steps
        self.pairs = RatedPairs(ratings)
        scale = ratings.scale
        # Ratings are centred at the middle of the declared scale.
        self.middle = (scale.low + scale.high) / 2
        self.grid = ValueGrid.for_scale(-scale.range / 2, scale.range / 2, levels)
        self._unit = scale.range / WIDTH

    def begin(self, seeds: Seeds) -> State:
        """Return the profiles before the first step."""
        of_items, of_users = seeds.starts()
        steps = self._steps
        rows = [
            random.normal(size=(count, steps.factors + 1))
            for random, count in zip((of_users, of_items), self.pairs.shape, strict=True)
        ]
        for side in rows:
            side *= steps.priors
            side[:, 0] = 0
        return {
            "users": rows[0],
            "items": rows[1],
            "user_sums": np.zeros_like(rows[0]),
            "item_sums": np.zeros_like(rows[1]),
        }

    def sides(self, state: State) -> tuple[Side, Side]:
        """Return users and items as sides of a pass."""
        unit, (users, items) = self.unit(state), (state["users"], state["items"])
        steps = self.at(state)
        return steps.side(users, unit, unit, self.mean(state)), steps.side(items, unit)

    def sums(self, number: int, users: Side, items: Side) -> ResidualSums:
        """Return the measurement of an iteration."""
        return ResidualSums(
            purpose=f"gradient {number + 1} of {self._steps.iterations}",
            pairs=self.pairs,
            users=users,
            items=items,
            values=self.grid,
            first=1,
        )

    def step(
        self, number: int, state: State, released: Sequence[Rows], noise: Sequence[float]
    ) -> State:
        """Return the next state, from released gradients by user and by item."""
        counts, unit, steps = self.counts(state), self.unit(state), self.at(state)
        after = dict(state)
        for name, other, gradient, scale in (
            ("users", "items", released[0], noise[0]),
            ("items", "users", released[1], noise[1]),
        ):
            others, shrink = steps.features(state[other])
            weights = counts[other] / max(1, counts[other].sum())
            after[name] = steps.descended(
                state[name],
                gradient / unit,
                noise=scale / unit,
                counts=counts[name],
                curvature=(others * (weights * shrink)[:, None]).T @ others,
            )
        is_averaged = number >= steps.averaged_from
        for name, sums in (("users", "user_sums"), ("items", "item_sums")):
            if is_averaged:
                after[sums] = state[sums] + after[name]
        return after

    def at(self, state: State) -> Steps:
        """Return how to descend from a state."""
        return self._steps

    def unit(self, state: State) -> float:
        """Return what one unit of a bias is, in ratings' own."""
        return self._unit

    def mean(self, state: State) -> float:
        """Return what every rating is predicted as before anything else, above the middle."""
        return 0.0

    def counts(self, state: State) -> dict[str, npt.NDArray[Any]]:
        """Return how many ratings each row has: public under unit `value`."""
        return {"users": self.pairs.user_counts, "items": self.pairs.item_counts}

    def profiles(
        self, state: State
    ) -> tuple[float, npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return mean, user rows and item rows in the units of the ratings."""
        averaged = self._steps.iterations - self._steps.averaged_from
        users, items = state["users"], state["items"]
        if averaged > 0:
            users, items = state["user_sums"] / averaged, state["item_sums"] / averaged
        unit = self.unit(state)
        units = np.full(users.shape[1], math.sqrt(unit))
        units[0] = unit
        mean = self.middle + self.mean(state)
        return mean, (users * units).astype(np.float32), (items * units).astype(np.float32)
