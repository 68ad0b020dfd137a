"""Progress bars on stderr, for people only: they show counts and time, never private values."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bytes_bar(title: str) -> Iterator[Callable[[int, int | None], None]]:
    """Yield a function to call with the bytes done and in all; draws nothing until it is called."""
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
    """Yield a function to call with the iterations done and in all: count, rate and time left."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
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
    with Progress(
        *columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True
    ) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
