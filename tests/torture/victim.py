"""Training to be killed: the command line with fixed keys, so that it always writes the same."""

import os
import signal
import traceback
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path

from taciturn.cli.app import run
from taciturn.cli.interrupts import raise_outside_imports
from taciturn.cli.start import INTERRUPTED
from taciturn.solvers import loop
from tests.torture.originals import repeatable

UNEXPECTED = 70
"""Exit code after an exception that the command line does not expect."""

# All that a training needs is imported before it starts.
import_module("taciturn.training.job")


def main(folder: Path, log: Path, arguments: list[str], ready: Connection) -> None:
    """Run the command line in a folder, with frequent checkpoints; ends the process."""
    code = INTERRUPTED
    try:
        os.chdir(folder)
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        signal.signal(signal.SIGINT, raise_outside_imports)  # as the command itself does
        os.environ["TACITURN_DEBUG"] = "1"  # an unexpected exception is raised, not summarised
        loop.CHECKPOINT_SECONDS = 0.02
        with repeatable():
            ready.send(True)
            code = run(arguments)
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    except KeyboardInterrupt:
        pass  # outside the command, just before it began or after it ended
    except Exception:
        traceback.print_exc()
        code = UNEXPECTED
    os._exit(code)
