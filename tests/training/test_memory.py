"""Memory of a training: estimated, limited, and running out."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from taciturn._internal import memory
from taciturn.data.synthetic import synthetic_ratings
from taciturn.errors import OutOfMemory, TaciturnError
from taciturn.release.verify import verify_release
from taciturn.solvers.catalog import make_solver
from taciturn.solvers.loop import Training
from taciturn.training.memory import estimated_memory
from taciturn.training.outputs import run_folder
from tests.commands import MAIN
from tests.conftest import Command
from tests.training.helpers import go

MIB = 2**20

TRAIN = ["--scale", "1:5", "--epsilon", "10", "--solver", "gradient", "--unit", "value"]


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    rows = [f"{user},{item},{1 + (user + item) % 5}" for user in range(20) for item in range(9)]
    file = tmp_path / "ratings.csv"
    file.write_text("\n".join(["user_id,item_id,rating", *rows, ""]))
    return file


def limited(command: list[str], kilobytes: int) -> subprocess.CompletedProcess[str]:
    """Run a command in a shell with a limit on its address space."""
    return subprocess.run(
        ["/bin/sh", "-c", f'ulimit -v {kilobytes}; exec "$@"', "sh", *command],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_training_that_does_not_fit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tight = memory.Limit("control group", 1000 * MIB, 990 * MIB)
    monkeypatch.setattr(memory, "limits", lambda: [tight])
    with pytest.raises(OutOfMemory, match="training needs about 1.2 GB .* is 1 GB") as caught:
        go(tmp_path / "release")
    assert isinstance(caught.value, TaciturnError) and isinstance(caught.value, MemoryError)
    assert "owner-only" in str(caught.value) and not list(tmp_path.iterdir())
    monkeypatch.setattr(memory, "limits", lambda: [memory.Limit("all", 2**40, 990 * MIB)])
    go(tmp_path / "release")


def test_the_estimate_grows_with_every_size() -> None:
    solver = make_solver("als", unit="rating")
    small, large = (synthetic_ratings(size) for size in ("10k", "100k"))
    assert estimated_memory(small, solver) < estimated_memory(large, solver)
    wide = make_solver("als", unit="rating", factors=60)
    assert estimated_memory(small, solver) < estimated_memory(small, wide)
    value = make_solver("als", unit="value")
    assert estimated_memory(small, solver) < estimated_memory(small, value)


def test_limits_are_read_from_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [limit.size for limit in memory.limits() if limit.name == "memory of this machine"]
    assert all(limit.used > 0 for limit in memory.limits())
    (tmp_path / "memory").mkdir()
    for file, text, size in (
        ("memory.max", "max\n", None),
        ("memory.max", "5000\n", 5000),
        ("memory/memory.limit_in_bytes", "9223372036854771712\n", None),
        ("memory/memory.limit_in_bytes", "7000\n", 7000),
    ):
        (tmp_path / file).write_text(text)
        assert memory._size_in(tmp_path / file) == size
    assert memory._size_in(tmp_path / "none") is None


MEASURE = """
import gc, json, re, sys, tempfile
from pathlib import Path
import numpy as np
import taciturn
from taciturn.solvers.catalog import make_solver
from taciturn.training.memory import estimated_memory

def status(name):
    return int(re.search(name + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024

users, items, count, name, unit, settings = json.loads(sys.argv[1])
pairs = np.unique(np.random.default_rng(0).integers(0, users * items, count))
ratings = taciturn.load((pairs // items, pairs % items, pairs % 5 + 1.0), scale="1:5:1")
del pairs
gc.collect()
Path("/proc/self/clear_refs").write_text("5")  # begin the peak anew
before, solver = status("VmRSS"), make_solver(name, unit=unit, **settings)
with tempfile.TemporaryDirectory() as folder:
    budget = taciturn.Budget.from_epsilon(10, delta=1e-5)
    taciturn.train(ratings, solver, budget, output=Path(folder) / "release")
print(json.dumps([estimated_memory(ratings, solver), status("VmHWM") - before]))
"""

CASES: list[tuple[int, int, int, str, str, dict[str, Any]]] = [
    (1000, 500, 50_000, "als", "value", {"iterations": 2}),
    (2000, 1000, 300_000, "als", "rating", {}),
    (100_000, 500, 300_000, "als", "rating", {}),
    (20_000, 2000, 400_000, "als", "user", {}),
    (50_000, 500, 300_000, "gradient", "value", {"iterations": 3}),
]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are Linux's")
@pytest.mark.parametrize("case", CASES)
def test_the_estimate_bounds_the_peak_of_a_training(case: tuple[Any, ...]) -> None:
    """Not far above it either: a refusal should be one that was needed."""
    result = subprocess.run(
        [sys.executable, "-c", MEASURE, json.dumps(case)],
        capture_output=True,
        text=True,
        check=True,
    )
    estimate, measured = json.loads(result.stdout)
    assert measured <= estimate <= 3 * measured + 128 * MIB


@pytest.mark.slow
@pytest.mark.parametrize("kilobytes", [100_000, 500_000, 1_000_000])
def test_too_little_memory_to_start_is_one_line(ratings: Path, kilobytes: int) -> None:
    output = ratings.parent / "release"
    result = limited([*MAIN, "train", str(ratings), *TRAIN, "-o", str(output)], kilobytes)
    assert result.returncode == 2 and result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: Taciturn needs about ") and "(ulimit -v)" in line
    assert not output.exists()
    assert limited([*MAIN, "--version"], 100_000).returncode == 0


def test_memory_that_runs_out_is_one_line_and_resumes(
    taciturn: Command, ratings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, release = ratings.parent / "release", Training._release
    calls: list[int] = []

    def failing(self: Any, number: int) -> Any:
        calls.append(number)
        if len(calls) == 3:
            raise MemoryError
        return release(self, number)

    command = ["train", ratings, *TRAIN, "--iterations", "3", "-o", output]
    monkeypatch.setattr(Training, "_release", failing)
    result = taciturn(*command)
    assert result.returncode == 2 and run_folder(output).is_dir()
    *notes, error = result.stderr.splitlines()
    assert error.startswith("error: memory ran out") and "--resume" in notes[-1]
    monkeypatch.setattr(Training, "_release", release)
    assert taciturn(*command, "--resume").returncode == 0
    assert verify_release(output).passed and not run_folder(output).exists()


ABORT = """
import sys
from pathlib import Path
import polars as pl
from tests.training.helpers import RATINGS, BUDGET, small_solver
from taciturn.training.train import train

def progress(done, total):
    if done == 3 and sys.argv[2] == "abort":
        pl.zeros(2**34, dtype=pl.Float64, eager=True)  # 128 GiB: Rust ends the process

train(
    RATINGS,
    small_solver("gradient", iterations=6),
    BUDGET,
    output=Path(sys.argv[1]),
    resume=sys.argv[2] == "resume",
    progress=progress,
)
"""


@pytest.mark.slow
def test_a_run_resumes_after_an_abort_in_a_library(tmp_path: Path) -> None:
    """Rust aborts if memory cannot be allocated, and no handler can prevent it."""
    output = tmp_path / "release"
    script = [sys.executable, "-c", ABORT, str(output)]
    aborted = limited([*script, "abort"], 4_000_000)
    assert aborted.returncode == -6 or "memory allocation" in aborted.stderr, aborted.stderr
    assert run_folder(output).is_dir() and not output.exists()
    resumed = limited([*script, "resume"], 4_000_000)
    assert resumed.returncode == 0, resumed.stderr
    assert verify_release(output).passed and not run_folder(output).exists()
