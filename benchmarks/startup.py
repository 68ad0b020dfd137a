"""Start-up time of commands and imports, compared with `python` alone.

Best of several interleaved rounds, each in a separate process, with a warm file cache.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.report import Bar, Row
from benchmarks.timing import best_of

COMMANDS = {
    "python": [sys.executable, "-c", "pass"],
    "import taciturn": [sys.executable, "-c", "import taciturn"],
    "taciturn --version": [str(Path(sys.executable).with_name("taciturn")), "--version"],
    "taciturn --help": [str(Path(sys.executable).with_name("taciturn")), "--help"],
}
BARS = {"import taciturn": 0.25, "taciturn --help": 0.3}


def run() -> list[Row]:
    """Seconds of each, and in addition to Python's own."""
    best = best_of({name: _command(name) for name in COMMANDS}, rounds=15)
    return [
        {"what": name, "s": round(time, 3), "beyond_python_s": round(time - best["python"], 3)}
        for name, time in best.items()
    ]


def bars(rows: list[Row]) -> list[Bar]:
    """Maxima for start-up."""
    return [
        Bar.at_most(f"{row['what']}, seconds", row["s"], BARS[str(row["what"])])
        for row in rows
        if row["what"] in BARS
    ]


def _command(name: str) -> Callable[[], object]:
    return lambda: subprocess.run(COMMANDS[name], check=True, capture_output=True)
