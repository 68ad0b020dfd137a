"""Forked processes: they fail at once where polars would hang, and work otherwise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from taciturn._internal import forks
from taciturn.errors import ForkedProcess

PREPARE = """
import os, sys, warnings
warnings.simplefilter("ignore")
folder = sys.argv[1]

def load():
    import taciturn
    rows = [(u, i, 1.0 + (u + i) % 5) for u in range(20) for i in range(10)]
    return taciturn.load(tuple(map(list, zip(*rows))), scale="1:5:1")

def train(name="release"):
    import taciturn
    solver, budget = taciturn.BiasSolver(), taciturn.Budget.from_epsilon(10, delta=1e-5)
    return taciturn.train(load(), solver, budget, output=f"{folder}/{name}")

def release():
    import taciturn
    return taciturn.load_release(f"{folder}/release")

def in_child(work):
    child = os.fork()
    if child == 0:
        try:
            work()
            os.write(1, b"done")
        except Exception as error:
            os.write(1, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
"""


def run(folder: Path, code: str) -> str:
    command = [sys.executable, "-c", PREPARE + code, str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a release."""
    folder = tmp_path_factory.mktemp("forks")
    run(folder, "train()")
    return folder


# What the parent does before the fork, and what the child does then.
USES = {
    "load": ("load()", "load()"),
    "train": ("load()", "train('other')"),
    "fit": ("import taciturn; given = load()", "taciturn.NonPrivateSolver().fit(given)"),
    "load_release": ("release()", "release()"),
    "verify": ("load()", "import taciturn; taciturn.verify_release(f'{folder}/release')"),
    "recommend": (
        "import taciturn; server = taciturn.Recommender(release()); server.recommend([3])",
        "server.recommend([3])",
    ),
    "predict": (
        "import taciturn; server = taciturn.Recommender(release()); server.recommend([3])",
        "server.predict([3], [2])",
    ),
    "export": (
        "from taciturn.recommend.export import Form, export_release; given = release(); load()",
        "export_release(given, Form.PARQUET, f'{folder}/exported')",
    ),
    "to_frame": ("given = load(); given.to_frame()", "given.to_frame()"),
    "polars alone": ("import polars; polars.DataFrame({'a': [2, 1]}).sort('a')", "load()"),
}

IN_QUICK = ("load", "recommend", "polars alone")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize(
    "use",
    [pytest.param(use, marks=() if use in IN_QUICK else pytest.mark.slow) for use in USES],
)
def test_a_child_of_a_process_that_used_threads_is_refused_at_once(folder: Path, use: str) -> None:
    before, after = USES[use]
    said = run(folder, f"{before}\ndef work():\n    {after}\nin_child(work)")
    assert said.startswith("ForkedProcess: ")
    assert 'get_context("spawn")' in said and 'get_context("forkserver")' in said


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize("before", ["pass", "import polars", "import taciturn; taciturn.load"])
def test_a_child_forked_before_any_use_works(folder: Path, before: str) -> None:
    said = run(folder, f"{before}\nin_child(load)\nload()\nin_child(load)")
    assert said.startswith("doneForkedProcess: ")


@pytest.mark.slow
def test_a_forkserver_and_a_spawned_process_work(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing\n"
        "import taciturn\n"
        "def work(number):\n"
        "    return len(taciturn.load(([1, 2], [1, 1], [3.0, number]), scale='1:5').to_frame())\n"
        "if __name__ == '__main__':\n"
        "    work(1.0)\n"
        "    for method in ('spawn', 'forkserver'):\n"
        "        with multiprocessing.get_context(method).Pool(1) as pool:\n"
        "            assert pool.map(work, [1.0, 2.0]) == [2, 2]\n"
    )
    subprocess.run([sys.executable, script], check=True, timeout=60)


def test_without_proc_the_parents_own_use_is_remembered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(forks, "_TASKS", tmp_path / "missing")
    monkeypatch.setattr(forks, "_checked", None)
    forks.check_fork()
    forks.check_fork()
    monkeypatch.setattr(os, "getpid", lambda: -1)  # as in a child
    with pytest.raises(ForkedProcess):
        forks.check_fork()
