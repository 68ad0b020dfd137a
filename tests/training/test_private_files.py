"""Private files on a disk: all that Taciturn writes are found, and nothing else is touched."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from taciturn._internal.cell_cache import CellCache
from taciturn._internal.drawing import canvas, write_drawn
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.run_folder import RunFolder
from taciturn.release.sign import make_keys
from taciturn.training.private_files import Kind, delete, find_private
from tests.training.helpers import go, private_outputs, stop_at

DATA = [b"data"]


def kinds(folder: Path) -> dict[str, Kind]:
    return {str(each.path.relative_to(folder)): each.kind for each in find_private([folder]).found}


def age(path: Path, days: float) -> None:
    moment = datetime.now(UTC).timestamp() - days * 86_400
    for each in (path, *path.rglob("*")):
        os.utime(each, (moment, moment), follow_symlinks=False)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A folder with every kind of private file, among files of others."""
    folder = tmp_path / "disk"
    folder.mkdir()
    go(folder / "release", "paper", private=private_outputs(folder))
    (tmp_path / "known.parquet").rename(folder / "known.parquet")
    with pytest.raises(KeyboardInterrupt):
        go(folder / "later", progress=stop_at(3))
    for name in ("cells", "runs"):
        CellCache(folder / "results" / name).put({"seed": 1}, 2)
    write_drawn(folder / "results" / "compare", {"view": "owner"}, canvas(1, 1), lambda svg: b"")
    make_keys(folder / "owner.key")
    (folder / ".0123456789abcdef.tmp").write_bytes(b"half a file")
    age(folder / ".0123456789abcdef.tmp", 2)
    return folder


FOUND = {
    "items": Kind.ITEMS,
    "names": Kind.PSEUDONYMS,
    "known.parquet": Kind.PSEUDONYMS,
    "later.run": Kind.RUN,
    "results/cells": Kind.CACHE,
    "results/runs": Kind.CACHE,
    "results/compare.json": Kind.REPORT,
    "owner.key": Kind.KEY,
    ".0123456789abcdef.tmp": Kind.LEFTOVER,
}


def test_every_private_file_is_found_by_its_content(disk: Path) -> None:
    assert kinds(disk) == FOUND
    run = next(each for each in find_private([disk]).found if each.kind is Kind.RUN)
    assert "noisy answers, which count towards the privacy cost" in run.detail
    assert run.size > 1000 and run.kept == ""


def test_deleting_leaves_the_release_and_the_key(disk: Path) -> None:
    for each in find_private([disk]).found:
        reason = delete(each)
        assert (reason != "") == (each.kind is Kind.KEY)
    assert sorted(path.name for path in disk.iterdir()) == [
        *("latest", "owner.key", "owner.key.pub", "release", "results")
    ]
    assert list((disk / "results").iterdir()) == []
    assert len(list((disk / "release").iterdir())) == 4


FOREIGN = {
    "ratings.parquet": pl.DataFrame({"user_id": [1], "item_id": [2], "rating": [3.0]}),
    "own-map.parquet": pl.DataFrame({"user_id": [1], "pseudonym": ["Ada"]}),
    "profiles.parquet": pl.DataFrame({"item_id": [1], "bias": [0.5], "profile": [[1.0]]}),
}


def test_files_of_others_are_not_listed(tmp_path: Path) -> None:
    for name, table in FOREIGN.items():
        table.write_parquet(tmp_path / name)
    others = {
        "cells/notes.txt": "mine",
        f"cells/{'a' * 64}.json": "{}",
        "runs/1.json": "{}",
        "records/ledger.jsonl": '{"format": "taciturn-ledger"}',
        "mixed.run/ledger.jsonl": "{}",
        "mixed.run/thesis.tex": "mine",
        "compare.json": '{"view": "public"}',
        "audit.json": "no JSON",
        "tls.key": "-----BEGIN PRIVATE KEY-----\nabc",
        ".0123456789abcdef.tmp": "just being written",
        "PAR1": "PAR1" + "x" * 60 + "\xff\xff\xff\xffPAR1",
    }
    for name, text in others.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="latin-1")
    (tmp_path / "empty.run").mkdir()
    assert kinds(tmp_path) == {}


def test_links_are_neither_followed_nor_listed(disk: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "map").symlink_to(disk / "names")
    (other / "run.run").symlink_to(disk / "later.run")
    assert kinds(other) == {}


def test_a_live_run_is_kept(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "live.run", data=DATA)
    (found,) = find_private([tmp_path]).found
    assert found.kept == delete(found) == "a training is using it"
    folder.close()
    (idle,) = find_private([tmp_path]).found
    assert idle.detail == "interrupted before its first noisy answer"
    resumed = RunFolder.resume(tmp_path / "live.run", data=DATA)  # after the search
    assert delete(idle) == "a training is using it"
    resumed.close()
    assert delete(idle) == "" and list(tmp_path.iterdir()) == []
    assert delete(idle) == ""  # it is already gone


def test_a_run_folder_that_got_other_files_is_kept(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "a.run", data=DATA).close()
    (found,) = find_private([tmp_path]).found
    (tmp_path / "a.run" / "thesis.tex").touch()
    assert delete(found) == "it has changed and is no run folder any more"
    assert (tmp_path / "a.run" / "key.json").exists()


def test_a_draft_of_a_run_folder_is_found(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "a.run", data=DATA).close()
    (tmp_path / "a.run" / "ledger.jsonl").unlink()
    (tmp_path / "a.run").rename(tmp_path / ".a.run.new")
    (found,) = find_private([tmp_path]).found
    assert found.kind is Kind.RUN and delete(found) == ""


def test_the_age_is_that_of_the_last_change(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "a.run", data=DATA).close()
    age(tmp_path / "a.run", 40)
    now = datetime.now(UTC)
    (found,) = find_private([tmp_path], now=now).found
    assert 39.9 < found.age(now) / timedelta(days=1) < 40.1
    (tmp_path / "a.run" / "uses.jsonl").touch()
    (found,) = find_private([tmp_path], now=now).found
    assert found.age(now) < timedelta(minutes=10)


def test_overlapping_folders_list_a_file_once(disk: Path) -> None:
    found = find_private([disk, disk / "results", disk]).found
    assert len(found) == len(FOUND)


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="is not a folder"):
        find_private([tmp_path / "none"])


def test_deleted_files_are_overwritten_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from taciturn._internal import files

    (tmp_path / "secret").write_bytes(b"x" * (2**20 + 5))
    os.link(tmp_path / "secret", tmp_path / "same")  # sees what the disk holds afterwards
    files.erase_file(tmp_path / "secret")
    assert (tmp_path / "same").read_bytes() == bytes(2**20 + 5)
    (tmp_path / "link").symlink_to("same")
    (tmp_path / "same").write_bytes(b"kept")
    files.erase_file(tmp_path / "link")
    assert (tmp_path / "same").read_bytes() == b"kept" and not (tmp_path / "link").exists()
