"""Training to be killed: the command line with fixed keys, so that it always writes the same."""

import os
import signal
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path

from taciturn.cli.app import run
from taciturn.cli.start import INTERRUPTED
from taciturn.solvers import loop
from tests.torture.originals import repeatable

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
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
        loop.CHECKPOINT_SECONDS = 0.02
        with repeatable():
            ready.send(True)
            code = run(arguments)
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    except KeyboardInterrupt:
        pass  # outside the command, just before it began or after it ended
    os._exit(code)
