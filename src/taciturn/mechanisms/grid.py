"""Integer grids for private sums.

Rating values and the features they are multiplied with are each rounded to a power-of-two grid.
Products and sums are then exact integers, and so is the sensitivity: the range of the values times
the norm bound of the features (docs/proofs/grid.md). Rounding happens before summation, so it adds
nothing to the sensitivity.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from taciturn._internal import validate
from taciturn.errors import InvalidParameter

VALUE_LEVELS = 256
"""Minimum number of grid steps on a rating scale."""

FEATURE_BITS = 20
"""Norm bound of feature rows, as a power of two: norm 1 is 2^FEATURE_BITS steps."""

SCALE_MAX = 1e100
"""Largest absolute value on a scale; the smallest range of a scale is 1/SCALE_MAX."""

WIDTH_MAX = 2**13
"""Maximum number of columns of a feature table; squared norms then fit in 64 bits."""


@dataclass(frozen=True, kw_only=True)
class ValueGrid:
    """Multiples of 2^exponent from `lowest` to `highest` steps, which enclose a rating scale."""

    exponent: int
    lowest: int
    highest: int

    def __post_init__(self) -> None:
        if not -(2**31) < self.lowest < self.highest < 2**31:
            raise InvalidParameter(
                "a value grid must span at least one step within 31 bits; use fewer levels"
            )

    @classmethod
    def for_scale(cls, low: float, high: float, levels: int = VALUE_LEVELS) -> "ValueGrid":
        """Coarsest grid with at least `levels` steps between `low` and `high`."""
        levels = validate.positive_integer("levels", levels, "256 suits a scale of five stars")
        if not (-SCALE_MAX <= low < high <= SCALE_MAX and high - low >= 1 / SCALE_MAX):
            raise InvalidParameter(
                f"a scale must run from a smaller to a larger number, got {low} to {high}"
            )
        exponent = math.frexp((high - low) / levels)[1] - 1
        step = Fraction(2) ** exponent
        return cls(
            exponent=exponent,
            lowest=math.floor(Fraction(low) / step),
            highest=math.ceil(Fraction(high) / step),
        )

    @property
    def range(self) -> int:
        """Maximum difference of two values, in steps."""
        return self.highest - self.lowest

    def quantise(self, values: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """Round values to the grid. Values outside are clipped to its ends; NaN becomes the lowest.

        Takes an array of numbers of at most 64 bits. Reads private data, elementwise. Rounding is
        monotone, so the range never grows.
        """
        # Check only the type, and clip before scaling: an error or a warning about a private value
        # would reveal it.
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "iuf":
            raise InvalidParameter("values must be an array of numbers")
        if values.dtype.itemsize > 8:
            raise InvalidParameter("values must be an array of numbers of at most 64 bits")
        low, high = (math.ldexp(end, self.exponent) for end in (self.lowest, self.highest))
        inside = np.clip(values.astype(np.float64), low, high)
        inside = np.where(np.isnan(inside), low, inside)
        steps: npt.NDArray[np.float64] = np.rint(np.ldexp(inside, -self.exponent))
        return steps.astype(np.int32)


@dataclass(frozen=True, kw_only=True)
class FeatureGrid:
    """Grid for feature rows of norm at most 1, in multiples of 2^−bits."""

    bits: int = FEATURE_BITS

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 24:
            raise InvalidParameter(
                f"bits must be a whole number from 1 to 24, got {self.bits}; "
                f"the default is {FEATURE_BITS}"
            )

    @property
    def bound(self) -> int:
        """Norm bound in steps."""
        return 1 << self.bits

    def quantise(self, features: npt.ArrayLike) -> npt.NDArray[np.int32]:
        """Round rows (n × p) to the grid, scaling longer ones down to norm 1.

        Takes public or released values only. Every row of the result has a norm of at most
        `bound` steps, as `fits` checks in integers.
        """
        rows = np.asarray(features, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] > WIDTH_MAX or not np.isfinite(rows).all():
            raise InvalidParameter(
                f"features must be a table of finite numbers with at most {WIDTH_MAX:,} columns"
            )
        largest = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
        unit = rows / np.where(largest > 0, largest, 1.0)
        norms = largest * np.linalg.norm(unit, axis=1, keepdims=True)
        steps = np.where(norms > 1, rows / np.maximum(norms, 1.0), rows) * self.bound
        rounded: npt.NDArray[np.int32] = np.rint(steps).astype(np.int32)
        over = ~self.fits(rounded)
        # Rounding made these rows too long: shrink them slightly and round towards zero instead.
        rounded[over] = np.trunc(steps[over] * (1 - 2.0**-40)).astype(np.int32)
        return rounded

    def fits(self, rows: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Boolean array of the rows whose norm is at most `bound` steps, in exact integers."""
        if rows.ndim != 2 or rows.shape[1] > WIDTH_MAX or rows.dtype != np.int32:
            raise InvalidParameter(
                f"quantised features must be a table of 32-bit integers with at most {WIDTH_MAX:,} "
                "columns"
            )
        # Clip entries just above the bound, where a row fails anyway: the sum stays below 2^62.
        entries = np.minimum(np.abs(rows.astype(np.int64)), self.bound + 1)
        fits: npt.NDArray[np.bool_] = (entries * entries).sum(axis=1) <= self.bound * self.bound
        return fits
