"""Resumed runs draw the same noise or are refused, and never lose recorded events."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from taciturn.accounting.certificate import Certificate
from taciturn.accounting.journal import read_journal
from taciturn.accounting.ledger import Status
from taciturn.errors import BudgetExceeded, InvalidDocument, NoiseReuse
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.mechanisms.run_folder import RunFolder
from tests.mechanisms.noise_helpers import (
    FIXED,
    QUERY,
    SUMS,
    Direct,
    FixedSums,
    random_values,
    release,
    small_gate,
)
from tests.mechanisms.run_folder_helpers import DATA, folder, run_steps
from tests.mechanisms.test_gate import BOTH, Together


def test_a_resumed_run_draws_the_same_noise(tmp_path: Path) -> None:
    whole = run_steps(small_gate(noise=InsecureTestNoise(4)), 6)
    place = folder(tmp_path / "run")
    run_steps(small_gate(noise=None, folder=place), 3)
    place.close()
    resumed = small_gate(noise=None, folder=RunFolder.resume(tmp_path / "run", data=DATA))
    again = run_steps(resumed, 6)
    assert all(np.array_equal(a, b) for a, b in zip(whole, again, strict=True))
    assert len(resumed.ledger.events) == 6
    assert read_journal(tmp_path / "run" / "ledger.jsonl") == resumed.ledger


def test_a_secure_run_resumes_with_its_key(tmp_path: Path) -> None:
    place = folder(tmp_path / "run", noise=None)
    first = release(small_gate(noise=None, folder=place), FIXED, share=0.1)
    place.close()
    again = small_gate(noise=None, folder=RunFolder.resume(tmp_path / "run", data=DATA))
    assert np.array_equal(release(again, FIXED, share=0.1), first)
    assert Certificate.from_ledger(again.ledger, 1e-5).status is Status.PROVEN


def test_resuming_with_other_data_is_refused(tmp_path: Path) -> None:
    place = folder(tmp_path / "run")
    place.close()
    for data in ([], [b"these ratings"], [b"these ratingsthis configuration"], [*DATA, b""]):
        with pytest.raises(NoiseReuse, match="other data"):
            RunFolder.resume(tmp_path / "run", data=data)


def moved(row: int, column: int) -> FixedSums:
    sums = FIXED.sums.copy()
    sums[row, column] += 1
    return FixedSums(QUERY, sums)


@pytest.mark.parametrize(
    ("table", "share"),
    [
        (moved(0, 0), 0.1),
        (moved(-1, -1), 0.1),
        (FIXED, 0.2),
        (FixedSums(replace(QUERY, purpose="another"), FIXED.sums), 0.1),
        (FixedSums(replace(QUERY, shape=(20, 10)), FIXED.sums.reshape(20, 10)), 0.1),
    ],
)
def test_other_sums_or_queries_are_refused(tmp_path: Path, table: FixedSums, share: float) -> None:
    place = folder(tmp_path / "run")
    release(small_gate(noise=None, folder=place), FIXED, share=0.1)
    place.close()
    place = RunFolder.resume(tmp_path / "run", data=DATA)
    with pytest.raises(NoiseReuse):
        release(small_gate(noise=None, folder=place), table, share=share)
    assert len(place.ledger.events) == 1


def test_an_unfinished_line_is_dropped(tmp_path: Path) -> None:
    place = folder(tmp_path / "run")
    run_steps(small_gate(noise=None, folder=place), 2)
    place.close()
    journal = tmp_path / "run" / "ledger.jsonl"
    whole = journal.read_bytes()
    last = len(whole) - len(whole.splitlines(keepends=True)[-1])
    uses = tmp_path / "run" / "uses.jsonl"
    used = uses.read_bytes()
    for cut in (last + 1, last + 50, len(whole) - 1):
        journal.write_bytes(whole[:cut])
        # The event's noise was used, so the ledger has lost it: the run must not go on.
        with pytest.raises(InvalidDocument, match="lost lines"):
            RunFolder.resume(tmp_path / "run", data=DATA)
        # Without a use its noise was never drawn: the line is dropped and the run goes on.
        journal.write_bytes(whole[:cut])
        uses.write_bytes(b"".join(used.splitlines(keepends=True)[:-1]))
        RunFolder.resume(tmp_path / "run", data=DATA).close()
        assert journal.read_bytes() == whole[:last]
        uses.write_bytes(used)


def test_a_crash_between_recording_and_binding_is_harmless(tmp_path: Path) -> None:
    place = folder(tmp_path / "run")
    first, second = run_steps(small_gate(noise=None, folder=place), 2)
    place.close()
    uses = tmp_path / "run" / "uses.jsonl"
    uses.write_bytes(b"".join(uses.read_bytes().splitlines(keepends=True)[:-1]))
    again = small_gate(noise=None, folder=RunFolder.resume(tmp_path / "run", data=DATA))
    assert [r.tobytes() for r in run_steps(again, 2)] == [first.tobytes(), second.tobytes()]
    assert len(again.ledger.events) == 2


def test_a_gate_resumes_in_the_middle_of_a_run(tmp_path: Path) -> None:
    """Skipped events count towards the budget and keep their addresses."""
    whole = run_steps(small_gate(noise=InsecureTestNoise(4)), 6)
    place = folder(tmp_path / "run")
    run_steps(small_gate(noise=None, folder=place), 4)
    place.close()
    place = RunFolder.resume(tmp_path / "run", data=DATA)
    gate = small_gate(noise=None, folder=place, position=4)
    values = random_values(SUMS, seed=int(abs(whole[3]).sum()) % 1000)
    table = FixedSums(replace(QUERY, purpose="step 4"), SUMS.exact(values).tables[0])
    assert np.array_equal(release(gate, table, share=0.05), whole[4])
    with pytest.raises(BudgetExceeded):
        release(gate, FIXED, share=0.76)  # 5 × 0.05 are spent
    release(gate, FIXED, share=0.7499)
    assert len(gate.ledger.events) == 6


@pytest.mark.parametrize("position", [-1, 5])
def test_events_that_were_not_recorded_cannot_be_skipped(tmp_path: Path, position: int) -> None:
    place = folder(tmp_path / "run")
    run_steps(small_gate(noise=None, folder=place), 4)
    place.close()
    with pytest.raises(NoiseReuse, match="does not have"):
        small_gate(
            noise=None,
            folder=RunFolder.resume(tmp_path / "run", data=DATA),
            position=position,
        )


def test_a_state_is_stored_until_the_run_ends(tmp_path: Path) -> None:
    place = folder(tmp_path / "run")
    assert place.read_state() is None
    run_steps(small_gate(noise=None, folder=place), 2)
    place.save_state(1, b"one\nmore")
    place.save_state(2, b"two")
    place.close()
    with pytest.raises(NoiseReuse, match="closed"):
        place.save_state(2, b"three")
    place = RunFolder.resume(tmp_path / "run", data=DATA)
    assert place.read_state() == (2, b"two")
    assert (tmp_path / "run" / "state").stat().st_mode & 0o777 == 0o600
    place.erase_key()
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["ledger.jsonl"]


def test_a_state_that_does_not_fit_the_ledger_is_not_used(tmp_path: Path) -> None:
    place = folder(tmp_path / "run")
    run_steps(small_gate(noise=None, folder=place), 2)
    place.save_state(3, b"from the future")
    assert place.read_state() is None
    place.save_state(2, b"content")
    file = tmp_path / "run" / "state"
    whole = file.read_bytes()
    for damaged in (whole[:-1], whole.replace(b"2 ", b"1 ", 1), b"x" + whole, whole + b" ", b"\n"):
        file.write_bytes(damaged)
        assert place.read_state() is None


def test_an_interrupted_joint_release_is_repeated(tmp_path: Path) -> None:
    """A crash after the first of two lines of the ledger, and after both but before their use."""
    expected = (
        small_gate(noise=InsecureTestNoise(4)).release(BOTH, Direct(), shares=(0.1, 0.1)).tables
    )
    for lines in (2, 3):  # with the header
        place = folder(tmp_path / f"run-{lines}")
        small_gate(noise=None, folder=place).release(BOTH, Direct(), shares=(0.1, 0.1))
        place.close()
        for name, count in (("ledger.jsonl", lines), ("uses.jsonl", 1)):
            file = tmp_path / f"run-{lines}" / name
            file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:count]))
        place = RunFolder.resume(tmp_path / f"run-{lines}", data=DATA)
        gate = small_gate(noise=None, folder=place)
        again = gate.release(BOTH, Direct(), shares=(0.1, 0.1)).tables
        assert all(np.array_equal(a, b) for a, b in zip(again, expected, strict=True))
        assert len(gate.ledger.events) == 2
        place.close()
        assert len(read_journal(tmp_path / f"run-{lines}" / "ledger.jsonl").events) == 2


def test_the_noise_of_every_table_is_bound(tmp_path: Path) -> None:
    """Of two tables released together, the second may not change either."""
    place = folder(tmp_path / "run")
    small_gate(noise=None, folder=place).release(BOTH, Direct(), shares=(0.1, 0.1))
    place.close()
    moved_second = Together((BOTH.parts[0], replace(BOTH.parts[1], sums=BOTH.parts[1].sums + 1)))
    gate = small_gate(noise=None, folder=RunFolder.resume(tmp_path / "run", data=DATA))
    with pytest.raises(NoiseReuse, match="event 1"):
        gate.release(moved_second, Direct(), shares=(0.1, 0.1))
