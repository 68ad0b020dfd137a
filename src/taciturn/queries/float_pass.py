"""Both gradients of the squared error in floats, for bounds that are only claimed.

For a rating v of an item i by a user j, predicted as v̂ from their profiles, the prediction error is
r = v̂ − v. The pass computes Σ r·f_i for each user and Σ r·f_j for each item, where features f are
profiles clipped to a norm bound and divided by it. Sums are in floats and then rounded to a grid,
since noise is drawn on one. Their rounding errors depend on all ratings of a row, so no sensitivity
can be proven: a query with a proof uses `ErrorPass`, whose sums are exact.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from taciturn import _core
from taciturn._internal import parallel
from taciturn.data.pattern import Axis
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.query import Table
from taciturn.queries.values import GridValues

_PARTS = 4
"""Number of ranges of rows for each thread and axis."""

_NOT_FINITE = "profiles must be finite; use a smaller step size"


class FloatFeatures:
    """Users or items in a pass: profiles divided by their norm, or by the norm bound if larger.

    Parameters
    ----------
    profiles
        Profiles (n × width), public or released or, in the claim of a solver, private.
    bound
        Norm to which features are clipped. Predictions are those of the profiles.
    """

    def __init__(self, profiles: npt.NDArray[np.float64], bound: float) -> None:
        profiles = np.ascontiguousarray(profiles, dtype=np.float64)
        count, self.width = profiles.shape
        self.rows = _aligned(count, _core.float_stride(self.width))
        self.scales = np.empty(count, dtype=np.float32)
        if not _core.float_rows(profiles, bound, self.rows, self.scales, 0, count):
            raise InvalidParameter(_NOT_FINITE)

    def __len__(self) -> int:
        return len(self.scales)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FloatSums:
    """Sums of a pass, all private.

    users, items: Σ r·f in steps of the pass, by user and by item; squares: Σ r².
    """

    users: Table
    items: Table
    squares: float


@dataclass(frozen=True, kw_only=True)
class FloatPass:
    """Settings of a pass.

    Attributes
    ----------
    step
        Step to which sums are rounded, a power of two.
    limit
        Prediction errors are clipped to ± this.
    """

    step: float
    limit: float

    def run(
        self,
        values: GridValues,
        users: FloatFeatures,
        items: FloatFeatures,
        threads: int | None = None,
    ) -> FloatSums:
        """Sums by user and by item. Reads private data; the result is private too."""
        threads = parallel.thread_count(threads)
        found: dict[Axis, tuple[Table, npt.NDArray[np.float64]]] = {}
        tasks = []
        for axis, rows, others in ((Axis.USERS, users, items), (Axis.ITEMS, items, users)):
            pattern, steps = values.along(axis), values.steps_along(axis)
            if (len(rows), len(others)) != (len(pattern), pattern.width):
                raise InvalidParameter("the features of a pass must match the ratings")
            sums = np.empty((len(rows), rows.width), dtype=np.int64)
            squares = np.empty(len(rows), dtype=np.float64)
            found[axis] = sums, squares
            call = partial(
                _core.float_sums,
                pattern.starts,
                pattern.columns,
                steps,
                math.ldexp(1.0, values.view.grid.exponent),
                self.limit,
                rows.rows,
                rows.scales,
                others.rows,
                others.scales,
                1 / self.step,
                sums,
                squares,
            )
            parts = _PARTS * threads
            tasks += [partial(call, *part) for part in pattern.ranges(parts)]
        parallel.together(tasks, threads)
        of_users, squares = found[Axis.USERS]
        return FloatSums(users=of_users, items=found[Axis.ITEMS][0], squares=float(squares.sum()))


def _aligned(rows: int, columns: int) -> npt.NDArray[np.float32]:
    """Array aligned to a cache line, which is faster for vector instructions."""
    memory = np.empty(4 * rows * columns + 64, dtype=np.uint8)
    begin = -memory.ctypes.data % 64
    return memory[begin : begin + 4 * rows * columns].view(np.float32).reshape(rows, columns)
