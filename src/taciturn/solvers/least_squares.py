"""Alternating least squares with biases: each side is solved exactly while the other rests.

Knows the pattern of the ratings and some values for them, exact or noised; what it returns is as
private as those are.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from taciturn._internal.ridge import solve_rows
from taciturn.data.ratings import Csr, Ratings
from taciturn.solvers.contract import Seeds
from taciturn.solvers.run import State

PRIOR_RATINGS = 200
"""Ratings that the ridge counts for a row beyond its own."""

BIAS_RIDGE = 4.0


@dataclass(frozen=True, kw_only=True)
class Ridge:
    """What is added to the normal equations of a row with n ratings: weighted · n + fixed.

    One number for factors, one for the bias.
    """

    weighted: float
    fixed: float
    bias: float


class LeastSquares:
    """Alternating solves of rows (bias, factors) for values of rated pairs.

    Parameters
    ----------
    ratings
        For their pattern and scale only.
    values
        One value for each pair in the order of `ratings.by_user`, with the mean subtracted.
    factors
        Length of a profile.
    ridge
        The regularization.
    seeds
        Seeds of the random factors to begin with.
    threads
        Threads to use; all processors when None.
    """

    def __init__(
        self,
        ratings: Ratings,
        values: npt.NDArray[np.float32],
        factors: int,
        ridge: Ridge,
        seeds: Seeds,
        threads: int | None = None,
    ) -> None:
        self._shape, self._range = ratings.shape, ratings.scale.range
        self._factors, self._ridge = factors, ridge
        self._seeds, self._threads = seeds, threads
        # Sorting pairs by item keeps users in order within each: the order of by_item.
        by_item = np.argsort(ratings.by_user.columns, kind="stable")
        self._sides = {
            "items": (ratings.by_item, values[by_item]),
            "users": (ratings.by_user, values),
        }

    def begin(self) -> State:
        """Return random factors and no biases."""
        of_items, of_users = self._seeds.starts()
        spread = 0.1 * math.sqrt(self._range / 4)
        users, items = self._shape
        rows = {
            name: random.normal(scale=spread, size=(count, self._factors + 1))
            for name, count, random in (("users", users, of_users), ("items", items, of_items))
        }
        for row in rows.values():
            row[:, 0] = 0
        return rows

    def step(self, number: int, state: State) -> State:
        """Return both sides solved once, items first."""
        after = dict(state)
        for name, other in (("items", "users"), ("users", "items")):
            after[name] = self._solve(*self._sides[name], after[other])
        return after

    def _solve(
        self, side: Csr, values: npt.NDArray[np.float32], others: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """Return one side's rows, the other's given."""
        weighted = np.full(others.shape[1], self._ridge.weighted)
        fixed = np.full(others.shape[1], self._ridge.fixed)
        weighted[0], fixed[0] = 0.0, self._ridge.bias
        return solve_rows(
            side.starts,
            side.columns,
            values,
            others,
            weighted=weighted,
            fixed=fixed,
            threads=self._threads,
        )
