"""Authenticated run folders: an edited, removed or reordered line is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from taciturn.errors import InvalidDocument
from taciturn.mechanisms.run_folder import RunFolder
from taciturn.training.outputs import run_folder
from tests.mechanisms.noise_helpers import small_gate
from tests.mechanisms.run_folder_helpers import DATA, folder, run_steps
from tests.training.helpers import go, stop_at

Lines = list[dict[str, Any]]


def cheaper(lines: Lines) -> Lines:
    return [line | {"noise_scale": line["noise_scale"] * 100} if "rows" in line else line
            for line in lines]  # fmt: skip


def respelled(lines: Lines) -> Lines:
    return [*lines[:-1], dict(reversed(lines[-1].items()))]


def without_mac(lines: Lines) -> Lines:
    return [{name: line[name] for name in line if name != "mac"} for line in lines]


EDITS: dict[str, Callable[[Lines], Lines]] = {
    "a larger noise scale": cheaper,
    "a line removed": lambda lines: [*lines[:2], *lines[3:]],
    "the first event removed": lambda lines: [lines[0], *lines[2:]],
    "two lines swapped": lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
    "a line repeated": lambda lines: [*lines, lines[-1]],
    "the same line spelled otherwise": respelled,
    "no MACs": without_mac,
}


def rewrite(file: Path, edit: Callable[[Lines], Lines]) -> None:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    edited = edit(lines)
    assert edited != lines or list(edited[-1]) != list(lines[-1])
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in edited))


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        pytest.param(name, edit, id=f"{name}-{change}")
        for name in ("ledger.jsonl", "uses.jsonl")
        for change, edit in EDITS.items()
        if name == "ledger.jsonl" or edit is not cheaper  # uses have no noise scale
    ],
)
def test_an_edited_line_is_refused(
    tmp_path: Path, name: str, edit: Callable[[Lines], Lines]
) -> None:
    place = folder(tmp_path / "run")
    run_steps(small_gate(noise=None, folder=place), 4)
    place.close()
    rewrite(tmp_path / "run" / name, edit)
    with pytest.raises(InvalidDocument):
        RunFolder.resume(tmp_path / "run", data=DATA)


def test_a_line_of_another_run_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        place = folder(tmp_path / name, noise=None)
        run_steps(small_gate(noise=None, folder=place), 3)
        place.close()
    foreign = (tmp_path / "b" / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    file = tmp_path / "a" / "ledger.jsonl"
    own = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*own[:-1], foreign[-1]]))
    with pytest.raises(InvalidDocument, match="line 4 .* does not match its MAC"):
        RunFolder.resume(tmp_path / "a", data=DATA)


@pytest.mark.parametrize("field", ["noise", "data", "start", "date", "run"])
def test_an_edited_key_file_is_refused(tmp_path: Path, field: str) -> None:
    """Test noise renamed secure, for one, would turn a void release into a proven one."""
    folder(tmp_path / "run").close()
    file = tmp_path / "run" / "key.json"
    key = json.loads(file.read_text())
    flipped = f"{int(key[field][0], 16) ^ 1:x}{key[field][1:]}" if field != "noise" else "secure"
    changed = "2020-01-01" if field == "date" else flipped
    file.write_text(json.dumps(key | {field: changed}))
    with pytest.raises(InvalidDocument, match="damaged"):
        RunFolder.resume(tmp_path / "run", data=DATA)


def test_a_forged_checkpoint_is_not_used(tmp_path: Path) -> None:
    place = folder(tmp_path / "run")
    run_steps(small_gate(noise=None, folder=place), 2)
    place.save_state(2, b"state of the solver")
    file = tmp_path / "run" / "state"
    header, _, content = file.read_bytes().partition(b"\n")
    file.write_bytes(header.replace(b"2 ", b"1 ", 1) + b"\n" + content)
    assert place.read_state() is None
    file.write_bytes(header + b"\n" + content.replace(b"solver", b"forger"))
    assert place.read_state() is None
    file.write_bytes(header + b"\n" + content)
    assert place.read_state() == (2, b"state of the solver")
    place.close()


def test_a_training_with_a_cheaper_journal_does_not_resume(tmp_path: Path) -> None:
    """A noise scale multiplied by 100 would state an epsilon of 0.006 where 1 is spent."""
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "release", progress=stop_at(4))
    rewrite(run_folder(tmp_path / "release") / "ledger.jsonl", cheaper)
    with pytest.raises(InvalidDocument, match="does not match its MAC"):
        go(tmp_path / "release", resume=True)
    assert not (tmp_path / "release").exists()
