"""Exact answers on this machine: the only part of a training that holds the ratings."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from taciturn.data.ratings import Ratings
from taciturn.mechanisms.query import Answer, QuerySpec
from taciturn.queries.values import GridValues, ValueView, on_grid


class RatingQuery(QuerySpec, Protocol):
    """A query spec over ratings on a grid."""

    @property
    def view(self) -> ValueView:
        """View of the ratings that it reads."""

    def exact(self, values: GridValues, threads: int | None = None) -> Answer:
        """Exact answer, which obeys the bounds. Reads private data; the result is private too."""


class LocalExecutor:
    """Answers query specs from ratings in memory, with threads.

    Ratings on a grid are cached for each view; a solver has one or two.
    """

    def __init__(self, ratings: Ratings, threads: int | None = None) -> None:
        self._ratings, self._threads = ratings, threads
        self._values: dict[ValueView, GridValues] = {}

    def __repr__(self) -> str:
        return "LocalExecutor()"

    def values(self, view: ValueView) -> GridValues:
        """Ratings in a view. Private."""
        if view not in self._values:
            self._values[view] = on_grid(self._ratings, view, self._threads)
        return self._values[view]

    def answer(self, spec: RatingQuery) -> Answer:
        """Exact answer of a query spec. Reads private data; the result is private too."""
        return spec.exact(self.values(spec.view), self._threads)

    def every_value(self) -> npt.NDArray[np.float32]:
        """Every rating in the order of users, for solvers that are not private. Private."""
        return self._ratings.values()
