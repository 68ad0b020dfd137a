"""Unit `rating`: descent on cut residuals with noisy counts, which hides who rated what.

First the numbers of ratings of every user and every item are released with noise, and how ratings
lie on the scale. Each step then releases Σ r·f by user and by item, residuals r being cut at their
usual size, and Σ r². One rating more or less moves each table by at most that limit: half of what
changing a value may. What the descent divides by, n·E[f fᵀ], needs counts only, so nothing else of
who rated what is asked for (docs/proofs/rating.md).
"""

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from taciturn.accounting.budget import Budget
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.queries.prediction_errors import RatingTotals, ResidualSums
from taciturn.solvers.contract import Seeds
from taciturn.solvers.descent import START, Cut, Steps, levels_for, mean_and_unit, rank_of, shrunk
from taciturn.solvers.gradient import GradientDescent
from taciturn.solvers.run import State, Tables

_COUNT_SHARE, _TOTAL_SHARE, _SQUARE_SHARE = 0.01, 0.002, 0.008
"""Shares of μ²: of each table of counts, of totals, and of all sums of squares together."""

RANKS = ((0.3, 2), (0.45, 4), (0.65, 8), (0.75, 12))
"""How many factors to learn, from how much of them users and items tell on: the product of both."""


class RatingDescent(GradientDescent):
    """One descent: what it asks for, and what it learns. Its pairs are private.

    Parameters
    ----------
    ratings
        What to train on.
    budget
        What all releases may cost.
    factors
        As many as counts and noise leave room for when None.
    iterations
        The less noise, the more when None.
    """

    def __init__(
        self, ratings: Ratings, budget: Budget, factors: int | None, iterations: int | None
    ) -> None:
        steps = Steps(
            factors=RANKS[-1][1] if factors is None else factors,
            iterations=iterations or min(80, round(24 + 24 * budget.mu)),
        )
        # A little less than all, so that the sum does not round to more than 1.
        left = 1 - 2.0**-40 - 2 * _COUNT_SHARE - _TOTAL_SHARE - _SQUARE_SHARE
        self._share = left / (2 * steps.iterations)
        self._ratio = budget.mu * math.sqrt(self._share)
        super().__init__(steps, ratings, levels_for(self._ratio))
        self._is_rank_free, self._cut = factors is None, Cut.for_mu(budget.mu)

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return 1 + self._steps.iterations

    def values(self, ratings: Ratings) -> npt.NDArray[np.int32]:
        """Return the ratings on the grid. Reads private data."""
        return self.pairs.values(ratings, self.grid, self.middle)

    def begin(self, seeds: Seeds) -> State:
        """Return the profiles before the first step."""
        users, items = self.pairs.shape
        facts = {
            "user_counts": np.zeros(users),
            "item_counts": np.zeros(items),
            "unit": np.array(self._unit),
            "mean": np.array(0.0),
            "spread": np.array(START),
        }
        return super().begin(seeds) | facts

    def ask(
        self, number: int, state: State
    ) -> tuple[RatingTotals | ResidualSums, tuple[float, ...]]:
        """Return what a step measures, and for which shares of μ²."""
        if number == 0:
            shares = (_COUNT_SHARE, _COUNT_SHARE, _TOTAL_SHARE)
            return RatingTotals(self.pairs, self.grid), shares
        users, items = self.sides(state)
        sums = ResidualSums(
            purpose=f"step {number} of {self._steps.iterations}",
            pairs=self.pairs,
            users=users,
            items=items,
            values=self.grid,
            first=1,
            limit=self._cut.limit(
                float(state["spread"]) * self.unit(state), self.grid, self._ratio
            ),
            unit=Unit.RATING,
            has_squares=True,
            width=1 + self._steps.factors,
        )
        return sums, (self._share, self._share, _SQUARE_SHARE / self._steps.iterations)

    def learn(self, number: int, state: State, released: Tables, noise: list[float]) -> State:
        """Return the state after a step."""
        if number == 0:
            return self._begun(state, released, noise)
        kept, (by_user, by_item, squares) = self._cut.kept, released
        after = self.step(
            number - 1, state, (by_user / kept, by_item / kept), [each / kept for each in noise[:2]]
        )
        total = max(1.0, float(state["item_counts"].sum()))
        mean_square = float(squares[0, 0]) / total / self.unit(state) ** 2
        spread = self._cut.deviation(float(state["spread"]), mean_square)
        return after | {"spread": np.array(spread)}

    def _begun(self, state: State, released: Tables, noise: list[float]) -> State:
        """Return the first state that knows counts, mean and unit."""
        users, items = (shrunk(released[side][:, 0], noise[side]) for side in (0, 1))
        mean, unit = mean_and_unit(released[2][0], float(items.sum()), self.grid)
        after = state | {
            "user_counts": users,
            "item_counts": items,
            "mean": np.array(mean),
            "unit": np.array(unit),
        }
        if self._is_rank_free:
            usual = self._cut.times / (self._cut.kept * self._ratio)
            support = self._steps.support(users, usual) * self._steps.support(items, usual)
            width = 1 + rank_of(support, RANKS)
            for name in ("users", "items", "user_sums", "item_sums"):
                after[name] = after[name][:, :width].copy()
        return after

    def at(self, state: State) -> Steps:
        """Return how to descend, with as many factors as the state has."""
        return replace(self._steps, factors=state["items"].shape[1] - 1)

    def counts(self, state: State) -> dict[str, npt.NDArray[np.float64]]:
        """Return how many ratings each row has, as far as was released."""
        return {"users": state["user_counts"], "items": state["item_counts"]}

    def unit(self, state: State) -> float:
        """Return what one unit of a bias is, as the ratings' deviation tells."""
        return float(state["unit"])

    def mean(self, state: State) -> float:
        """Return the mean rating above the middle, as far as was released."""
        return float(state["mean"])
