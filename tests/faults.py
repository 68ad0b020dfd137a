"""Fault injector: lets the n-th system call on files fail, be interrupted or be the last one.

Product code reaches the file system through the functions of `os` and through `io.open`, so these
are where faults are injected. A fault comes instead of the call or right after it.
"""

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any
from unittest.mock import patch

READS = ("close", "listdir", "lstat", "scandir", "stat")
WRITES = (
    "fsync",
    "ftruncate",
    "link",
    "mkdir",
    "open",
    "remove",
    "rename",
    "replace",
    "rmdir",
    "truncate",
    "unlink",
    "write",
)
CHANGES = tuple(name for name in WRITES if name != "fsync")
"""Calls that change what is on the disk; between two of them, a kill leaves the same files."""

GROWING = ("link", "mkdir", "open", "write", "fsync")
"""Calls that a full disk refuses."""

CALLS: tuple[tuple[ModuleType, str], ...] = (
    *((os, name) for name in READS + WRITES),
    (io, "open"),
)

KILLED = 9
"""Exit code of a process that ended at a call, without running another line."""


def refuse(code: int) -> Callable[[], None]:
    """Fault: the system returns an error."""

    def fault() -> None:
        raise OSError(code, os.strerror(code))

    return fault


def interrupt() -> None:
    """Fault: the user presses Ctrl-C."""
    raise KeyboardInterrupt


def kill() -> None:
    """Fault: the process ends at once."""
    os._exit(KILLED)


@dataclass
class Faults:
    """Counter of system calls, with a fault at call number `at`.

    Parameters
    ----------
    at
        Number of the call with the fault, from 0. Default: no call has one.
    fault
        Raises or ends the process.
    is_after
        The fault comes after the call has taken effect.
    lasts
        Every later call in `GROWING` fails too, as on a disk that stays full.
    counted
        Names of the calls that are counted.
    """

    at: int | None = None
    fault: Callable[[], None] = interrupt
    is_after: bool = False
    lasts: bool = False
    counted: tuple[str, ...] = READS + WRITES
    seen: list[str] = field(default_factory=list)

    @contextmanager
    def armed(self) -> Iterator[None]:
        """Count calls, and inject the fault, inside this context."""
        with ExitStack() as stack:
            for home, name in CALLS:
                stack.enter_context(patch.object(home, name, self._wrapped(home, name)))
            yield

    def _wrapped(self, home: ModuleType, name: str) -> Callable[..., Any]:
        original = getattr(home, name)

        def call(*arguments: Any, **options: Any) -> Any:
            if name not in self.counted:
                return original(*arguments, **options)
            number = len(self.seen)
            self.seen.append(name)
            is_hit = number == self.at
            if self.lasts and self.at is not None and number > self.at:
                is_hit = name in GROWING
            if not is_hit:
                return original(*arguments, **options)
            # A handle is closed even if closing it reports an error.
            if self.is_after or name == "close":
                original(*arguments, **options)
            self.fault()
            return None

        return call


FAULTS: dict[str, dict[str, Any]] = {
    "input or output error": {"fault": refuse(errno.EIO)},
    "full disk": {"fault": refuse(errno.ENOSPC), "lasts": True},
    "interrupt": {"fault": interrupt, "is_after": True},
}
"""Faults after which the process goes on; `kill` ends it."""
