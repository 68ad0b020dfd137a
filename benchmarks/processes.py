"""Runs steps in separate processes and reports the peak memory of each.

`getrusage` would include the memory of the parent process, so Linux's VmHWM is used.
"""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

_PEAK = """
def peak():
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))

def forget_peak():
    with open("/proc/self/clear_refs", "w") as order:
        order.write("5")
"""

_COMMAND = f"""
import atexit, sys
{_PEAK}
def keep(file=sys.argv.pop(1)):
    with open(file, "w") as out:
        out.write(str(peak()))

atexit.register(keep)
from taciturn.cli import main
main()
"""


@dataclass(frozen=True, kw_only=True)
class Done:
    """JSON output of a process, its seconds and its peak memory in bytes."""

    found: Any
    seconds: float
    peak: int


def python(code: str, *arguments: str) -> Any:
    """JSON output of code; `peak()` is its peak memory in bytes so far.

    `forget_peak()` resets the peak to the current memory.
    """
    return json.loads(_output(f"{_PEAK}\n{code}", *arguments))


def taciturn(*arguments: str) -> Done:
    """Run a command of taciturn that prints JSON."""
    with tempfile.NamedTemporaryFile() as peak_file:
        start = perf_counter()
        found = json.loads(_output(_COMMAND, peak_file.name, *arguments))
        seconds = perf_counter() - start
        return Done(found=found, seconds=seconds, peak=int(Path(peak_file.name).read_text()))


def _output(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"a step ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout
