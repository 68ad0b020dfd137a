"""Steps on the ratings of each row, compiled and in threads."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from taciturn import _core
from taciturn._internal import parallel

Rows = npt.NDArray[np.float64]

_TABULATED = 1 << 18
"""Number of keys that a thread processes at a time."""


def row_products(
    starts: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int32],
    values: npt.NDArray[np.float64],
    threads: int | None = None,
) -> npt.NDArray[np.float64]:
    """Σ value of the column over the entries of each row: a product with the rating pattern.

    The bits of a row depend neither on other rows nor on the number of threads.
    """
    out = np.empty(starts.size - 1)
    given = np.ascontiguousarray(values, dtype=np.float64)
    work = partial(_core.pattern_products, starts, columns, given, out)
    _for_rows(work, out.size, threads)
    return out


def tabulated(
    keys: npt.NDArray[Any], values: npt.NDArray[Any], lowest: int = 0, threads: int | None = None
) -> npt.NDArray[Any]:
    """Function of each key, given its values for `lowest` and the whole numbers that follow.

    Other keys are clipped to these.
    """
    given = np.ascontiguousarray(keys)
    out = np.empty(given.size, dtype=values.dtype)
    work = partial(_core.tabulate, given, values, lowest, out)
    count = parallel.thread_count(threads)
    parallel.for_ranges(work, out.size, size=_TABULATED, threads=count)
    return out


def tabulated_sums(
    starts: npt.NDArray[np.int64],
    keys: npt.NDArray[np.int32],
    values: npt.NDArray[np.int64],
    lowest: int,
    threads: int | None = None,
) -> npt.NDArray[np.int64]:
    """Sum over the entries of each row of a function of their keys; see `tabulated`."""
    out = np.empty(starts.size - 1, dtype=np.int64)
    work = partial(_core.tabulated_sums, starts, np.ascontiguousarray(keys), values, lowest, out)
    _for_rows(work, out.size, threads)
    return out


def descended_rows(
    rows: Rows,
    gradient: Rows,
    centre: Rows,
    *,
    inward: Rows,
    whitening: Rows,
    outward: Rows,
    eigenvalues: Rows,
    noise: Rows,
    constants: tuple[float, float, float],
    by_row: Sequence[npt.ArrayLike],
) -> Rows:
    """Rows after one step of descent, as in cpp/rows.hpp.

    `constants` are the multiplier of the regularization, the residual variance and the step size;
    `by_row` are counts, weights and precisions, each a number or one for each row.
    """
    tables = tuple(
        np.ascontiguousarray(each, dtype=np.float64) for each in (rows, gradient, centre)
    )
    vectors = tuple(
        np.ascontiguousarray(np.broadcast_to(np.asarray(each, dtype=np.float64), len(rows)))
        for each in by_row
    )
    first, second, third = (np.ascontiguousarray(each) for each in (inward, whitening, outward))
    out = np.empty_like(tables[0])

    def work(begin: int, end: int) -> None:
        _core.descend_rows(
            first,
            second,
            third,
            eigenvalues,
            noise,
            constants,
            tables,
            vectors,
            out,
            (begin, end),
        )

    _for_rows(work, len(out), None)
    return out


def _for_rows(work: Any, rows: int, threads: int | None) -> None:
    """Call work(begin, end) for ranges of rows; several per thread balance rows of all lengths."""
    count = parallel.thread_count(threads)
    parallel.for_ranges(work, rows, size=max(1, -(-rows // (16 * count))), threads=count)
