"""Run folders: one owner, a private key that is erased, and no half-written or damaged files."""

import json
import os
import resource
from pathlib import Path
from typing import Any

import pytest

from taciturn.accounting.certificate import read_ledger
from taciturn.accounting.journal import read_journal
from taciturn.errors import InvalidDocument, NoiseReuse, OutputError
from taciturn.mechanisms.noise import FORMAT as NOISE_FORMAT
from taciturn.mechanisms.run_folder import RunFolder
from tests.mechanisms.noise_helpers import (
    FIXED,
    release,
    small_gate,
)
from tests.mechanisms.run_folder_helpers import DATA, folder, run_steps


def test_a_use_is_bound_at_once(tmp_path: Path) -> None:
    place = folder(tmp_path / "run")
    place.bind(0, ["one"])
    place.bind(0, ["one"])
    with pytest.raises(NoiseReuse, match="other sums"):
        place.bind(0, ["another"])


def test_a_closed_folder_cannot_be_used(tmp_path: Path) -> None:
    place = folder(tmp_path / "run")
    gate = small_gate(noise=None, folder=place)
    place.close()
    resumed = RunFolder.resume(tmp_path / "run", data=DATA)
    with pytest.raises(NoiseReuse, match="was closed"):
        release(gate, FIXED, share=0.1)
    gate.close()  # must not erase the key that another holder is using
    assert release(small_gate(noise=None, folder=resumed), FIXED, share=0.1).size
    with pytest.raises(NoiseReuse, match="another run"):
        small_gate(noise=None, folder=resumed)


def test_the_key_is_readable_by_its_owner_only_and_erased(tmp_path: Path) -> None:
    place = folder(tmp_path / "run", noise=None)
    gate = small_gate(noise=None, folder=place)
    release(gate, FIXED, share=0.1)
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700
    for name in ("key.json", "uses.jsonl", "ledger.jsonl"):
        assert (tmp_path / "run" / name).stat().st_mode & 0o777 == 0o600
    secret = json.loads((tmp_path / "run" / "key.json").read_text())["key"]
    ledger = (tmp_path / "run" / "ledger.jsonl").read_text()
    assert len(secret) == 64 and secret not in ledger
    with (tmp_path / "run" / "key.json").open("rb") as stream:
        gate.close()
        assert not any(stream.read())  # overwritten before it was removed
    gate.close()
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["ledger.jsonl"]
    assert (tmp_path / "run" / "ledger.jsonl").read_text() == ledger
    with pytest.raises(NoiseReuse, match="completed"):
        RunFolder.resume(tmp_path / "run", data=DATA)


def test_an_interrupted_erasure_is_finished(tmp_path: Path) -> None:
    folder(tmp_path / "run").close()
    key = tmp_path / "run" / "key.json"
    key.write_bytes(bytes(key.stat().st_size))
    for _ in range(2):
        with pytest.raises(NoiseReuse, match="completed"):
            RunFolder.resume(tmp_path / "run", data=DATA)
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["ledger.jsonl"]


def test_a_failed_creation_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OutputError, match="No space left"):
            folder(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
    folder(tmp_path / "run").close()


def test_a_draft_left_by_a_killed_run_is_removed_on_resuming(tmp_path: Path) -> None:
    place = folder(tmp_path / "run")
    before = sorted(file.name for file in place.path.iterdir())
    (place.path / ".0123456789abcdef.tmp").write_text("half a state")
    place.close()
    RunFolder.resume(tmp_path / "run", data=DATA).close()
    assert sorted(file.name for file in place.path.iterdir()) == before


def test_a_draft_is_erased_with_the_key(tmp_path: Path) -> None:
    place = folder(tmp_path / "run")
    (place.path / ".0123456789abcdef.tmp").write_text("half a state")
    place.erase_key()
    assert [file.name for file in place.path.iterdir()] == ["ledger.jsonl"]


def test_a_folder_belongs_to_one_process_at_a_time(tmp_path: Path) -> None:
    place = folder(tmp_path / "run")
    with pytest.raises(NoiseReuse, match="another process"):
        RunFolder.resume(tmp_path / "run", data=DATA)
    place.close()
    RunFolder.resume(tmp_path / "run", data=DATA).close()


def test_an_existing_folder_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="exists already"):
        folder(tmp_path)
    with pytest.raises(InvalidDocument):
        RunFolder.resume(tmp_path / "absent", data=DATA)
    assert list(tmp_path.iterdir()) == []


def test_lines_are_synced_before_noise_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = folder(tmp_path / "run")
    order: list[str] = []
    synced, drawn = os.fsync, type(place._noise)._integers

    def sync(handle: int) -> None:
        order.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        synced(handle)

    def draw(*args: Any, **kwargs: Any) -> Any:
        order.append("noise")
        return drawn(*args, **kwargs)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(type(place._noise), "_integers", draw)
    release(small_gate(noise=None, folder=place), FIXED, share=0.1)
    assert order == ["ledger.jsonl", "uses.jsonl", "noise"]


def test_a_key_of_another_run_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        folder(tmp_path / name).close()
    (tmp_path / "b" / "key.json").replace(tmp_path / "a" / "key.json")
    with pytest.raises(InvalidDocument, match="another"):
        RunFolder.resume(tmp_path / "a", data=DATA)


def test_another_noise_format_is_refused(tmp_path: Path) -> None:
    folder(tmp_path / "run").close()
    file = tmp_path / "run" / "key.json"
    key = json.loads(file.read_text()) | {"format": NOISE_FORMAT - 1}
    del key["start"]  # as the first version wrote it
    file.write_text(json.dumps(key))
    with pytest.raises(NoiseReuse, match="other noise"):
        RunFolder.resume(tmp_path / "run", data=DATA)


def test_a_run_folder_can_be_certified(tmp_path: Path) -> None:
    place = folder(tmp_path / "run", noise=None)
    run_steps(small_gate(noise=None, folder=place), 2)
    assert read_ledger(tmp_path / "run") == place.ledger


@pytest.mark.parametrize("name", ["ledger.jsonl", "key.json", "uses.jsonl"])
@pytest.mark.parametrize("content", [b"", b"\n", b"{}\n", b"[]\n", b"\xff\n", b'{"a"\n'])
def test_damaged_files_are_refused(tmp_path: Path, name: str, content: bytes) -> None:
    place = folder(tmp_path / "run")
    run_steps(small_gate(noise=None, folder=place), 1)
    place.close()
    (tmp_path / "run" / name).write_bytes(content)
    with pytest.raises((InvalidDocument, NoiseReuse)):
        RunFolder.resume(tmp_path / "run", data=DATA)


@pytest.mark.parametrize("room", [0, 10])
def test_a_full_disk_releases_nothing(tmp_path: Path, room: int) -> None:
    """A limit on file sizes truncates a line, as a full disk does."""
    place = folder(tmp_path / "run")
    gate = small_gate(noise=None, folder=place)
    journal = tmp_path / "run" / "ledger.jsonl"
    before = journal.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + room, limits[1]))
    try:
        with pytest.raises(OutputError, match="cannot write"):
            release(gate, FIXED, share=0.1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert gate.ledger.events == ()
    assert journal.read_bytes() == before
    release(gate, FIXED, share=0.1)
    assert len(read_journal(journal).events) == 1


def test_an_interrupt_while_closing_does_not_close_the_lock_twice(tmp_path: Path) -> None:
    """A second close would hide Ctrl-C, or close a file that has the same number by then."""
    place, close = folder(tmp_path / "run"), os.close

    def interrupted(handle: int) -> None:
        close(handle)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "close", interrupted)
        place.close()
    place.close()
    RunFolder.resume(tmp_path / "run", data=DATA).close()
