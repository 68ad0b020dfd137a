"""Features of users or items on a 16-bit grid: inputs of a pass over prediction errors."""

from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from taciturn import _core
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import WIDTH_MAX

NORM = _core.FEATURE_NORM
"""Norm bound of a feature row, in steps of the features' grid."""

LANES = 32
"""Number of columns to a multiple of which feature rows are padded."""

_LARGEST = 1e30
"""Largest base, and inverse of the smallest factor, of a row."""


class AxisFeatures:
    """Users or items in a pass: feature rows on the grid, and parameters of their predictions.

    The prediction of a rating is the sum of both bases and the inner product of both rows. Features
    are the rows times `shrink`, with a norm of at most 1, so that bounding the sensitivity does not
    bound the predictions. All inputs are public or released.

    Parameters
    ----------
    rows
        Profiles (n × width).
    shrink
        Positive factor for each row. Rows whose norm still exceeds 1 are clipped to norm 1, in
        features and predictions.
    base
        One number for each row.
    unit
        Multiplier of the inner product in the prediction; the effective one is the product over
        both axes.
    """

    def __init__(
        self,
        rows: npt.NDArray[np.float64],
        shrink: npt.NDArray[np.float64],
        base: npt.NDArray[np.float64],
        unit: float = 1.0,
    ) -> None:
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        if rows.ndim != 2 or not 1 <= rows.shape[1] <= WIDTH_MAX:
            raise InvalidParameter(f"features must have 1 to {WIDTH_MAX:,} columns")
        count, self.width = rows.shape
        if base.shape != (count,) or shrink.shape != (count,):
            raise InvalidParameter("pass one base and one factor for each row of features")
        # Comparisons with NaN are false; values out of bounds do not fit in 32 bits.
        if not ((np.abs(base) < _LARGEST).all() and (shrink > 1 / _LARGEST).all()):
            raise InvalidParameter("profiles must be finite; use a smaller step size")
        self.base, self._unit, self._shrink = base, unit, shrink
        self.packed = _aligned(count, -(-self.width // LANES) * LANES)
        try:
            _core.pack_rows(rows, shrink, self.packed, 0, count)
        except ValueError:
            raise InvalidParameter("profiles must be finite; use a smaller step size") from None
        self.packed.flags.writeable = False

    def __len__(self) -> int:
        return len(self.base)

    def with_weighted(
        self, weights: npt.NDArray[np.int64], bits: int, columns: int
    ) -> "AxisFeatures":
        """These rows, then their first columns times weights/2^bits, rounded towards zero.

        In a pass with counterparts that are zero in the last columns (`with_zeros`), predictions
        are the same integers as without these columns.
        """
        found = np.abs(self.packed[:, :columns]) * weights[:, None] >> bits
        return self._widened(np.sign(self.packed[:, :columns]) * found)

    def with_zeros(self, columns: int) -> "AxisFeatures":
        """These rows, then columns of zeros."""
        return self._widened(np.zeros((len(self), columns), dtype=np.int16))

    def _widened(self, more: npt.NDArray[np.integer[Any]]) -> "AxisFeatures":
        rows, width = copy(self), self.width + more.shape[1]
        rows.width = width
        rows.packed = _aligned(len(self), -(-width // LANES) * LANES)
        rows.packed[:] = 0
        rows.packed[:, : self.width] = self.packed[:, : self.width]
        rows.packed[:, self.width : width] = more
        rows.packed.flags.writeable = False
        return rows

    def lines(self, base_step: float, scale_step: float) -> npt.NDArray[np.float32]:
        """Base and scale of each row in the units of a pass."""
        lines = np.empty((len(self.base), 2), dtype=np.float32)
        lines[:, 0] = self.base / base_step
        lines[:, 1] = (self._unit / scale_step) / self._shrink
        return lines


def _aligned(rows: int, columns: int) -> npt.NDArray[np.int16]:
    """Array aligned to a cache line, which is faster for vector instructions."""
    memory = np.empty(2 * rows * columns + 64, dtype=np.uint8)
    begin = -memory.ctypes.data % 64
    return memory[begin : begin + 2 * rows * columns].view(np.int16).reshape(rows, columns)
