"""Exact top-k items of many users, with a compiled kernel."""

import numpy as np
import numpy.typing as npt

from taciturn import _core
from taciturn._internal import parallel, validate

Floats = npt.NDArray[np.float32]

_LANES = 16
"""Number of items that the kernel processes together."""

_USERS = 256
"""Number of users in one unit of parallel work."""


class ItemIndex:
    """Item profiles in the memory layout of the kernel.

    Parameters
    ----------
    factors, biases
        Factors (n × k) and biases (n) of the items.
    """

    def __init__(self, factors: Floats, biases: Floats) -> None:
        self._count, width = factors.shape
        groups = -(-self._count // _LANES)
        padded = np.zeros((groups * _LANES, width), dtype=np.float32)
        padded[: self._count] = factors
        grouped = padded.reshape(groups, _LANES, width).transpose(0, 2, 1)
        self._factors = np.ascontiguousarray(grouped)
        self._biases = np.full((groups, _LANES), -np.inf, dtype=np.float32)
        self._biases.ravel()[: self._count] = biases

    def best(
        self,
        users: Floats,
        count: int,
        *,
        starts: npt.NDArray[np.int64],
        columns: npt.NDArray[np.int32],
        threads: int,
    ) -> tuple[npt.NDArray[np.int32], Floats]:
        """Best items of each profile and their scores; −1 where there are fewer than `count`.

        Row r excludes the items columns[starts[r]:starts[r + 1]], sorted in ascending order. A
        score is the item bias plus the inner product.
        """
        count = min(validate.positive_integer("count", count, "10 is usual"), self._count)
        items = np.empty((len(users), count), dtype=np.int32)
        scores = np.empty((len(users), count), dtype=np.float32)
        users = np.ascontiguousarray(users)

        def work(begin: int, end: int) -> None:
            _core.top_k(
                self._factors, self._biases, users, starts, columns, items, scores, begin, end
            )

        parallel.for_ranges(work, len(users), size=_USERS, threads=threads)
        return items, scores
