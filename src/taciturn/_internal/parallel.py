"""Threads that process ranges of rows; kernels release the GIL."""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

from taciturn._internal import validate

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_inside = threading.local()
_blas = threading.Lock()


def thread_count(threads: int | None) -> int:
    """Number of threads to use: `threads`, or by default the processors of this process."""
    if threads is None:
        affinity = getattr(os, "sched_getaffinity", None)
        return len(affinity(0)) if affinity else os.cpu_count() or 1
    return validate.positive_integer("threads", threads, "omit it to use all processors")


def for_ranges(work: Callable[[int, int], None], total: int, *, size: int, threads: int) -> None:
    """Call work(begin, end) for consecutive ranges of `size` that cover `total` rows.

    Ranges do not depend on the number of threads; the calling thread is one of them. An exception
    ends the call once the ranges in progress are done. Calls from inside `work` are sequential.
    """
    ranges = _Ranges(work, total, size)
    helpers = min(threads, len(ranges.starts)) - 1
    if helpers < 1 or getattr(_inside, "work", False):
        ranges.run()
        return
    pool = _pool(os.getpid(), threads - 1)
    tasks = [pool.submit(ranges.run) for _ in range(helpers)]
    try:
        ranges.run()
    finally:
        ranges.stop()
        wait([task for task in tasks if not task.cancel()])
    for task in tasks:
        if not task.cancelled():
            task.result()


def together(calls: Sequence[Callable[[], Result]], threads: int | None = None) -> list[Result]:
    """Results of several calls, made in parallel."""
    results: dict[int, Result] = {}

    def work(place: int, _: int) -> None:
        results[place] = calls[place]()

    for_ranges(work, len(calls), size=1, threads=thread_count(threads))
    return [results[place] for place in range(len(calls))]


def without_blas_threads(work: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Limit BLAS to one thread during a function that has its own threads.

    Threads then do not wait for each other, and BLAS sums in the same order on every machine. The
    limit applies to the whole process: of overlapping calls, the first sets and lifts it.
    """

    @wraps(work)
    def limited(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        from threadpoolctl import threadpool_limits

        if not _blas.acquire(blocking=False):
            return work(*args, **kwargs)
        try:
            with threadpool_limits(1, user_api="blas"):
                return work(*args, **kwargs)
        finally:
            _blas.release()

    return limited


@lru_cache(maxsize=8)
def _pool(process: int, helpers: int) -> ThreadPoolExecutor:
    """Helper threads of this process, kept because starting them for every call is slow."""
    return ThreadPoolExecutor(helpers, thread_name_prefix=f"taciturn-{process}")


class _Ranges:
    """Queue of ranges that several threads take from."""

    def __init__(self, work: Callable[[int, int], None], total: int, size: int) -> None:
        self.starts = range(0, total, size)
        self._work, self._total, self._size = work, total, size
        self._left = iter(self.starts)
        self._lock = threading.Lock()

    def run(self) -> None:
        """Process ranges until none is left; the first exception stops every thread."""
        before, _inside.work = getattr(_inside, "work", False), True
        try:
            while (begin := self._take()) is not None:
                self._work(begin, min(begin + self._size, self._total))
        except BaseException:
            self.stop()
            raise
        finally:
            _inside.work = before

    def stop(self) -> None:
        """Stop handing out ranges."""
        with self._lock:
            self._left = iter(range(0))

    def _take(self) -> int | None:
        with self._lock:
            return next(self._left, None)
