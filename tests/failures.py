"""Simulated failures: of the disk, and of the process that writes to it, at any operation."""

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest


def fail_link(patch: pytest.MonkeyPatch, *names: str) -> None:
    """Make linking files of these names fail as on a full disk."""
    link = os.link

    def full(draft: Path, path: Path) -> None:
        if path.name in names:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        link(draft, path)

    patch.setattr(os, "link", full)


class Killed(BaseException):
    """End of a process: after it, nothing reaches the disk."""


class Failure(StrEnum):
    """Fault at an operation."""

    KILL = "the process ends, so every later operation fails too"
    ERROR = "the system reports an error, once"
    FULL = "the disk is full from then on"
    INTERRUPT = "Ctrl-C arrives right after the operation"


GROWING = ("fsync", "link", "mkdir", "open", "symlink", "write")
"""Operations that fail on a full disk."""

CHANGES = (
    *("fsync", "ftruncate", "link", "mkdir", "remove", "rename", "replace", "rmdir"),
    "symlink",
)
READS = ("listdir", "lstat", "readlink", "scandir", "stat")


class Injector:
    """Counts operations on the disk and lets the one of a given number fail.

    Operations are creating, opening for writing, writing, syncing, truncating, linking, renaming
    and removing. A write counts twice: before it, and when half of its bytes are written.

    Parameters
    ----------
    number
        Operation that fails, from 0; None lets none fail.
    failure
        How it fails.
    code
        Error number that the system reports.
    counts_reads
        Also count reading, listing and closing.
    """

    def __init__(
        self,
        number: int | None,
        failure: Failure = Failure.KILL,
        *,
        code: int = errno.ENOSPC,
        counts_reads: bool = False,
    ) -> None:
        self.count, self.has_failed = 0, False
        self._number, self._failure, self._code = number, failure, code
        self._counts_reads = counts_reads
        self._handles: set[int] = set()

    def operation(self, name: str) -> bool:
        """Count an operation; raises if it fails. True if an interrupt follows it."""
        if self.has_failed and self._failure is Failure.KILL:
            raise Killed
        is_hit = self.count == self._number
        is_full = self.has_failed and self._failure is Failure.FULL and name in GROWING
        self.count += 1
        if not (is_hit or is_full):
            return False
        self.has_failed = True
        if self._failure is Failure.INTERRUPT:
            return True
        if self._failure is Failure.KILL:
            raise Killed
        raise OSError(self._code, os.strerror(self._code))

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Replace the functions of `os` that reach the disk, and `io.open`."""
        names = CHANGES + ("truncate", "unlink") + (READS if self._counts_reads else ())
        for name in names:
            patch.setattr(os, name, self._counted(name, getattr(os, name)))
        patch.setattr(os, "write", self._write(os.write))
        patch.setattr(os, "open", self._open(os.open))
        patch.setattr(os, "close", self._close(os.close))
        patch.setattr(io, "open", self._open_stream(io.open))

    def release(self) -> None:
        """Close what a killed process held, as the system does."""
        for handle in self._handles if self._failure is Failure.KILL else ():
            os.close(handle)

    def _counted(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            is_interrupted, result = self.operation(name), None
            try:
                result = original(*arguments, **options)
            finally:
                if is_interrupted:
                    if isinstance(result, io.IOBase):
                        result.close()
                    raise KeyboardInterrupt
            return result

        return call

    def _write(self, original: Callable[[int, Any], int]) -> Callable[[int, Any], int]:
        half = self._counted("write", original)

        def write(handle: int, content: Any) -> int:
            written: int = half(handle, memoryview(content)[: len(content) // 2])
            rest: int = half(handle, memoryview(content)[written:])
            return written + rest

        return write

    def _open(self, original: Callable[..., int]) -> Callable[..., int]:
        counted = self._counted("open", original)

        def opened(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
            is_counted = self._counts_reads or flags & (os.O_CREAT | os.O_TRUNC)
            function = counted if is_counted else original
            handle: int = function(path, flags, *arguments, **options)
            self._handles.add(handle)
            return handle

        return opened

    def _close(self, original: Callable[[int], None]) -> Callable[[int], None]:
        def close(handle: int) -> None:
            self._handles.discard(handle)
            original(handle)  # a handle is closed even if closing it reports an error
            if self._counts_reads and self.operation("close"):
                raise KeyboardInterrupt

        return close

    def _open_stream(self, original: Callable[..., Any]) -> Callable[..., Any]:
        counted = self._counted("open", original)

        def opened(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            is_counted = self._counts_reads or set(mode) & set("wax+")
            return (counted if is_counted else original)(file, mode, *arguments, **options)

        return opened


@contextmanager
def injected(injector: Injector) -> Iterator[Injector]:
    """Let an operation of the work inside fail."""
    with suppress(Killed), pytest.MonkeyPatch.context() as patch:
        injector.install(patch)
        yield injector
    injector.release()


def killed_at(number: int) -> AbstractContextManager[Injector]:
    """End the work inside at an operation that changes the disk, as SIGKILL would."""
    return injected(Injector(number))


def failing_at(number: int, code: int = errno.ENOSPC) -> AbstractContextManager[Injector]:
    """Let one operation that changes the disk fail with an error."""
    return injected(Injector(number, Failure.ERROR, code=code))
