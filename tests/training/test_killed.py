"""Trainings that are killed, and the memory of a training, in separate processes."""

import json
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from taciturn.accounting.certificate import read_ledger
from taciturn.accounting.journal import read_journal
from taciturn.errors import NoiseReuse
from taciturn.solvers import loop
from taciturn.solvers.solver import Solver
from taciturn.training.outputs import run_folder
from tests.failures import killed_at
from tests.solvers.helpers import small_solver
from tests.training.helpers import go

SCRIPT = """
import sys
from pathlib import Path
from taciturn.data.synthetic import synthetic_ratings
from taciturn.accounting.budget import Budget
from taciturn.errors import NoiseReuse
from taciturn.solvers import loop
from taciturn.solvers.solver import Solver
from taciturn.solvers.catalog import make_solver
from taciturn.training.outputs import run_folder
from taciturn.training.train import train
from tests.known_noise import known_noise

loop.CHECKPOINT_SECONDS = 0.05
output = Path(sys.argv[1])
resume = run_folder(output).exists()
sys.stdout.write("ready\\n")
sys.stdout.flush()
if output.exists() and not resume:
    sys.exit()  # killed when all was done
with known_noise(5):
    train(
        synthetic_ratings("10k"),
        make_solver("gradient", factors=3, iterations=250),
        Budget.from_epsilon(10, 1e-5),
        output=output,
        resume=resume,
    )
"""


def ended_within(seconds: float, output: Path) -> bool:
    """Run the script and kill it after a while; return whether it ended before that."""
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(output)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    assert process.returncode in (0, -signal.SIGKILL)
    return process.returncode == 0


def recorded_events(output: Path) -> int:
    """Events in the run folder of a training; raises if noise was used for more than those."""
    folder = run_folder(output)
    if not (folder / "key.json").exists():
        return 0
    recorded = len(read_journal(folder / "ledger.jsonl").events)
    uses = (folder / "uses.jsonl").read_bytes().split(b"\n")[1:-1]
    assert sum(len(json.loads(line)["uses"]) for line in uses) <= recorded
    return recorded


@pytest.mark.slow
def test_a_training_killed_at_any_operation_resumes_to_the_same_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a checkpoint after every step."""
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)
    solver = small_solver("gradient", iterations=2)
    expected = released_users(go(tmp_path / "expected", solver=solver).release)
    for number in count():
        output = tmp_path / str(number)
        with killed_at(number) as process:
            go(output, solver=solver)
        recorded = recorded_events(output)
        finish(output, solver)
        assert released_users(output).equals(expected)
        assert len(read_ledger(output).events) == 4 >= recorded
        assert not run_folder(output).exists()
        if not process.has_failed:
            break
    assert number > 80  # steps, checkpoints, the release, and erasing the key


def finish(output: Path, solver: Solver) -> None:
    """Start or resume a training that was killed, unless it had ended.

    If the key was being overwritten, a first attempt erases it and a second one tidies up.
    """
    if not run_folder(output).exists():
        if not output.exists():
            go(output, solver=solver)
        return
    try:
        go(output, solver=solver, resume=True)
    except NoiseReuse as error:
        assert output.exists() and "its noise key erased" in str(error)
        go(output, solver=solver, resume=True)


def released_users(release: Path) -> pl.DataFrame:
    return pl.read_parquet(release / "users.parquet")


@pytest.mark.slow
def test_a_killed_process_resumes_to_the_same_release(tmp_path: Path) -> None:
    """Real kills, early and late."""
    assert ended_within(120, tmp_path / "expected")
    expected = released_users(tmp_path / "expected")
    output, spent = tmp_path / "run", 0
    for delay in (0.05, 0.3, 0.6):
        ended_within(delay, output)
        assert recorded_events(output) >= spent or output.exists()
        spent = recorded_events(output)
    assert ended_within(120, output)
    assert released_users(output).equals(expected)
    assert len(read_ledger(output).events) == 500
    assert not run_folder(output).exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", ["--unit value", "--unit rating", "--solver gradient --unit value --factors 20"]
)
def test_memory_on_movielens_is_below_400_megabytes(
    real_set: Any, tmp_path: Path, options: str
) -> None:
    real_set("ml-1m.zip")
    code = (
        "import sys\n"
        "from taciturn.cli.app import run\n"
        "from taciturn.training.preview import peak_memory\n"
        "assert run(sys.argv[1:]) == 0\n"
        "print(peak_memory())\n"
    )
    arguments = ["train", "ml-1m", "-o", str(tmp_path / "r"), "--epsilon", "10", *options.split()]
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert int(result.stdout.splitlines()[-1]) < 400e6
