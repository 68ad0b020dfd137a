"""Interrupts (Ctrl-C), delivered outside imports only."""

import _thread
import time
from types import FrameType

_PAUSE = 0.01
"""Seconds between attempts to deliver an interrupt that came during an import."""

_IMPORT = "<frozen importlib._bootstrap>"


def raise_outside_imports(number: int, frame: FrameType | None) -> None:
    """Signal handler that raises `KeyboardInterrupt`, during an import as soon as it is over.

    Inside an import the exception may be printed and dropped by a callback of the interpreter, or
    an extension module may turn it into another one.
    """
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT:
            # A handler must not take locks, so this is no `threading.Timer`.
            _thread.start_new_thread(_again, ())
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _again() -> None:
    time.sleep(_PAUSE)
    _thread.interrupt_main()
