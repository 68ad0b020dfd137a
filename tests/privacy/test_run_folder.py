"""Runs on disk: resumed with the same noise or refused, never under-counted."""

import json
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidDocument, NoiseReuse
from tacit.privacy.certificate import Certificate
from tacit.privacy.ledger import Status
from tacit.privacy.mechanism import Gate
from tacit.privacy.noise.source import InsecureTestNoise
from tacit.privacy.run_folder import RunFolder, read_journal
from tests.privacy.noise_helpers import EXACT, QUERY, SUMS, gate, random_values

DATA = [b"these ratings", b"this configuration"]


def folder(path: Path, **options: Any) -> RunFolder:
    return RunFolder.create(path, **({"data": DATA, "noise": InsecureTestNoise(4)} | options))


def run_steps(door: Gate, steps: int) -> list[np.ndarray]:
    """Release sums that depend on what was released before, as a solver does."""
    results: list[np.ndarray] = []
    for step in range(steps):
        query = replace(QUERY, purpose=f"step {step}")
        values = random_values(SUMS, seed=int(abs(results[-1]).sum()) % 1000 if results else 0)
        results.append(door.release(query, SUMS.exact(values), share=0.05))
    return results


def test_a_resumed_run_draws_the_same_noise(tmp_path: Path) -> None:
    whole = run_steps(gate(noise=InsecureTestNoise(4)), 6)
    place = folder(tmp_path / "run")
    run_steps(gate(noise=None, folder=place), 3)
    place.close()
    resumed = gate(noise=None, folder=RunFolder.resume(tmp_path / "run", data=DATA))
    again = run_steps(resumed, 6)
    assert all(np.array_equal(a, b) for a, b in zip(whole, again, strict=True))
    assert len(resumed.ledger.events) == 6
    assert read_journal(tmp_path / "run" / "ledger.jsonl") == resumed.ledger


def test_a_secure_run_resumes_with_its_key(tmp_path: Path) -> None:
    place = folder(tmp_path / "run", noise=None)
    first = gate(noise=None, folder=place).release(QUERY, EXACT, share=0.1)
    place.close()
    again = gate(noise=None, folder=RunFolder.resume(tmp_path / "run", data=DATA))
    assert np.array_equal(again.release(QUERY, EXACT, share=0.1), first)
    assert Certificate.from_ledger(again.ledger, 1e-5).status is Status.PROVEN


def test_other_data_are_refused(tmp_path: Path) -> None:
    place = folder(tmp_path / "run")
    place.close()
    for data in ([], [b"these ratings"], [b"these ratingsthis configuration"], [*DATA, b""]):
        with pytest.raises(NoiseReuse, match="other data"):
            RunFolder.resume(tmp_path / "run", data=data)


def test_other_sums_or_queries_are_refused(tmp_path: Path) -> None:
    place = folder(tmp_path / "run")
    gate(noise=None, folder=place).release(QUERY, EXACT, share=0.1)
    changed = EXACT.copy()
    changed[0, 0] += 1
    for query, sums, share in (
        (QUERY, changed, 0.1),
        (QUERY, EXACT, 0.2),
        (replace(QUERY, purpose="another"), EXACT, 0.1),
    ):
        place.close()
        place = RunFolder.resume(tmp_path / "run", data=DATA)
        with pytest.raises(NoiseReuse):
            gate(noise=None, folder=place).release(query, sums, share=share)
        assert len(place.ledger.events) == 1


def test_the_key_is_readable_by_its_owner_only_and_erased(tmp_path: Path) -> None:
    place = folder(tmp_path / "run", noise=None)
    door = gate(noise=None, folder=place)
    door.release(QUERY, EXACT, share=0.1)
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700
    for name in ("key.json", "uses.jsonl", "ledger.jsonl"):
        assert (tmp_path / "run" / name).stat().st_mode & 0o777 == 0o600
    secret = json.loads((tmp_path / "run" / "key.json").read_text())["key"]
    ledger = (tmp_path / "run" / "ledger.jsonl").read_text()
    assert len(secret) == 64 and secret not in ledger
    door.close()
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["ledger.jsonl"]
    assert (tmp_path / "run" / "ledger.jsonl").read_text() == ledger
    with pytest.raises(NoiseReuse, match="completed"):
        RunFolder.resume(tmp_path / "run", data=DATA)


def test_a_folder_belongs_to_one_process_at_a_time(tmp_path: Path) -> None:
    place = folder(tmp_path / "run")
    with pytest.raises(NoiseReuse, match="another process"):
        RunFolder.resume(tmp_path / "run", data=DATA)
    place.close()
    RunFolder.resume(tmp_path / "run", data=DATA).close()


def test_an_existing_folder_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(InvalidDocument, match="exists"):
        folder(tmp_path)
    with pytest.raises(InvalidDocument):
        RunFolder.resume(tmp_path / "absent", data=DATA)
    assert list(tmp_path.iterdir()) == []


def test_an_unfinished_line_is_cut_off(tmp_path: Path) -> None:
    place = folder(tmp_path / "run")
    run_steps(gate(noise=None, folder=place), 2)
    place.close()
    journal = tmp_path / "run" / "ledger.jsonl"
    whole = journal.read_bytes()
    last = len(whole) - len(whole.splitlines(keepends=True)[-1])
    for cut in (last + 1, last + 50, len(whole) - 1):
        journal.write_bytes(whole[:cut])
        assert len(read_journal(journal).events) == 1
        RunFolder.resume(tmp_path / "run", data=DATA).close()
        assert journal.read_bytes() == whole[:last]


@pytest.mark.parametrize("name", ["ledger.jsonl", "key.json", "uses.jsonl"])
@pytest.mark.parametrize("content", [b"", b"\n", b"{}\n", b"[]\n", b"\xff\n", b'{"a"\n'])
def test_damaged_files_are_refused(tmp_path: Path, name: str, content: bytes) -> None:
    place = folder(tmp_path / "run")
    run_steps(gate(noise=None, folder=place), 1)
    place.close()
    if name == "uses.jsonl" and content == b"{}\n":
        content = b"{}\n{}\n"
    (tmp_path / "run" / name).write_bytes(content)
    with pytest.raises((InvalidDocument, NoiseReuse)):
        RunFolder.resume(tmp_path / "run", data=DATA)


@pytest.mark.parametrize("room", [0, 10])
def test_a_full_disk_releases_nothing(tmp_path: Path, room: int) -> None:
    """A limit on file sizes lets a line begin and not end, as a full disk does."""
    place = folder(tmp_path / "run")
    door = gate(noise=None, folder=place)
    journal = tmp_path / "run" / "ledger.jsonl"
    before = journal.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + room, limits[1]))
    try:
        with pytest.raises(InvalidDocument, match="cannot write"):
            door.release(QUERY, EXACT, share=0.1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert door.ledger.events == ()
    assert journal.read_bytes() == before
    door.release(QUERY, EXACT, share=0.1)
    assert len(read_journal(journal).events) == 1


CHILD = """
import sys
import numpy as np
from pathlib import Path
from tacit.privacy.run_folder import RunFolder
from tests.privacy import test_run_folder as t

path, out = Path(sys.argv[1]), Path(sys.argv[2])
place = RunFolder.resume(path, data=t.DATA) if path.exists() else t.folder(path)
door = t.gate(noise=None, folder=place)
publish = t.Gate.release
def release(*args, **kwargs):
    result = publish(*args, **kwargs)
    with out.open("ab") as stream:
        stream.write(result.tobytes())
    return result
t.Gate.release = release
t.run_steps(door, 12)
print("done")
"""


@pytest.mark.slow
def test_killed_at_any_moment_the_spend_is_never_forgotten(tmp_path: Path) -> None:
    whole = [result.tobytes() for result in run_steps(gate(noise=InsecureTestNoise(4)), 12)]
    path, out = tmp_path / "run", tmp_path / "published"
    root = Path(__file__).parent.parent.parent
    random = np.random.default_rng()
    finished = kills = 0
    deadline = time.monotonic() + 120
    while not (finished and kills >= 15) and time.monotonic() < deadline:
        out.unlink(missing_ok=True)
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(path), str(out)],
            cwd=root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        # Wait for the first sign of life in the folder, then kill within the time of a few steps.
        while child.poll() is None and not out.exists():
            time.sleep(0.001)
        if kills < 15:
            time.sleep(random.uniform(0, 0.02))
            child.send_signal(signal.SIGKILL)
            kills += 1
        stdout, stderr = child.communicate()
        finished += b"done" in stdout
        assert stderr == b""
        published = out.read_bytes() if out.exists() else b""
        complete = len(published) // len(whole[0])
        assert complete <= len(read_journal(path / "ledger.jsonl").events)
        assert published == b"".join(whole)[: len(published)]
    assert finished and kills == 15
    assert len(read_journal(path / "ledger.jsonl").events) == 12
