"""Bounded queries: tables of private sums, and how far one neighbouring change can move them.

A `BoundedQuery` holds the public facts of one table. A `QuerySpec` says which tables to compute and
how, from public or released numbers only; an `Executor` holds the ratings and computes the answer.
A gate takes both, so that no answer goes with a bound that is not its own.
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from taciturn._internal import validate
from taciturn.accounting.events import Rows
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidParameter

Table = npt.NDArray[np.int64]
"""Exact sums in steps of a query's grid: private."""

MAGNITUDE_MAX = 2**61
"""Largest absolute value of an exact sum; with noise it still fits 64 bits."""


@dataclass(frozen=True, kw_only=True)
class BoundedQuery:
    """What is public about a table of integer sums, in steps of 2^exponent.

    For every pair of neighbouring data sets under `unit`, along the same released history, the
    tables differ by at most `sensitivity` steps in L2 norm and in at most `coordinates` entries.
    `proof` names the page and heading under docs/proofs that prove it. If a published bound has no
    valid proof, `flaw` says why not, and what is released under it is only claimed to be private.
    """

    purpose: str
    unit: Unit
    rows: Rows
    shape: tuple[int, int]
    exponent: int
    sensitivity: float
    coordinates: int
    magnitude: int
    proof: str
    flaw: str | None = None

    def __post_init__(self) -> None:
        validate.text("purpose", self.purpose, "say what the table is for")
        validate.text("proof", self.proof, "name the page and heading that prove the bound")
        checked = {
            "unit": validate.choice("unit", self.unit, Unit),
            "rows": validate.choice("rows", self.rows, Rows),
            "sensitivity": validate.positive(
                "sensitivity", self.sensitivity, "give it in grid steps"
            ),
            "coordinates": validate.positive_integer(
                "coordinates", self.coordinates, "count what a change touches"
            ),
            "shape": (int(self.shape[0]), int(self.shape[1])),
            "exponent": int(self.exponent),
            "magnitude": int(self.magnitude),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if not (-1000 <= self.exponent <= 1000 and min(self.shape) >= 1):
            raise InvalidParameter("a query needs a sensible grid and at least one row and column")
        if not 0 < self.magnitude <= MAGNITUDE_MAX:
            raise InvalidParameter(
                "the sums could exceed 61 bits; use a coarser grid or fewer ratings in a row"
            )

    @property
    def step(self) -> float:
        """The grid step, a power of two."""
        return math.ldexp(1.0, self.exponent)


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """Exact answer of a query spec: private.

    Attributes
    ----------
    tables
        One table for each query of the spec.
    private
        Anything else that was computed on the way and stays on the private side. A gate hands it
        on only where the bound is claimed, not proven: post-processing that sees it is not private.
    """

    tables: tuple[Table, ...]
    private: Any = None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Released:
    """Noisy answer of a query spec, with the public facts that post-processing needs.

    `noise_scales` has the standard deviation of the noise of each table, in the units of the table.
    `private` is None unless the bound is only claimed; see `Answer`.
    """

    spec: Any
    tables: tuple[npt.NDArray[Any], ...]
    noise_scales: tuple[float, ...]
    private: Any = None


class QuerySpec(Protocol):
    """One or more tables of private sums that are computed together, described without data."""

    @property
    def queries(self) -> tuple[BoundedQuery, ...]:
        """Public facts of each table, its bound among them."""


class Executor(Protocol):
    """Holds the ratings of a training and computes exact answers: on this machine, or on many."""

    def answer(self, spec: Any) -> Answer:
        """Exact answer of a query spec, which obeys its bounds. Reads private data."""

    def every_value(self) -> npt.NDArray[np.float32]:
        """Every rating in the order of users, for solvers that are not private."""
