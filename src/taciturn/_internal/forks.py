"""Forked processes in which polars would hang.

polars computes in a pool of threads. A fork copies the memory of a process but only one of its
threads, so a child that was forked after the pool had started waits for threads that do not exist.
"""

import os
import re
import sys
import time
from pathlib import Path

from taciturn.errors import ForkedProcess

_TASKS, _STATUS = Path("/proc/self/task"), Path("/proc/self/stat")

_FORKED = 0x40
"""Flag of a Linux process that was forked and has not executed a program since."""

_POOL_THREAD = re.compile(r"polars-\d+")

_ATTEMPTS, _PAUSE = 50, 0.01
"""Attempts to see the pool's threads, and seconds in between: a thread starts without its name."""

_checked: int | None = None
"""Process in which polars was found usable, or None."""


def check_fork() -> None:
    """Raise `ForkedProcess` if polars would hang in this process.

    On Linux this is exact, whoever used polars in the parent. Elsewhere it raises if the parent
    called this function before the fork, and does not know of other uses.
    """
    global _checked
    if _checked == os.getpid():
        return
    is_lost = _has_lost_pool() if _TASKS.is_dir() else _checked is not None
    if is_lost:
        raise ForkedProcess(
            "this process was forked after its parent had used Taciturn or polars, whose threads "
            'do not survive a fork; start it with multiprocessing.get_context("spawn") or '
            'multiprocessing.get_context("forkserver")'
        )
    _checked = os.getpid()


def _has_lost_pool() -> bool:
    """True if the pool was started before a fork: then asking for its size starts no threads."""
    # The second field, the name of the program, may contain spaces and parentheses.
    flags = int(_STATUS.read_text().rpartition(")")[2].split()[6])
    if not flags & _FORKED or "polars" not in sys.modules:
        return False
    import polars as pl

    pl.thread_pool_size()
    for _ in range(_ATTEMPTS):
        if any(_POOL_THREAD.fullmatch(name) for name in _thread_names()):
            return False
        time.sleep(_PAUSE)
    return True


def _thread_names() -> list[str]:
    names = []
    for task in _TASKS.iterdir():
        try:
            names.append((task / "comm").read_text().strip())
        except OSError:
            continue  # the thread has ended
    return names
