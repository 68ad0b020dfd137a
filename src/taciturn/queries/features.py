"""Features of users or items on a 16-bit grid, as a pass over prediction errors takes them."""

from copy import copy

import numpy as np
import numpy.typing as npt

from taciturn import _core
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import WIDTH_MAX

NORM = _core.FEATURE_NORM
"""Norm bound of a feature row, in steps of the features' grid."""

LANES = 32
"""Feature rows are padded to a multiple of this."""

_LARGEST = 1e30
"""Largest base, and inverse of the smallest factor, of a row."""


class AxisFeatures:
    """Users or items in a pass: feature rows on the grid, and how they predict.

    A rating is predicted as base + base + ⟨row, row⟩, the sum of both axes' bases and the product
    of their rows. Features are the rows times `shrink`, which makes them no longer than 1: what
    bounds the sensitivity does not bound the prediction. Takes public or released values only.

    Parameters
    ----------
    rows
        Profiles (n × width).
    shrink
        A positive factor for each row. Rows that are longer than 1 with it are clipped to norm 1,
        in features and predictions.
    base
        One number for each row.
    unit
        Factor of the product of rows in the prediction; those of both axes multiply.
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
            raise InvalidParameter("give one base and one factor for each row of features")
        # What is not a number compares as false; what is out of bounds has no 32-bit form.
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

    def weighted(self, weights: npt.NDArray[np.int64], bits: int) -> "AxisFeatures":
        """The same predictions from features times weights/2^bits, rounded towards zero."""
        rows = copy(self)
        found = np.abs(self.packed) * weights[:, None] >> bits
        rows.packed = _aligned(*found.shape)
        rows.packed[:] = np.sign(self.packed) * found
        rows.packed.flags.writeable = False
        rows._shrink = self._shrink * np.maximum(weights, 1) / (1 << bits)
        return rows

    def lines(self, base_step: float, scale_step: float) -> npt.NDArray[np.float32]:
        """Base and scale of each row in the units of a pass."""
        lines = np.empty((len(self.base), 2), dtype=np.float32)
        lines[:, 0] = self.base / base_step
        lines[:, 1] = (self._unit / scale_step) / self._shrink
        return lines


def _aligned(rows: int, columns: int) -> npt.NDArray[np.int16]:
    """An array that begins at a cache line, as vector instructions like it."""
    memory = np.empty(2 * rows * columns + 64, dtype=np.uint8)
    begin = -memory.ctypes.data % 64
    return memory[begin : begin + 2 * rows * columns].view(np.int16).reshape(rows, columns)
