"""Descent on cut residuals with noisy counts: unit `rating`, which hides who rated what.

First the numbers of ratings of every user and every item are released with noise. Each step then
releases Σ r·f by user and by item, residuals r being cut at their usual size, and Σ r². One rating
more or less moves each table by at most that limit: half of what changing a value may. What the
descent divides by, n·E[f fᵀ], needs counts only, so nothing else of who rated what is asked for
(docs/proofs/rating.md).
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr

from tacit.data.ratings import Ratings
from tacit.privacy.budget import Budget
from tacit.privacy.events import GaussianRelease
from tacit.privacy.grid import ValueGrid
from tacit.privacy.mechanism import Gate
from tacit.privacy.residuals import RatingCounts, ResidualSums, Side
from tacit.privacy.units import Unit
from tacit.solvers.contract import PLAIN, Fit, Profiles, Session, check_ratings, needed_budget, settings
from tacit.solvers.gradient import GradientDescent, GradientSolver
from tacit.solvers.run import Run, State

_COUNT_SHARE, _SQUARE_SHARE = 0.01, 0.01
"""Shares of μ²: of each table of counts, and of all sums of squares together."""

_LIMIT, _SLOPE = 0.8, 0.15
"""Where residuals are cut, in deviations: _LIMIT + _SLOPE · μ."""

_LEVELS = 256
"""Steps of the value grid; the usual limit is some fifty of them."""


@dataclass(frozen=True, kw_only=True)
class HiddenSolver:
    """Descent on cut residuals. Unit `rating`, status `proven`."""

    name: ClassVar[str] = "hidden"
    is_private: ClassVar[bool] = True

    factors: int = 8
    iterations: int = 40
    step_size: float = 0.3
    regularization: float = 1.0
    averaged: float = 0.5

    def fit(self, ratings: Ratings, budget: Budget | None = None, session: Session = PLAIN) -> Fit:
        """Train on ratings within a budget. Reads private data; the fit may be released."""
        check_ratings(ratings)
        budget = needed_budget(self, budget)
        run = Run(session)
        gate = run.gate(Unit.RATING, budget)
        descent = HiddenDescent(self, ratings, budget)
        values = descent.pairs.values(ratings, descent.grid, descent.middle)

        def step(number: int, state: State) -> State:
            if number == 0:
                counts = RatingCounts(descent.pairs)
                released = gate.release_together(counts, values, shares=(_COUNT_SHARE,) * 2)
                noise = [gate.noise_scale(query, _COUNT_SHARE) for query in counts.queries]
                return descent.with_counts(state, released, noise)
            sums = descent.cut_sums(number - 1, state)
            released = gate.release_together(sums, values, shares=self.shares)
            scales = [gate.noise_scale(query, share) for query, share in zip(sums.queries, self.shares, strict=True)]
            return descent.cut_step(number - 1, state, released, scales)

        state = run.steps(1 + self.iterations, lambda: descent.begin(session), step)
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
    def shares(self) -> tuple[float, float, float]:
        """The shares of μ² of the tables of one step."""
        left = 1 - 2.0**-40 - 2 * _COUNT_SHARE - _SQUARE_SHARE
        each = left / (2 * self.iterations)
        return each, each, _SQUARE_SHARE / self.iterations


class HiddenDescent(GradientDescent):
    """The steps between releases."""

    def __init__(self, solver: Any, ratings: Ratings, budget: Budget) -> None:
        inner = GradientSolver(
            factors=solver.factors,
            iterations=solver.iterations,
            step_size=solver.step_size,
            regularization=solver.regularization,
            averaged=solver.averaged,
        )
        super().__init__(inner, ratings, budget)
        scale = ratings.scale
        self.grid = ValueGrid.for_scale(-scale.range / 2, scale.range / 2, _LEVELS)
        self._times = _LIMIT + _SLOPE * budget.mu
        self._kept = float(2 * ndtr(self._times) - 1)
        density = math.exp(-self._times**2 / 2) / math.sqrt(2 * math.pi)
        self._square = self._kept - 2 * self._times * density + 2 * self._times**2 * float(ndtr(-self._times))

    def begin(self, session: Session) -> State:
        state = super().begin(session)
        return state | {"spread": np.array([1.1]), "user_counts": np.zeros(0), "item_counts": np.zeros(0)}

    def with_counts(self, state: State, released: Any, noise: list[float]) -> State:
        users, items = (shrunk(table[:, 0], scale) for table, scale in zip(released, noise, strict=True))
        return state | {"user_counts": users, "item_counts": items}

    def counts(self, state: State) -> dict[str, npt.NDArray[Any]]:
        return {"users": state["user_counts"], "items": state["item_counts"]}

    def limit(self, state: State) -> int:
        step = math.ldexp(1.0, self.grid.exponent)
        return max(1, round(self._times * float(state["spread"][0]) * self._unit / step))

    def cut_sums(self, number: int, state: State) -> ResidualSums:
        users, items = self.sides(state)
        return ResidualSums(
            purpose=f"step {number + 1}",
            pairs=self.pairs,
            users=users,
            items=items,
            values=self.grid,
            first=1,
            limit=self.limit(state),
            unit=Unit.RATING,
            has_squares=True,
        )

    def cut_step(self, number: int, state: State, released: Any, noise: list[float]) -> State:
        by_user, by_item, squares = released
        after = super().step(
            number, state, (by_user / self._kept, by_item / self._kept), [each / self._kept for each in noise[:2]]
        )
        total = max(1.0, float(state["item_counts"].sum()))
        found = math.sqrt(max(float(squares[0, 0]) / total, 1e-6) / self._square) / self._unit
        spread = np.clip(found, 0.8 * state["spread"], 1.25 * state["spread"])
        kept = {name: state[name] for name in ("user_counts", "item_counts")}
        return after | kept | {"spread": spread}


def shrunk(counts: npt.NDArray[np.float64], noise: float) -> npt.NDArray[np.float64]:
    """Return what noisy counts are worth: their means if counts fall off exponentially."""
    usual = max(float(counts.mean()), 1.0)
    shifted = counts - noise**2 / usual
    z = shifted / noise
    tail = np.exp(-(z**2) / 2 - 0.5 * math.log(2 * math.pi) - log_ndtr(z))
    return np.maximum(shifted + noise * tail, 1e-3)
