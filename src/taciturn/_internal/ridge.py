"""Biases and factors of rows by least squares, those of their partners given."""

import numpy as np
import numpy.typing as npt

from taciturn import _core
from taciturn._internal import parallel

Rows = npt.NDArray[np.float64]


def solve_rows(
    starts: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int32],
    targets: npt.NDArray[np.float32],
    partners: Rows,
    *,
    weighted: Rows,
    fixed: Rows,
    threads: int | None = None,
) -> Rows:
    """Return for each compressed row the bias and factors that predict its targets best.

    A target is predicted as both biases plus the product of factors. What is added to the diagonal
    of a row's equations is weighted · n + fixed, n being its number of targets. The result is as
    private as the targets are; a row depends on its own alone.
    """
    given = partners.astype(np.float32)
    rows = np.empty((starts.size - 1, given.shape[1]), dtype=np.float32)

    def work(begin: int, end: int) -> None:
        _core.ridge_rows(starts, columns, targets, given, weighted, fixed, rows, begin, end)

    count = parallel.thread_count(threads)
    size = max(1, -(-len(rows) // (16 * count)))
    parallel.for_ranges(work, len(rows), size=size, threads=count)
    return rows.astype(np.float64)
