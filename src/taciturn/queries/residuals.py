"""Measurements of residuals that are cut to a limit, under unit `value`.

A residual is how far a rating lies from its prediction. Predictions come from public or released
values only, so both of two neighbouring data sets have the same ones along the same history, and a
changed rating moves its own residual alone: by at most twice the limit, or the range of the scale
if that is less (docs/proofs/als.md). What is cut off is small if predictions are good.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from taciturn._internal import validate
from taciturn.accounting.events import Rows
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import FeatureGrid, ValueGrid
from taciturn.mechanisms.query import BoundedQuery, WeightedSums, frozen

TOTAL_BITS = {1: 20, 2: 8}
"""Totals are counted in steps of 2^−bits, by their power, so that their noise is fine enough."""


class Residuals:
    """Predictions of values on a grid, and the limit at which what remains is cut.

    Parameters
    ----------
    grid
        The grid of the values.
    predictions
        One for each value, in steps of the grid: public or already released.
    limit
        The largest residual in steps, at most the grid's range. Below half of that, twice the limit
        is how far a value can move its residual, `reach`.
    """

    def __init__(self, grid: ValueGrid, predictions: npt.NDArray[np.int32], limit: int) -> None:
        self.grid, self.predictions = grid, frozen("predictions", predictions, np.int32)
        self.limit = validate.positive_integer("limit", limit, "it counts steps of the grid")
        if self.limit > grid.range:
            raise InvalidParameter("the limit of a residual is at most the range of the values")
        self.reach = min(2 * self.limit, grid.range)
        largest = max(abs(grid.lowest), abs(grid.highest), *self._ends())
        if largest >= 2**30:
            raise InvalidParameter("values and predictions must lie within 30 bits")

    def of(self, values: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Return cut residuals. Reads private data; the result is private too.

        Values outside the grid count as its nearer end, so that the bound holds for any input.
        """
        if values.shape != self.predictions.shape or values.dtype != np.int32:
            raise InvalidParameter("values must be one 32-bit integer for each prediction")
        residuals = np.clip(values, self.grid.lowest, self.grid.highest)
        residuals -= self.predictions
        return np.clip(residuals, -self.limit, self.limit, out=residuals)

    def _ends(self) -> tuple[int, int]:
        ends = self.predictions.min(initial=0), self.predictions.max(initial=0)
        return abs(int(ends[0])), abs(int(ends[1]))


class ClippedSums:
    """For each row, Σ residual × feature over the row's ratings.

    Like `WeightedSums`, of residuals instead of values.
    """

    def __init__(
        self,
        *,
        purpose: str,
        rows: Rows,
        starts: npt.NDArray[np.int64],
        columns: npt.NDArray[np.int32],
        features: npt.NDArray[np.int32],
        feature_grid: FeatureGrid,
        residuals: Residuals,
    ) -> None:
        limit = residuals.limit
        self._residuals = residuals
        self._sums = WeightedSums(
            purpose=purpose,
            rows=rows,
            starts=starts,
            columns=columns,
            features=features,
            value_grid=ValueGrid(exponent=residuals.grid.exponent, lowest=-limit, highest=limit),
            feature_grid=feature_grid,
        )
        if residuals.predictions.size != columns.size:
            raise InvalidParameter("give one prediction for each entry")
        self.query = replace(
            self._sums.query,
            sensitivity=float(residuals.reach * feature_grid.bound),
            proof="als.md#claim",
        )

    def exact(
        self, values: npt.NDArray[np.int32], threads: int | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the exact sums. Reads private data; the result is private too."""
        return self._sums.exact(self._residuals.of(values), threads)


class ResidualTotal:
    """The sum of all residuals, or of their squares: one number.

    Parameters
    ----------
    purpose
        What it is for.
    residuals
        What is added up.
    power
        1 for the residuals themselves, 2 for their squares.
    """

    def __init__(self, *, purpose: str, residuals: Residuals, power: int) -> None:
        if power not in TOTAL_BITS:
            raise InvalidParameter("a total is of residuals or of their squares: power 1 or 2")
        self._residuals, self._power, self._bits = residuals, power, TOTAL_BITS[power]
        largest = residuals.limit**power << self._bits
        self.query = BoundedQuery(
            purpose=purpose,
            unit=Unit.VALUE,
            rows=Rows.TOTAL,
            shape=(1, 1),
            exponent=power * residuals.grid.exponent - self._bits,
            sensitivity=float(largest if power == 2 else residuals.reach << self._bits),
            coordinates=1,
            magnitude=max(1, residuals.predictions.size) * largest,
            proof="als.md#claim",
        )

    def exact(
        self, values: npt.NDArray[np.int32], threads: int | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the exact sum. Reads private data; the result is private too."""
        residuals = self._residuals.of(values)
        total = np.sum(np.power(residuals, self._power, dtype=np.int64))
        return np.array([[total << self._bits]])
