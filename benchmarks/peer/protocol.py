"""Common code of all scripts. Usage: SCRIPT FOLDER RANK THREADS PASSES REGULARIZATION.

FOLDER has train.npz and test.npz, each with arrays user, item, rating, shape and scale. The last
line that a script prints is a JSON object: numbers of passes at which the model was evaluated,
seconds of training until then, held-out RMSE, and memory before training and at its peak.
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
        """Task given on the command line, with its data."""
        folder, rank, threads, passes, regularization = sys.argv[1:]
        train, test = (dict(np.load(Path(folder) / f"{name}.npz")) for name in ("train", "test"))
        return cls(train, test, int(rank), int(threads), int(passes), float(regularization))


class Stopwatch:
    """Training time; it does not run while a model is evaluated."""

    def __init__(self, task: Task, processes: Sequence[str] = ("self",)) -> None:
        self._task, self._processes = task, processes
        self._base: float | None = None
        self._passes: list[int] = []
        self._seconds: list[float] = []
        self._rmse: list[float | None] = []

    def start(self) -> None:
        """Start at zero: training begins, with the data already in the library's own form."""
        self._base = self._base or _peak_mb(self._processes)
        self._elapsed, self._from = 0.0, perf_counter()

    def lap(self, passes: int, model: Callable[[], "Factors"] | None = None) -> None:
        """Record the time and the accuracy of the model after a number of passes."""
        self._elapsed += perf_counter() - self._from
        self._passes.append(passes)
        self._seconds.append(self._elapsed)
        self._rmse.append(model().rmse(self._task.test) if model else None)
        self._from = perf_counter()

    def report(self, distribution: str) -> None:
        """Print the results of a library."""
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
    """Model that predicts mean + user bias + item bias + inner product of factors."""

    users: Any
    items: Any
    mean: float = 0.0
    user_biases: Any = None
    item_biases: Any = None

    def rmse(self, test: dict[str, Any]) -> float:
        """Root mean squared error of predictions clipped to the scale.

        Computed in small chunks, so that it does not raise the peak memory.
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
    """Peak memory of processes in MB; None where the system does not report it.

    Not from getrusage, whose peak includes that of the parent process.
    """
    total = 0.0
    for process in processes:
        status = Path("/proc") / process / "status"
        if not status.exists():
            return None
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        total += int(lines["VmHWM"].split()[0]) / 1024
    return total
