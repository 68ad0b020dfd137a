"""Simulated failures: of the disk, and of the process that writes to it, at any operation."""

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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


class Injector:
    """Counts the operations that change the disk and lets the one of a given number fail.

    Operations are creating, opening for writing, writing, syncing, truncating, linking, renaming
    and removing. A write counts twice: before it, and when half of its bytes are written.

    Parameters
    ----------
    number
        Operation that fails, from 0.
    code
        Error number of a disk that fails once. Default: the process is killed, so every later
        operation fails too, and the handles that it holds are closed.
    """

    def __init__(self, number: int, code: int | None = None) -> None:
        self.has_failed = False
        self._number, self._code = number, code
        self._handles: set[int] = set()

    def operation(self) -> None:
        """Count an operation; raises if it fails."""
        if self.has_failed and self._code is None:
            raise Killed
        self._number -= 1
        if self._number == -1:
            self.has_failed = True
            if self._code is None:
                raise Killed
            raise OSError(self._code, os.strerror(self._code))

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Replace the functions of `os` that change the disk, and `io.open`."""
        for name in ("fsync", "ftruncate", "truncate", "link", "rename", "replace", "unlink"):
            patch.setattr(os, name, self._counted(getattr(os, name)))
        for name in ("remove", "mkdir", "rmdir"):
            patch.setattr(os, name, self._counted(getattr(os, name)))
        patch.setattr(os, "write", self._write(os.write))
        patch.setattr(os, "open", self._open(os.open))
        patch.setattr(os, "close", self._close(os.close))
        patch.setattr(io, "open", self._open_stream(io.open))

    def release(self) -> None:
        """Close what a killed process held, as the system does."""
        for handle in self._handles if self._code is None else ():
            os.close(handle)

    def _counted(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self.operation()
            return original(*arguments, **options)

        return call

    def _write(self, original: Callable[[int, Any], int]) -> Callable[[int, Any], int]:
        def write(handle: int, content: Any) -> int:
            self.operation()
            written = original(handle, memoryview(content)[: len(content) // 2])
            self.operation()
            return written + original(handle, memoryview(content)[written:])

        return write

    def _open(self, original: Callable[..., int]) -> Callable[..., int]:
        def opened(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
            if flags & (os.O_CREAT | os.O_TRUNC):
                self.operation()
            handle = original(path, flags, *arguments, **options)
            self._handles.add(handle)
            return handle

        return opened

    def _close(self, original: Callable[[int], None]) -> Callable[[int], None]:
        def close(handle: int) -> None:
            self._handles.discard(handle)
            original(handle)

        return close

    def _open_stream(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def opened(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            if set(mode) & set("wax+"):
                self.operation()
            return original(file, mode, *arguments, **options)

        return opened


@contextmanager
def killed_at(number: int) -> Iterator[Injector]:
    """End the work inside at an operation that changes the disk, as SIGKILL would."""
    injector = Injector(number)
    with suppress(Killed), pytest.MonkeyPatch.context() as patch:
        injector.install(patch)
        yield injector
    injector.release()


@contextmanager
def failing_at(number: int, code: int = errno.ENOSPC) -> Iterator[Injector]:
    """Let one operation that changes the disk fail with an error."""
    injector = Injector(number, code)
    with pytest.MonkeyPatch.context() as patch:
        injector.install(patch)
        yield injector
