"""Bounded queries: tables of private sums with a proven sensitivity.

A `BoundedQuery` holds the public facts of one table. A `QuerySpec` describes, from public or
released numbers only, which tables to compute and how. An `Executor` holds the ratings and computes
the answer. A gate takes both, so that an answer always has the bound of its own query.
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
"""Exact sums in steps of a query's grid. Private."""

MAGNITUDE_MAX = 2**61
"""Maximum absolute value of an exact sum; with noise it still fits in 64 bits."""


@dataclass(frozen=True, kw_only=True)
class BoundedQuery:
    """Public facts of a table of integer sums, in steps of 2^exponent.

    For every pair of neighbouring datasets under `unit`, given the same transcript, the tables
    differ by at most `sensitivity` steps in L2 norm and in at most `coordinates` entries. `proof`
    names the page and heading under docs/proofs that prove it. If a published bound has no valid
    proof, `flaw` gives the reason, and a release under it is only claimed to be private.
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
        validate.text("purpose", self.purpose, "describe the use of the table")
        validate.text("proof", self.proof, "name the page and heading that prove the bound")
        checked = {
            "unit": validate.choice("unit", self.unit, Unit),
            "rows": validate.choice("rows", self.rows, Rows),
            "sensitivity": validate.positive(
                "sensitivity", self.sensitivity, "state it in grid steps"
            ),
            "coordinates": validate.positive_integer(
                "coordinates", self.coordinates, "count the entries that one change can affect"
            ),
            "shape": (int(self.shape[0]), int(self.shape[1])),
            "exponent": int(self.exponent),
            "magnitude": int(self.magnitude),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if not (-1000 <= self.exponent <= 1000 and min(self.shape) >= 1):
            raise InvalidParameter(
                "a query needs an exponent from -1000 to 1000 and at least one row and column"
            )
        if not 0 < self.magnitude <= MAGNITUDE_MAX:
            raise InvalidParameter(
                "the sums could exceed 61 bits; use a coarser grid or fewer ratings in a row"
            )

    @property
    def step(self) -> float:
        """Grid step, a power of two."""
        return math.ldexp(1.0, self.exponent)


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """Exact answer to a query spec. Private.

    Attributes
    ----------
    tables
        One table for each query of the spec.
    private
        Any other private by-product. A gate returns it only if the bound is claimed, not proven,
        because post-processing that uses it is not private.
    """

    tables: tuple[Table, ...]
    private: Any = None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Released:
    """Noisy answer to a query spec, with the public facts that post-processing needs.

    `noise_scales` holds the standard deviation of each table's noise, in the units of the table.
    `private` is None unless the bound is only claimed; see `Answer`.
    """

    spec: Any
    tables: tuple[npt.NDArray[Any], ...]
    noise_scales: tuple[float, ...]
    private: Any = None


class QuerySpec(Protocol):
    """Description, without private data, of tables of private sums that are computed together."""

    @property
    def queries(self) -> tuple[BoundedQuery, ...]:
        """Public facts of each table, including its bound."""


class Executor(Protocol):
    """Holds the ratings of a training and computes exact answers, on one machine or several."""

    def answer(self, spec: Any) -> Answer:
        """Exact answer to a query spec, within its bounds. Reads private data."""

    def every_value(self) -> npt.NDArray[np.float32]:
        """Every rating in the order of users, for non-private solvers. Reads private data."""
