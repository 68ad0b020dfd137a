"""Independent tasks in several single-threaded processes."""

import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from taciturn._internal import parallel, validate
from taciturn.errors import InvalidInput

Task = TypeVar("Task")
Result = TypeVar("Result")


def job_count(jobs: int | None) -> int:
    """Number of processes to use: `jobs`, or by default one for each processor."""
    if jobs is not None:
        validate.positive_integer("jobs", jobs, "omit it to use one for each processor")
    return parallel.thread_count(jobs)


def run_tasks(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    jobs: int,
    done: Callable[[Task, Result], None],
) -> None:
    """Call done(task, work(task)) for every task, in order of completion.

    One job runs in this process. With several, a script that calls this needs the usual
    `if __name__ == "__main__"` guard. An interrupt ends the tasks in progress.
    """
    if jobs == 1:
        for task in tasks:
            done(task, work(task))
        return
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_prepare)
    try:
        # Child processes inherit this thread's mask, so they start with interrupts blocked.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            waiting: dict[Future[Result], Task] = {pool.submit(work, task): task for task in tasks}
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        while waiting:
            finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                done(waiting.pop(future), future.result())
    except BrokenProcessPool:
        raise InvalidInput(
            "a worker process ended before its work was done, perhaps because memory ran out; try "
            "again with fewer jobs"
        ) from None
    except BaseException:
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare() -> None:
    """Leave interrupts and warnings to the parent process, and end if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
