"""Weights of the terms of a pass over prediction errors, by the classes of row and counterpart."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from taciturn.errors import InvalidParameter

CLASSES = 64
"""Number of classes of each axis."""

BITS = 14
"""Bits of a weight's fraction: a weight of 2^BITS leaves an error as it is."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PairWeights:
    """Weights between 0 and 1 of each rating's prediction error e, in units of 2^−BITS.

    Weight w turns e into sign(e)·⌊(|e|·w + 2^(BITS−1)) / 2^BITS⌋: |e|·w/2^BITS, rounded to nearest.
    The result is never larger than e in absolute value, and never moves further than e does. All
    fields are public or released; the arrays are copied.

    Attributes
    ----------
    rows, others
        Class of each row of the pass, and of each counterpart.
    of_rows, of_others
        Weights (CLASSES × CLASSES) of the terms in the sums by row, and by counterpart: one line
        for each class of a row, one column for each class of a counterpart.
    """

    rows: npt.NDArray[np.uint8]
    others: npt.NDArray[np.uint8]
    of_rows: npt.NDArray[np.int32]
    of_others: npt.NDArray[np.int32]

    def __post_init__(self) -> None:
        for name in ("rows", "others"):
            classes = _frozen_copy(getattr(self, name))
            if classes.ndim != 1 or classes.dtype != np.uint8 or (classes >= CLASSES).any():
                raise InvalidParameter(
                    f"classes of {name} must be a list of 8-bit integers from 0 to {CLASSES - 1}"
                )
            object.__setattr__(self, name, classes)
        for name in ("of_rows", "of_others"):
            table = _frozen_copy(getattr(self, name))
            if table.shape != (CLASSES, CLASSES) or table.dtype != np.int32:
                raise InvalidParameter(
                    f"weights {name} must be {CLASSES} × {CLASSES} integers of 32 bits"
                )
            if (table < 0).any() or (table > 1 << BITS).any():
                raise InvalidParameter(f"weights {name} must be between 0 and 2^{BITS}")
            object.__setattr__(self, name, table)

    def swapped(self) -> "PairWeights":
        """These weights for a pass along the other axis."""
        return PairWeights(
            rows=self.others,
            others=self.rows,
            of_rows=self.of_others.T,
            of_others=self.of_rows.T,
        )


def _frozen_copy(values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Read-only copy, so that the weights of a pass are those that were checked."""
    copy = np.array(values, order="C")
    copy.flags.writeable = False
    return copy
