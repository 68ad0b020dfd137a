"""Runs cells, several at a time, and keeps what is done."""

import multiprocessing
import signal
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache

from tacit import _parallel, _validate
from tacit.data.ratings import Ratings
from tacit.data.sources import load_named
from tacit.errors import InvalidInput
from tacit.paper.cells import Cell, Trace, data_digest, keep, kept, run_cell

Progress = Callable[[int, int, float], None]
"""Called with the cells done, the cells in all, and the part of the work that is done."""


def run_cells(
    wanted: Iterable[tuple[Cell, float]],
    *,
    jobs: int | None = None,
    progress: Progress = lambda done, total, share: None,
) -> dict[Cell, Trace]:
    """Return the results of cells, given with about how long each takes.

    Those that were run before are not run again. `jobs` are processes of one thread each, as many
    as processors when omitted. An interrupt loses the cells under way and no others.
    """
    if jobs is not None:
        _validate.positive_integer("jobs", jobs, "one for each processor when omitted")
    jobs = _parallel.thread_count(jobs)
    costs = dict(wanted)
    for source in {cell.paper_set.source for cell in costs}:
        data_digest(source)  # fetches the data once, before several processes want it
    results = {cell: trace for cell in costs if (trace := kept(cell)) is not None}
    left = [cell for cell in costs if cell not in results]
    spent = 0.0
    whole = sum(costs[cell] for cell in left) or 1.0

    def done(cell: Cell, trace: Trace) -> None:
        nonlocal spent
        results[cell] = trace
        spent += costs[cell]
        progress(len(results), len(costs), spent / whole)

    progress(len(results), len(costs), 0.0 if left else 1.0)
    if jobs == 1 or len(left) == 1:
        for cell in left:
            done(cell, _work(cell, threads=jobs))
    elif left:
        _run_in_processes(left, min(jobs, len(left)), done)
    return results


def _run_in_processes(cells: list[Cell], jobs: int, done: Callable[[Cell, Trace], None]) -> None:
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_ignore_interrupts)
    try:
        waiting: dict[Future[Trace], Cell] = {pool.submit(_work, cell): cell for cell in cells}
        while waiting:
            finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                done(waiting.pop(future), future.result())
    except BrokenProcessPool:
        raise InvalidInput(
            "a process of the reproduction was killed, perhaps for want of memory; run the same "
            "command again with fewer --jobs: what was done is kept"
        ) from None
    finally:
        for process in multiprocessing.active_children():
            process.terminate()
        pool.shutdown(cancel_futures=True)


def _ignore_interrupts() -> None:
    """Leave an interrupt to the parent, which ends this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _work(cell: Cell, threads: int = 1) -> Trace:
    trace = run_cell(cell, _ratings(cell.paper_set.source), threads)
    keep(cell, trace)
    return trace


@lru_cache(maxsize=1)
def _ratings(source: str) -> Ratings:
    return load_named(source)
