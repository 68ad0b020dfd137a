"""Start-up time of commands and imports, compared with `python` alone and with a small program.

The program has two commands and uses typer, as Taciturn does. Best of several interleaved rounds,
each in a separate process, with a warm file cache.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.report import Bar, Row
from benchmarks.timing import best_of

_TWO_COMMANDS = """
import typer

app = typer.Typer()

@app.command()
def one(number: int = 1) -> None:
    "First command."

@app.command()
def two(number: int = 2) -> None:
    "Second command."

app(["--help"])
"""

_TYPER = "two commands with typer, --help"

COMMANDS = {
    "python": [sys.executable, "-c", "pass"],
    _TYPER: [sys.executable, "-c", _TWO_COMMANDS],
    "import taciturn": [sys.executable, "-c", "import taciturn"],
    "taciturn --version": [str(Path(sys.executable).with_name("taciturn")), "--version"],
    "taciturn --help": [str(Path(sys.executable).with_name("taciturn")), "--help"],
}
BARS = {"import taciturn": 0.25, "taciturn --help": 0.3}
TIMES_TYPER = 1.25


def run() -> list[Row]:
    """Seconds of each, in addition to Python's own, and relative to the small program."""
    best = best_of({name: _command(name) for name in COMMANDS}, rounds=15)
    return [
        {
            "what": name,
            "s": round(time, 3),
            "beyond_python_s": round(time - best["python"], 3),
            "times_typer": round(time / best[_TYPER], 2),
        }
        for name, time in best.items()
    ]


def bars(rows: list[Row]) -> list[Bar]:
    """Maxima for start-up."""
    found = [
        Bar.at_most(f"{row['what']}, seconds", row["s"], BARS[str(row["what"])])
        for row in rows
        if row["what"] in BARS
    ]
    (ratio,) = (row["times_typer"] for row in rows if row["what"] == "taciturn --help")
    return [*found, Bar.at_most("taciturn --help, times two typer commands", ratio, TIMES_TYPER)]


def _command(name: str) -> Callable[[], object]:
    return lambda: subprocess.run(COMMANDS[name], check=True, capture_output=True)
