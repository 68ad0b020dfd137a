"""Ridge regression: biases and factors of rows given those of their counterparts."""

import numpy as np
import numpy.typing as npt

from taciturn import _core
from taciturn._internal import parallel

Rows = npt.NDArray[np.float64]


def solve_rows(
    starts: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int32],
    targets: npt.NDArray[np.float32],
    counterparts: Rows,
    *,
    by_count: Rows,
    fixed: Rows,
    inverse: npt.NDArray[np.float32] | None = None,
    threads: int | None = None,
) -> Rows:
    """Bias and factors of each row of a CSR matrix that fit its targets best in least squares.

    The prediction of a target is the sum of both biases and the inner product of both factor
    vectors. The regularization on the diagonal of a row's normal equations is by_count · n + fixed,
    where n is its number of targets. The result is as private as the targets; each row depends only
    on its own.

    `inverse` (rows × count × width) receives columns 1 to count, those of the first factors, of the
    inverse of each row's normal equations; they are zero for a row without targets.
    """
    given = counterparts.astype(np.float32)
    rows = np.empty((starts.size - 1, given.shape[1]), dtype=np.float32)
    columns_out = np.empty((len(rows), 0), dtype=np.float32)
    if inverse is not None:
        columns_out = inverse.reshape(len(rows), -1)

    def work(begin: int, end: int) -> None:
        _core.ridge_rows(
            starts, columns, targets, given, by_count, fixed, rows, columns_out, begin, end
        )

    count = parallel.thread_count(threads)
    size = max(1, -(-len(rows) // (16 * count)))
    parallel.for_ranges(work, len(rows), size=size, threads=count)
    return rows.astype(np.float64)
