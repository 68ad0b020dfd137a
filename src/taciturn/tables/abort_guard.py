"""Clear end of the process if the Parquet reader aborts it.

polars aborts if memory for what a damaged page states cannot be allocated. No exception handler
sees that, so a signal handler prints a line and ends the process with exit code 2.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_depth = 0


@contextmanager
def abort_guard(path: str) -> Iterator[None]:
    """Name `path` if the process is aborted meanwhile; with several guards, the latest path."""
    from taciturn import _core

    global _depth
    shown = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in path
    )
    line = (
        f"error: the Parquet reader aborted while reading {shown}; the file is probably damaged: "
        "write it again, or as CSV"
    )
    with _lock:
        _core.guard_aborts(line.encode())
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                _core.unguard_aborts()
