"""Independent tasks in several processes of one thread each."""

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
    """Return how many processes to use: one for each processor when omitted."""
    if jobs is not None:
        validate.positive_integer("jobs", jobs, "one for each processor when omitted")
    return parallel.thread_count(jobs)


def run_tasks(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    jobs: int,
    done: Callable[[Task, Result], None],
) -> None:
    """Call done(task, work(task)) for every task, in the order in which they end.

    With one job all happens in this process; with several, a script that calls this must guard its
    own main part, as with any use of processes. An interrupt ends the tasks under way.
    """
    if jobs == 1:
        for task in tasks:
            done(task, work(task))
        return
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_prepare)
    try:
        # Processes start with interrupts blocked, as this thread has them now.
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
            "a process ended before its work was done, perhaps killed for want of memory; try "
            "again with fewer jobs"
        ) from None
    except BaseException:
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare() -> None:
    """Leave interrupts and warnings to the parent, and end with it if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
