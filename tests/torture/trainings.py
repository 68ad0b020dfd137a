"""Small trainings that write the same files every time, to interrupt and to resume."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from taciturn._internal.progress import silent
from taciturn.errors import NoiseReuse
from taciturn.solvers import loop
from taciturn.training.outputs import Outputs, run_folder
from taciturn.training.train import train
from tests.failures import Injector, injected
from tests.solvers.helpers import BUDGET, random_ratings, small_solver
from tests.torture.originals import repeatable

RATINGS = random_ratings(1, users=12, items=8)

SOLVERS: dict[str, tuple[str, str]] = {
    "paper": ("paper", "value"),
    "value": ("als", "value"),
    "rating": ("als", "rating"),
    "user": ("als", "user"),
    "gradient": ("gradient", "value"),
}
"""Solver and unit of each configuration."""

Contents = dict[str, bytes | None]


def outputs(name: str, folder: Path) -> Outputs:
    """Outputs of a configuration, with pseudonyms and private files where it has them."""
    private: dict[str, Any] = {}
    if name == "paper":
        private["private_items"] = folder / "items"
    if name in ("paper", "value"):
        private |= {"users_out": "pseudonyms", "pseudonyms": folder / "names"}
    return Outputs(release=folder / "release", **private)


def train_in(
    folder: Path,
    name: str,
    *,
    resume: bool = False,
    progress: Callable[[int, int], None] = silent,
) -> None:
    """Train with a checkpoint after every step."""
    solver = small_solver(SOLVERS[name][0], SOLVERS[name][1], iterations=2)  # type: ignore[arg-type]
    with repeatable(), patch.object(loop, "CHECKPOINT_SECONDS", -1.0):
        train(
            RATINGS,
            solver,
            BUDGET,
            output=outputs(name, folder),
            threads=1,
            resume=resume,
            progress=progress,
        )


def train_failing(folder: Path, name: str, injector: Injector, *, resume: bool = False) -> None:
    """Train in an empty folder, or resume, while a system call fails."""
    if not resume:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    with injected(injector):
        train_in(folder, name, resume=resume)


def train_killed(folder: Path, name: str, number: int | None) -> Injector:
    """Train in an empty folder, killed at an operation that changes the disk."""
    injector = Injector(number)
    train_failing(folder, name, injector)
    return injector


def finish(folder: Path, name: str) -> None:
    """Start or resume a training that was killed, unless it had ended."""
    release = folder / "release"
    if not run_folder(release).exists():
        if not release.exists():
            train_in(folder, name)
        return
    try:
        train_in(folder, name, resume=True)
    except NoiseReuse as error:
        # The key was being overwritten: this attempt erased it, and another one tidies up.
        if not release.exists() or "its noise key erased" not in str(error):
            raise
        train_in(folder, name, resume=True)


def contents(folder: Path) -> Contents:
    """Every file in a folder with its bytes, and every folder."""
    found: Contents = {}
    for path in sorted(folder.rglob("*")):
        found[str(path.relative_to(folder))] = None if path.is_dir() else path.read_bytes()
    return found


def restore(folder: Path, files: Contents) -> None:
    """Let a folder have exactly these files."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        path = folder / name
        if content is None:
            path.mkdir(exist_ok=True)
        else:
            path.parent.mkdir(exist_ok=True)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
            os.write(handle, content)
            os.close(handle)
