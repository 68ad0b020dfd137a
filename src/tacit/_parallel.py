"""Work on ranges of rows in threads; kernels release the GIL."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tacit import _validate


def thread_count(threads: int | None) -> int:
    """Return `threads`, or the number of processors this process may use."""
    if threads is None:
        affinity = getattr(os, "sched_getaffinity", None)
        return len(affinity(0)) if affinity else os.cpu_count() or 1
    return _validate.positive_integer("threads", threads, "omit it to use all processors")


def for_ranges(work: Callable[[int, int], None], total: int, *, size: int, threads: int) -> None:
    """Call work(begin, end) for consecutive ranges of `size` that cover `total` rows.

    Ranges do not depend on the number of threads. An exception ends the call after the ranges
    under way are done.
    """
    starts = range(0, total, size)
    if threads == 1 or len(starts) <= 1:
        for start in starts:
            work(start, min(start + size, total))
        return
    with ThreadPoolExecutor(min(threads, len(starts))) as pool:
        tasks = [pool.submit(work, start, min(start + size, total)) for start in starts]
        try:
            for task in tasks:
                task.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
