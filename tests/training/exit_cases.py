"""Trainings with a fault at one system call of their exit, for tests and for `make torture`.

Run as a script, `python -m tests.training.exit_cases DIR FIRST STEP` kills a process at every
STEP-th call from FIRST on that changes the disk, and resumes. Processes are forked before polars
has started its threads.
"""

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from unittest.mock import patch

from tests.faults import CHANGES, KILLED, Faults, kill


def train_with(faults: Faults, folder: Path) -> None:
    """Train with every kind of private output, and with faults from the moment of publishing."""
    from taciturn.training import publish
    from tests.training.helpers import go

    original = publish.publish

    def armed(*arguments: object) -> None:
        with faults.armed():
            original(*arguments)  # type: ignore[arg-type]  # passed through

    with known_start(), patch("taciturn.training.workspace.publish", armed):
        go(folder / "release", "paper", private=private_outputs(folder))


def resume(folder: Path) -> None:
    """Resume a training; an exit that had ended leaves nothing to resume."""
    from taciturn.errors import InvalidDocument
    from tests.training.helpers import go

    try:
        with known_start():
            go(folder / "release", "paper", private=private_outputs(folder), resume=True)
    except InvalidDocument as error:
        if "nothing is left to resume" not in str(error):
            raise


def known_start() -> AbstractContextManager[object]:
    """Let users start from known profiles, so that all trainings release the same values."""
    return patch("taciturn.mechanisms.run_folder.secrets.randbits", lambda bits: 1)


def private_outputs(folder: Path) -> dict[str, object]:
    return {
        "private_items": folder / "items",
        "users_out": "pseudonyms",
        "pseudonyms": folder / "names",
    }


def outcome(folder: Path) -> dict[str, object]:
    """Everything that a finished training leaves, but for the random name of its run."""
    from taciturn._internal import strict_json

    release = folder / "release"
    document = strict_json.read(release / "certificate.json")
    document["certificate"]["ledger"].pop("run")
    return {
        "left": sorted(path.name for path in folder.iterdir()),
        "released": sorted(path.name for path in release.iterdir()),
        "certificate": document,
        "tables": [(release / "users.parquet").read_bytes()],
        "private": [(folder / name).read_bytes() for name in ("items", "names")],
        "modes": [(folder / name).stat().st_mode & 0o777 for name in ("items", "names")],
    }


def _forked(work: Callable[[], None]) -> int:
    """Exit code of a child process that does some work."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(base: Path, first: int, step: int) -> int:
    """Kill at every `step`-th call until a training ends before its kill; number of kills."""
    number, kills = first, 0
    while True:
        folder = base / str(number)
        folder.mkdir(parents=True)
        code = _forked(partial(train_with, Faults(at=number, fault=kill, counted=CHANGES), folder))
        if code == 0:
            return kills
        if code != KILLED or _forked(partial(resume, folder)) != 0:
            raise SystemExit(f"call {number} ended with {code}, or was not resumed")
        number, kills = number + step, kills + 1


if __name__ == "__main__":
    import taciturn.training.publish  # imported once, before the forks
    import taciturn.training.train  # noqa: F401

    done = main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    sys.stdout.write(f"{done}\n")
