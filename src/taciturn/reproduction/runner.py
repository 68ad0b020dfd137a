"""Runs cells in parallel and caches their results."""

from collections.abc import Callable, Iterable
from functools import lru_cache, partial

from taciturn._internal import parallel
from taciturn._internal.processes import job_count, run_tasks
from taciturn.data.named import load_named, named_set
from taciturn.data.ratings import Ratings
from taciturn.reproduction.cells import (
    Cell,
    Trace,
    cache_trace,
    cached_trace,
    cell_cache,
    data_digest,
    run_cell,
)

Progress = Callable[[int, int, float], None]
"""Called with the number of cells done, the total, and the fraction of the work done."""


def run_cells(
    wanted: Iterable[tuple[Cell, float]],
    *,
    jobs: int | None = None,
    progress: Progress = lambda done, total, share: None,
    finished: Callable[[dict[Cell, Trace]], None] = lambda results: None,
) -> dict[Cell, Trace]:
    """Results of cells, which are given with their approximate running times.

    Cached cells are not run again. An interrupt loses only the running cells. A single cell uses
    all processors. `finished` is called with all results so far, at the start and after every cell.
    """
    jobs = job_count(jobs)
    costs = dict(wanted)
    cache = cell_cache()
    # Fetch data once, before processes start; sets that cannot be downloaded fail first.
    sources = sorted({cell.paper_set.source for cell in costs}, key=_is_downloaded)
    for source in sources:
        data_digest(source)
    results = {cell: trace for cell in costs if (trace := cached_trace(cell, cache)) is not None}
    left = [cell for cell in costs if cell not in results]
    spent, whole = 0.0, sum(costs[cell] for cell in left)

    def done(cell: Cell, trace: Trace) -> None:
        nonlocal spent
        results[cell] = trace
        spent += costs[cell]
        progress(len(results), len(costs), spent / whole)
        finished(results)

    progress(len(results), len(costs), 0.0 if left else 1.0)
    finished(results)
    if len(left) == 1:
        threads = min(jobs, parallel.thread_count(None))
        run_tasks(partial(_work, threads=threads), left, 1, done)
    else:
        run_tasks(_work, left, min(jobs, max(1, len(left))), done)
    return results


def _work(cell: Cell, threads: int = 1) -> Trace:
    trace = run_cell(cell, _ratings(cell.paper_set.source), threads)
    cache_trace(cell, trace, cell_cache())
    return trace


def _is_downloaded(source: str) -> bool:
    return named_set(source.partition(":")[0]).url is not None


@lru_cache(maxsize=1)
def _ratings(source: str) -> Ratings:
    return load_named(source)
