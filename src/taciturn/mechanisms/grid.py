"""The integer grid on which private sums live.

A rating's value and the feature it is multiplied with are rounded to power-of-two grids of their
own; products and sums are then exact integers, and so is the sensitivity: the range of the values
times the norm bound of the features (docs/proofs/grid.md). Rounding happens before anything is
summed, so nothing has to be widened for it.
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
"""Steps that a scale is divided into, at least."""

FEATURE_BITS = 20
"""A feature row of norm 1 is 2^FEATURE_BITS steps long."""


SCALE_MAX = 1e100
"""Largest number on a scale, and the inverse of its smallest range."""

WIDTH_MAX = 2**13
"""Most columns of a feature table; squared norms then stay within 64 bits."""


@dataclass(frozen=True, kw_only=True)
class ValueGrid:
    """The multiples of 2^exponent from `lowest` to `highest` steps, which enclose a scale."""

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
        """Return the coarsest grid with at least `levels` steps between `low` and `high`."""
        levels = validate.positive_integer("levels", levels, "256 suit a scale of five stars")
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
        """How many steps two values can lie apart."""
        return self.highest - self.lowest

    def quantise(self, values: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """Round values to the grid; what lies outside becomes the nearer end, NaN the lowest.

        Takes an array of numbers of at most 64 bits. Reads private data, elementwise. Rounding is
        monotone, so the range is never widened.
        """
        # Judged by type and cut before scaling: an error or a warning about a private value would
        # give it away.
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
    """Rows of features of norm at most 1, in multiples of 2^−bits."""

    bits: int = FEATURE_BITS

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 24:
            raise InvalidParameter(f"a feature grid has 1 to 24 bits, got {self.bits}")

    @property
    def bound(self) -> int:
        """The norm bound in steps."""
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
        # Rounding up made these rows too long: cut a little, and round towards zero instead.
        rounded[over] = np.trunc(steps[over] * (1 - 2.0**-40)).astype(np.int32)
        return rounded

    def fits(self, rows: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Return which rows have a norm of at most `bound` steps, in exact integers."""
        if rows.ndim != 2 or rows.shape[1] > WIDTH_MAX or rows.dtype != np.int32:
            raise InvalidParameter(
                f"quantised features must be a table of 32-bit integers with at most {WIDTH_MAX:,} "
                "columns"
            )
        # Entries are cut just above the bound, where they fail already: below 2^62 in all.
        entries = np.minimum(np.abs(rows.astype(np.int64)), self.bound + 1)
        fits: npt.NDArray[np.bool_] = (entries * entries).sum(axis=1) <= self.bound * self.bound
        return fits
