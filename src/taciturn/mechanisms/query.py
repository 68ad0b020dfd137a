"""Bounded queries: a table of private sums, and how far one neighbouring change can move it.

A query's fields are public facts. A measurement computes the private sums of its query and nothing
else; `taciturn.mechanisms.gate.Gate.release` takes the measurement, so that no sums go with a
bound that is not theirs.
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from taciturn import _core
from taciturn._internal import parallel, validate
from taciturn.accounting.events import Rows
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import FeatureGrid, ValueGrid

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


class Measurement(Protocol):
    """A table of private sums: what is public about it, and how to compute it."""

    @property
    def query(self) -> BoundedQuery:
        """The public facts, the bound among them."""

    def exact(
        self, values: npt.NDArray[np.int32], threads: int | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the exact sums, which obey the bound. Reads private data."""


class JointMeasurement(Protocol):
    """Several tables of private sums that are computed together."""

    @property
    def queries(self) -> tuple[BoundedQuery, ...]:
        """The public facts of each table, its bound among them."""

    def exact(
        self, values: npt.NDArray[np.int32], threads: int | None = None
    ) -> tuple[npt.NDArray[np.int64], ...]:
        """Return the exact sums, which obey the bounds. Reads private data."""


class WeightedSums:
    """For each row, Σ value × feature over the row's ratings, under unit `value`.

    Which ratings there are is public under `value`: row r has the entries starts[r] to
    starts[r + 1], and entry e refers to feature row columns[e]. Changing the value of one rating
    moves one row of the table by at most (range of the values) × (norm bound of the features).

    Parameters
    ----------
    purpose, rows
        What the table is for, and what its rows are.
    starts, columns
        The public pattern, as in compressed sparse rows.
    features
        One row for each column index, on `feature_grid`: public or already released.
    value_grid, feature_grid
        The grids of both factors.
    """

    def __init__(
        self,
        *,
        purpose: str,
        rows: Rows,
        starts: npt.NDArray[np.int64],
        columns: npt.NDArray[np.int32],
        features: npt.NDArray[np.int32],
        value_grid: ValueGrid,
        feature_grid: FeatureGrid,
    ) -> None:
        features = frozen("features", features, np.int32)
        if not feature_grid.fits(features).all():
            raise InvalidParameter("a feature row is longer than 1; quantise it with its grid")
        starts, columns = checked_pattern(starts, columns, features.shape[0])
        degrees = np.diff(starts)
        self._starts, self._columns, self._features = starts, columns, features
        self._grid = value_grid
        largest = max(abs(value_grid.lowest), abs(value_grid.highest))
        self.query = BoundedQuery(
            purpose=purpose,
            unit=Unit.VALUE,
            rows=rows,
            shape=(starts.size - 1, features.shape[1]),
            exponent=value_grid.exponent - feature_grid.bits,
            sensitivity=float(value_grid.range * feature_grid.bound),
            coordinates=features.shape[1],
            magnitude=max(1, int(degrees.max())) * largest * feature_grid.bound,
            proof="grid.md#sensitivity",
        )

    def exact(
        self, values: npt.NDArray[np.int32], threads: int | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the exact sums. Reads private data; the result is private too.

        Values outside the grid count as its nearer end, so that the bound holds for any input.
        """
        if values.shape != self._columns.shape or values.dtype != np.int32:
            raise InvalidParameter("values must be one 32-bit integer for each entry")
        values = np.ascontiguousarray(values)
        sums = np.empty(self.query.shape, dtype=np.int64)

        def work(begin: int, end: int) -> None:
            _core.grid_sums(
                self._starts,
                self._columns,
                values,
                self._grid.lowest,
                self._grid.highest,
                self._features,
                sums,
                begin,
                end,
            )

        count = parallel.thread_count(threads)
        # Several ranges a thread even out rows of different length; sums do not depend on them.
        size = -(-len(sums) // (8 * count))
        parallel.for_ranges(work, len(sums), size=size, threads=count)
        return sums


def checked_pattern(
    starts: npt.NDArray[np.int64], columns: npt.NDArray[np.int32], width: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return copies of compressed rows that refer to `width` columns, each pair once, or raise."""
    starts = frozen("starts", starts, np.int64)
    columns = frozen("columns", columns, np.int32)
    degrees = np.diff(starts)
    if starts.size < 2 or starts[0] != 0 or starts[-1] != columns.size or degrees.min() < 0:
        raise InvalidParameter("starts must rise from 0 to the number of entries")
    if columns.size and not 0 <= columns.min() <= columns.max() < width:
        raise InvalidParameter("columns must refer to rows of the features")
    rises = np.diff(columns) > 0
    rises[starts[1:-1][(starts[1:-1] > 0) & (starts[1:-1] < columns.size)] - 1] = True
    if not rises.all():
        raise InvalidParameter("columns must rise within each row: no pair may come twice")
    return starts, columns


def frozen(name: str, array: npt.NDArray[Any], dtype: type[np.generic]) -> npt.NDArray[Any]:
    """Return a copy that nobody can change: what is checked must still hold when it is used."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu":
        raise InvalidParameter(f"{name} must be an array of integers")
    copy = np.array(array, dtype=dtype, order="C")
    if array.size and not np.array_equal(copy, array):
        raise InvalidParameter(f"{name} must fit {np.dtype(dtype).name}")
    copy.flags.writeable = False
    return copy
