"""Shared part of all scripts: SCRIPT FOLDER RANK THREADS PASSES REGULARIZATION.

FOLDER has train.npz and test.npz, each with arrays user, item, rating, shape and scale. The last
line a script prints is a JSON object: after how many passes it looked, the seconds of training
until then, the held-out RMSE, and the memory before training and at the peak.
"""

import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

SEED = 0
_PIECE = 2**13


@dataclass(frozen=True)
class Task:
    """Data and settings given on the command line."""

    train: dict[str, Any]
    test: dict[str, Any]
    rank: int
    threads: int
    passes: int
    regularization: float

    @classmethod
    def read(cls) -> "Task":
        """Return the task on the command line, its data read."""
        folder, rank, threads, passes, regularization = sys.argv[1:]
        train, test = (dict(np.load(Path(folder) / f"{name}.npz")) for name in ("train", "test"))
        return cls(train, test, int(rank), int(threads), int(passes), float(regularization))


class Stopwatch:
    """Takes the time of training; it stands still while a model is judged."""

    def __init__(self, task: Task, processes: Sequence[str] = ("self",)) -> None:
        self._task, self._processes = task, processes
        self._base: float | None = None
        self._passes: list[int] = []
        self._seconds: list[float] = []
        self._rmse: list[float | None] = []

    def start(self) -> None:
        """Start at zero: a training begins, the library's own form of the data being at hand."""
        self._base = self._base or _peak_mb(self._processes)
        self._elapsed, self._from = 0.0, perf_counter()

    def lap(self, passes: int, model: Callable[[], "Factors"] | None = None) -> None:
        """Note the time after so many passes and how well the model predicts."""
        self._elapsed += perf_counter() - self._from
        self._passes.append(passes)
        self._seconds.append(self._elapsed)
        self._rmse.append(model().rmse(self._task.test) if model else None)
        self._from = perf_counter()

    def report(self, distribution: str) -> None:
        """Print what was measured of a package."""
        found = {
            "passes": self._passes,
            "seconds": self._seconds,
            "rmse": self._rmse,
            "base_mb": self._base,
            "peak_mb": _peak_mb(self._processes),
            "version": version(distribution),
        }
        print(json.dumps(found))


@dataclass(frozen=True)
class Factors:
    """A model that predicts mean + bias of the user + bias of the item + product of profiles."""

    users: Any
    items: Any
    mean: float = 0.0
    user_biases: Any = None
    item_biases: Any = None

    def rmse(self, test: dict[str, Any]) -> float:
        """Return the root mean squared error of predictions clipped to the scale.

        In small pieces, so that it adds nothing to the peak of memory.
        """
        low, high = (float(end) for end in str(test["scale"]).split(":")[:2])
        total = 0.0
        for begin in range(0, len(test["rating"]), _PIECE):
            user, item, rating = (
                test[name][begin : begin + _PIECE] for name in ("user", "item", "rating")
            )
            predicted = self.mean + np.einsum("nk,nk->n", self.users[user], self.items[item])
            if self.user_biases is not None:
                predicted += self.user_biases[user] + self.item_biases[item]
            total += float(np.sum((np.clip(predicted, low, high) - rating) ** 2))
        return math.sqrt(total / len(test["rating"]))


def _peak_mb(processes: Sequence[str]) -> float | None:
    """Return the memory of processes at their peaks in MB; None where the system does not tell.

    Not from getrusage, whose peak includes that of the process which started this one.
    """
    total = 0.0
    for process in processes:
        status = Path("/proc") / process / "status"
        if not status.exists():
            return None
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        total += int(lines["VmHWM"].split()[0]) / 1024
    return total
