"""Unit `user`: people are solved exactly, each from their own ratings, and items by descent.

Nothing about a person is released but what all people together say about items: first how much
weight each item has, how many people there are and how they rate; then, step by step, Σ w·r·f by
item, with w = 1/√n for a person of n ratings, residuals r cut at their usual size and f the
person's own profile, solved from released items; and with it the mean product of features and the
mean square of residuals (docs/proofs/user.md). The release holds items, and what is needed to solve
a person from their own ratings.
"""

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from taciturn.accounting.budget import Budget
from taciturn.data.ratings import Ratings
from taciturn.mechanisms.grid import ValueGrid
from taciturn.model.profiles import Prior
from taciturn.queries.per_user import Items, People, PersonSums, PersonTotals
from taciturn.solvers.contract import Seeds
from taciturn.solvers.descent import (
    START,
    WIDTH,
    Cut,
    Rows,
    Steps,
    by_count,
    levels_for,
    mean_and_unit,
    rank_of,
    shrunk,
)
from taciturn.solvers.run import State, Tables

_WEIGHT_SHARE, _TOTAL_SHARE, _PRODUCT_SHARE, _SQUARE_SHARE = 0.03, 0.02, 0.02, 0.005
"""Shares of μ²: of items' weights, of totals, of all products of features, of all mean squares."""

_ITERATIONS = 24

_FACTORS_START = 0.5
"""How wide factors are at first, in parts of their prior."""

_LONGEST = 4.0
"""How much longer than a constant alone features are, at most."""

RANKS = ((0.2, 4), (0.7, 6), (0.85, 8))
"""How many factors to learn, from how much of them items tell on."""


class UserDescent:
    """One descent: what it asks for, and what it learns. Its people are private.

    Parameters
    ----------
    ratings
        What to train on.
    budget
        What all releases may cost.
    factors
        As many as weights and noise leave room for when None.
    iterations
        The usual number when None.
    """

    def __init__(
        self, ratings: Ratings, budget: Budget, factors: int | None, iterations: int | None
    ) -> None:
        self._is_rank_free = factors is None
        self._steps = Steps(
            factors=RANKS[-1][1] if factors is None else factors,
            iterations=iterations or _ITERATIONS,
            step_size=0.4,
            regularization=0.8,
            averaged=0.75,
            constant=0.6,
        )
        self._people = People(ratings)
        scale = ratings.scale
        self.middle, self._unit = (scale.low + scale.high) / 2, scale.range / WIDTH
        # A little less than all, so that the sum does not round to more than 1.
        left = 1 - 2.0**-40 - _WEIGHT_SHARE - _TOTAL_SHARE - _PRODUCT_SHARE - _SQUARE_SHARE
        self._share = left / self._steps.iterations
        self._ratio = budget.mu * math.sqrt(self._share)
        levels = levels_for(self._ratio)
        self._grid = ValueGrid.for_scale(-scale.range / 2, scale.range / 2, levels)
        self._cut = Cut.for_mu(budget.mu)

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return 1 + self._steps.iterations

    def values(self, ratings: Ratings) -> npt.NDArray[np.int32]:
        """Return the ratings on the grid. Reads private data."""
        return self._grid.quantise(ratings.values().astype(np.float64) - self.middle)

    def begin(self, seeds: Seeds) -> State:
        """Return the items before the first step."""
        of_items, _ = seeds.starts()
        items = of_items.normal(size=(self._people.items, self._steps.factors + 1))
        items *= _FACTORS_START * self._steps.priors
        items[:, 0] = 0
        facts = {"people": 1.0, "mean": 0.0, "unit": self._unit, "spread": START}
        return {
            "items": items,
            "item_sums": np.zeros_like(items),
            "weights": np.zeros(len(items)),
            **{name: np.array(fact) for name, fact in facts.items()},
        }

    def ask(self, number: int, state: State) -> tuple[PersonTotals | PersonSums, tuple[float, ...]]:
        """Return what a step measures, and for which shares of μ²."""
        if number == 0:
            return PersonTotals(self._people, self._grid), (_WEIGHT_SHARE, _TOTAL_SHARE)
        count = self._steps.iterations
        deviation = float(state["spread"] * state["unit"])
        sums = PersonSums(
            purpose=f"step {number} of {count}",
            people=self._people,
            items=self._items(state, state["items"]),
            mean=float(state["mean"]),
            values=self._grid,
            limit=self._cut.limit(deviation, self._grid, self._ratio),
            width=1 + self._steps.factors,
        )
        return sums, (self._share, _PRODUCT_SHARE / count, _SQUARE_SHARE / count)

    def learn(self, number: int, state: State, released: Tables, noise: list[float]) -> State:
        """Return the state after a step."""
        if number == 0:
            return self._begun(state, released, noise)
        gradient, triangle, squares = released
        kept, people, unit = self._cut.kept, float(state["people"]), float(state["unit"])
        steps = self._at(state)
        products = _symmetric(triangle[0] / people, 1 + steps.factors)
        # Features have length 1; the constant among them tells how long profiles were.
        first = max(float(products[0, 0]), 1e-9)
        length = min(max(1.0, 1 / math.sqrt(first)), _LONGEST / steps.constant) * steps.constant
        items = steps.descended(
            state["items"],
            gradient / (kept * unit),
            noise=noise[0] / (kept * unit),
            counts=state["weights"],
            curvature=products * length,
            centre=by_count(state["items"], state["weights"]),
            weight=self._weight(state),
        )
        mean_square = float(squares[0, 0]) / people / unit**2
        spread = self._cut.deviation(float(state["spread"]), mean_square)
        after = state | {"items": items, "spread": np.array(spread)}
        if number > steps.averaged_from:
            after["item_sums"] = state["item_sums"] + items
        return after

    def _begun(self, state: State, released: Tables, noise: list[float]) -> State:
        """Return the first state that knows weights, people, mean and unit."""
        weights, totals = released
        people = max(1.0, float(totals[0, 0]))
        mean, unit = mean_and_unit(totals[0, 1:], people, self._grid)
        after = state | {
            "weights": shrunk(weights[:, 0], noise[0]),
            "people": np.array(people),
            "mean": np.array(mean),
            "unit": np.array(unit),
        }
        if self._is_rank_free:
            usual = self._cut.times / (self._cut.kept * self._ratio)
            support = self._steps.support(after["weights"], usual, self._weight(after))
            width = 1 + rank_of(support, RANKS)
            for name in ("items", "item_sums"):
                after[name] = after[name][:, :width].copy()
        return after

    def _weight(self, state: State) -> float:
        """Return the usual weight of a rating: Σ w² over Σ w."""
        return min(1.0, float(state["people"]) / max(1.0, float(state["weights"].sum())))

    def _at(self, state: State) -> Steps:
        """Return how to descend, with as many factors as the state has."""
        return replace(self._steps, factors=state["items"].shape[1] - 1)

    def _items(self, state: State, rows: Rows) -> Items:
        """Return items from which people are solved, in the units of the ratings."""
        prior = self.prior(state)
        return Items(
            rows=rows * self._units(state),
            ridge=prior.residual_variance / np.array(prior.variances),
            constant=self._steps.constant * math.sqrt(state["unit"]),
        )

    def _units(self, state: State) -> Rows:
        """Return what rows are multiplied with to be in the units of the ratings."""
        unit = float(state["unit"])
        units = np.full(state["items"].shape[1], math.sqrt(unit))
        units[0] = unit
        return units

    def prior(self, state: State) -> Prior:
        """Return what is assumed of a person."""
        deviations = self._at(state).priors * self._units(state)
        deviations[0] *= self._steps.constant
        residual = float(state["spread"] * state["unit"])
        return Prior(
            residual_variance=residual**2,
            variances=tuple(float(each) for each in deviations**2),
        )

    def profiles(self, state: State) -> tuple[float, npt.NDArray[np.float32]]:
        """Return mean and item rows in the units of the ratings."""
        rows = self._items(state, self._averaged(state)).rows
        return self.middle + float(state["mean"]), rows.astype(np.float32)

    def people(
        self, state: State, ratings: Ratings, threads: int | None
    ) -> npt.NDArray[np.float32]:
        """Return everybody's row, as `fold_in` gives it. Private: from ratings without noise."""
        side, mean = ratings.by_user, self.middle + float(state["mean"])
        targets = (ratings.values() - mean).astype(np.float32)
        items = self._items(state, self._averaged(state))
        return items.solve(side.starts, side.columns, targets, threads).astype(np.float32)

    def _averaged(self, state: State) -> Rows:
        count = self._steps.iterations - self._steps.averaged_from
        return state["item_sums"] / count if count else state["items"]


def _symmetric(triangle: Rows, width: int) -> Rows:
    """Return the matrix of an upper triangle."""
    matrix = np.zeros((width, width))
    matrix[np.triu_indices(width)] = triangle
    return matrix + np.triu(matrix, 1).T
