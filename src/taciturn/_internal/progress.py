"""Progress of a computation for Python callers: counts and time, never private values."""

import sys
from collections.abc import Callable
from time import monotonic

from taciturn._internal import validate
from taciturn.errors import InvalidParameter

Report = Callable[[int, int], None]
"""Takes the number of finished steps and the total."""

Progress = Report | bool
"""True draws a bar on stderr, False draws nothing."""

_WIDTH = 30
_REDRAW_SECONDS, _LINE_SECONDS = 0.1, 30.0
"""Minimum time between two states of a bar, and between two lines where no bar can be drawn."""


def silent(done: int, total: int) -> None:
    """Report that shows nothing."""


def as_report(progress: Progress, title: str) -> Report:
    """Function that reports progress: the given one, a bar, or one that shows nothing."""
    if isinstance(progress, bool):
        return Bar(title) if progress else silent
    if not callable(progress):
        raise InvalidParameter(
            f"progress must be True or a function of two numbers, got {validate.shown(progress)}"
        )
    return progress


class Bar:
    """One line on stderr that is drawn again and again, in a terminal or a notebook.

    Elsewhere, such as in a log file, a new line appears every `_LINE_SECONDS`.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._start = self._drawn = monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Draw `done` of `total`, unless it was drawn a moment ago."""
        if done == 0:
            self._start = monotonic()
        can_redraw = sys.stderr.isatty() or "ipykernel" in sys.modules
        pause = _REDRAW_SECONDS if can_redraw else _LINE_SECONDS
        is_last = done >= total and can_redraw
        if monotonic() - self._drawn < pause and not is_last:
            return
        self._drawn = monotonic()
        elapsed = monotonic() - self._start
        left = f", {elapsed * (total - done) / done:.0f} s left" if 0 < done < total else ""
        bar = "#" * (_WIDTH * done // max(1, total))
        line = f"{self._title} [{bar:-<{_WIDTH}}] {done} of {total}, {elapsed:.0f} s{left}"
        end = "\n" if is_last or not can_redraw else ""
        sys.stderr.write(f"\r{line:<79}{end}" if can_redraw else line + end)
        sys.stderr.flush()
