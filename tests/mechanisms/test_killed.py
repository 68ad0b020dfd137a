"""A run killed at any moment has recorded what it published, and repeats it when resumed."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from taciturn.accounting.journal import read_journal
from taciturn.mechanisms.gate import Gate
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.mechanisms.query import Released
from taciturn.mechanisms.run_folder import RunFolder
from tests.failures import killed_at
from tests.mechanisms.noise_helpers import small_gate
from tests.mechanisms.run_folder_helpers import DATA, folder, run_steps


@contextmanager
def published_tables() -> Iterator[list[bytes]]:
    """Tables in the order in which gates hand them out."""
    tables: list[bytes] = []
    publish = Gate.release

    def release(*arguments: Any, **options: Any) -> Released:
        result = publish(*arguments, **options)
        tables.append(result.tables[0].tobytes())
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Gate, "release", release)
        yield tables


def start_or_resume(path: Path) -> RunFolder:
    return RunFolder.resume(path, data=DATA) if path.exists() else folder(path)


def run_in(path: Path, steps: int) -> list[bytes]:
    """Start or resume a run and return its tables."""
    with closing(start_or_resume(path)) as place:
        results = run_steps(small_gate(noise=None, folder=place), steps)
    return [result.tobytes() for result in results]


def expected_tables(steps: int) -> list[bytes]:
    results = run_steps(small_gate(noise=InsecureTestNoise(4)), steps)
    return [result.tobytes() for result in results]


def lines(journal: Path) -> int:
    """Complete lines of a journal after its header."""
    return journal.read_bytes().count(b"\n") - 1 if journal.exists() else 0


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_run_killed_at_any_operation_keeps_its_recorded_events(
    is_begun: bool, tmp_path: Path
) -> None:
    """For every operation, of a new run and of one that resumes after a line was truncated."""
    whole = expected_tables(3)
    for number in count():
        path, spent = tmp_path / str(number), 0
        if is_begun:
            run_in(path, 1)
            with (path / "ledger.jsonl").open("ab") as ledger:
                ledger.write(b'{"half of": ')
            spent = 1
        with published_tables() as published, killed_at(number) as process:
            run_in(path, 3)
        assert published == whole[: len(published)]
        recorded, used = lines(path / "ledger.jsonl"), lines(path / "uses.jsonl")
        assert len(published) <= used <= recorded and spent <= recorded
        assert run_in(path, 3) == whole
        assert len(read_journal(path / "ledger.jsonl").events) == 3
        if not process.has_failed:
            break
    assert number > 2 * 6  # each step writes and syncs a line of the ledger and one of the uses


CHILD = """
import sys
from pathlib import Path
from taciturn.mechanisms.gate import Gate
from tests.mechanisms.test_killed import run_in

path, out = Path(sys.argv[1]), Path(sys.argv[2])
publish = Gate.release
def release(*args, **kwargs):
    result = publish(*args, **kwargs)
    with out.open("ab") as stream:
        stream.write(result.tables[0].tobytes())
    return result
Gate.release = release
run_in(path, 12)
print("done")
"""


@pytest.mark.slow
def test_a_killed_process_keeps_its_recorded_events(tmp_path: Path) -> None:
    """Three real kills after a first table was published, then a run that ends."""
    whole = b"".join(expected_tables(12))
    path, out = tmp_path / "run", tmp_path / "published"
    for kill_after in (0.0, 0.005, 0.01, None):
        out.unlink(missing_ok=True)
        with subprocess.Popen(
            [sys.executable, "-c", CHILD, str(path), str(out)],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as child:
            while child.poll() is None and not out.exists():
                time.sleep(0.001)
            if kill_after is not None:
                time.sleep(kill_after)
                child.kill()
            stdout, stderr = child.communicate()
        assert stderr == b""
        published = out.read_bytes()
        assert published == whole[: len(published)]
        assert lines(path / "ledger.jsonl") >= len(published) // (len(whole) // 12)
    assert stdout == b"done\n" and published == whole
    assert len(read_journal(path / "ledger.jsonl").events) == 12
