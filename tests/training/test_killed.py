"""Trainings that are killed, and the memory of a training, in separate processes."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from taciturn.accounting.certificate import read_ledger
from taciturn.accounting.journal import read_journal
from taciturn.training.outputs import run_folder

SCRIPT = """
import sys
from pathlib import Path
from taciturn.data.synthetic import synthetic_ratings
from taciturn.accounting.budget import Budget
from taciturn.solvers import loop
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


def kill_once(output: Path, delay: float) -> bool:
    """Run the script and kill it after a while; return whether it ended before that."""
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(output)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            return process.wait(timeout=delay) == 0
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            return False
        finally:
            assert process.returncode in (0, -signal.SIGKILL)


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path: Path) -> None:
    """50 kills: what was spent is always on disk, and the resumed run gives the same result."""
    chance = random.Random(1)  # noqa: S311 only when to kill
    kills, number = 0, 0
    expected_path = tmp_path / "expected"
    assert kill_once(expected_path, 120)
    expected = pl.read_parquet(expected_path / "users.parquet")
    while kills < 50:
        output = tmp_path / f"run-{number}"
        number += 1
        spent = 0
        while not kill_once(output, chance.uniform(0.0, 0.9)):
            kills += 1
            folder = run_folder(output)
            if not (folder / "key.json").exists():
                continue  # not begun yet, or ended
            recorded = len(read_journal(folder / "ledger.jsonl").events)
            uses = (folder / "uses.jsonl").read_bytes().split(b"\n")[1:-1]
            used = sum(len(json.loads(line)["uses"]) for line in uses)
            assert recorded >= used  # noise is drawn only for what is recorded
            assert recorded >= spent  # and nothing that was spent is forgotten
            spent = recorded
        assert pl.read_parquet(output / "users.parquet").equals(expected)
        assert len(read_ledger(output).events) == 500
        assert not run_folder(output).exists()


@pytest.mark.slow
@pytest.mark.parametrize("options", ["--solver als", "--solver gradient --factors 20"])
def test_memory_on_movielens(real_set: Any, tmp_path: Path, options: str) -> None:
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
