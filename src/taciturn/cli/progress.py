"""Progress bars on stderr. They show counts and time, never private values."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from taciturn.cli.console import note


@contextmanager
def bytes_bar(title: str) -> Iterator[Callable[[int, int | None], None]]:
    """Yield a function that takes the bytes done and in total; draws nothing until called."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, visible=False)

    def progress(done: int, total: int | None) -> None:
        bar.start()
        bar.update(task, completed=done, total=total, visible=True)

    try:
        yield progress
    finally:
        bar.stop()


@contextmanager
def iterations_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that takes the iterations done and in total; shows rate and time left.

    Draws nothing until called. Without a terminal, prints a line every `LINE_SECONDS`.
    """
    if not sys.stderr.isatty():
        said = monotonic()

        def line(done: int, total: int) -> None:
            nonlocal said
            if monotonic() - said > LINE_SECONDS and done < total:
                said = monotonic()
                note(f"{title}: {done} of {total}")

        yield line
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:.1f}/s" if task.speed else "")

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), Rate())
    bar = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=None)

    def progress(done: int, total: int) -> None:
        bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield progress
    finally:
        bar.stop()


LINE_SECONDS = 30.0
"""Seconds between progress lines when there is no terminal."""


@contextmanager
def cells_bar(title: str) -> Iterator[Callable[[int, int, float], None]]:
    """Yield a function that takes the cells done, in total, and the fraction of the work done.

    Without a terminal, prints a line every `LINE_SECONDS`: such work may take hours.
    """
    start = said = monotonic()
    first: list[float] = []

    def left(share: float) -> str:
        first[:] = first or [share]
        done = share - first[0]
        if done <= 0 or share >= 1:
            return ""
        return f"about {duration((monotonic() - start) * (1 - share) / done)} left"

    if not sys.stderr.isatty():

        def line(done: int, total: int, share: float) -> None:
            nonlocal said
            if share == 0:
                note(f"{title}: {done} of {total} already done")
            remaining = left(share)
            if remaining and monotonic() - said > LINE_SECONDS:
                said = monotonic()
                note(f"{title}: {done} of {total}, {remaining}")

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TimeElapsedColumn

    columns = ("{task.description}", BarColumn(), "{task.fields[count]}", TimeElapsedColumn())
    bar = Progress(*columns, "{task.fields[left]}", console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=1.0, count="", left="")

    def progress(done: int, total: int, share: float) -> None:
        if share >= 1:
            bar.stop()  # the next stage may have its own bar
            return
        bar.start()
        bar.update(task, completed=share, count=f"{done}/{total}", left=left(share))

    try:
        yield progress
    finally:
        bar.stop()


def duration(seconds: float) -> str:
    """Time span as text, in seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
