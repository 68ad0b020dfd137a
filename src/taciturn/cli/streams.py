"""Standard streams of the process: closed ones replaced, broken pipes recorded."""

import io
import os
import sys
from typing import Any

from taciturn.errors import OutputError


class StandardFile(io.RawIOBase):
    """File behind stdout or stderr that discards all output after a failed write.

    A broken pipe is recorded and raises nothing, so that a command finishes its work. Any other
    failure raises an `OutputError` once. In both cases nothing is left in a buffer that could fail
    again when the interpreter shuts down.

    Attributes
    ----------
    is_broken
        True if the reader of a pipe was gone before the output ended.
    """

    def __init__(self, handle: int) -> None:
        self._handle, self._has_failed = handle, False
        self.is_broken = False

    def fileno(self) -> int:
        """File descriptor."""
        return self._handle

    def isatty(self) -> bool:
        """True for a terminal."""
        return os.isatty(self._handle)

    def writable(self) -> bool:
        """True: output only."""
        return True

    def write(self, content: Any, /) -> int:
        """Number of bytes written, or discarded after a failure."""
        size = len(memoryview(content).cast("B"))
        if self._has_failed:
            return size
        try:
            return os.write(self._handle, content)
        except BrokenPipeError:
            self._has_failed = self.is_broken = True
            return size
        except OSError as error:
            self._has_failed = True
            raise OutputError(f"cannot write the output: {error.strerror}") from None


def replace_streams() -> StandardFile:
    """Make stdout and stderr safe to write to, and return the file behind stdout.

    A descriptor that was closed before the start is opened on the null device. Otherwise the next
    file that the process opens would take its number, and messages would be written to that file.
    """
    for handle in range(3):
        try:
            os.fstat(handle)
        except OSError:
            # The lowest free descriptor is this one.
            os.open(os.devnull, os.O_RDWR)
    output = StandardFile(1)
    sys.stdout = _text(output, sys.stdout)
    sys.stderr = _text(StandardFile(2), sys.stderr)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BytesIO())
    return output


def _text(file: StandardFile, former: Any) -> io.TextIOWrapper:
    """Text stream on a file, with the encoding and buffering of a former stream."""
    return io.TextIOWrapper(
        io.BufferedWriter(file),
        encoding=getattr(former, "encoding", "utf-8"),
        # Characters that the terminal cannot encode are replaced.
        errors="replace",
        line_buffering=file.isatty() or getattr(former, "line_buffering", False),
        write_through=getattr(former, "write_through", False),
    )
