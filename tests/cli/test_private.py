"""`taciturn private list` and `clean`."""

import json
import os
from pathlib import Path

import pytest

from taciturn._internal.cell_cache import CellCache
from taciturn.mechanisms.run_folder import RunFolder
from tests.conftest import Command


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A folder with an old and a new run folder, neither in use."""
    for name in ("new", "old"):
        RunFolder.create(tmp_path / f"{name}.run", data=[b"data"]).close()
    for path in (tmp_path / "old.run", *(tmp_path / "old.run").iterdir()):
        os.utime(path, (1e9, 1e9))
    return tmp_path


def left(disk: Path) -> list[str]:
    return sorted(path.name for path in disk.iterdir())


def test_the_list_shows_kind_age_and_size(taciturn: Command, disk: Path) -> None:
    result = taciturn("private", "list", cwd=disk)
    new, old = result.stdout.splitlines()
    assert "new.run" in new and "; interrupted before its first" in new and " B; " in new
    assert "old.run" in old and "days" in old
    assert left(disk) == ["new.run", "old.run"]


def test_json_is_owner_only(taciturn: Command, disk: Path) -> None:
    result = taciturn("private", "list", disk, "--older-than", "30d", "--json")
    document = json.loads(result.stdout)
    assert document["view"] == "owner"
    (found,) = document["found"]
    assert found["path"] == str(disk / "old.run") and found["kind"] == "run"
    assert found["modified"] == "2001-09-09T01:46:40+00:00" and found["age_days"] > 9000


def test_nothing_is_deleted_unless_the_user_says_so(
    taciturn: Command, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for options in ([], ["--json"], ["--older-than", "30d"]):
        result = taciturn("private", "clean", disk, *options)
        assert result.returncode == 0 and "nothing was deleted; pass --yes" in result.stderr
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for answer, remains in ((False, ["new.run", "old.run"]), (True, ["new.run"])):
        monkeypatch.setattr("typer.confirm", lambda *_, answer=answer, **__: answer)
        taciturn("private", "clean", disk, "--older-than", "30d")
        assert left(disk) == remains


def test_yes_deletes_what_is_old_enough(taciturn: Command, disk: Path) -> None:
    result = taciturn("private", "clean", disk, "--older-than", "2w", "--yes", "--json")
    assert json.loads(result.stdout)["deleted"] == [str(disk / "old.run")]
    assert left(disk) == ["new.run"]
    assert taciturn("private", "clean", disk, "--yes").stdout.endswith("deleted 1 of 1\n")
    assert taciturn("private", "clean", disk, "--yes").stdout == "no private files found\n"


def test_a_running_training_survives_cleaning(taciturn: Command, disk: Path) -> None:
    running = RunFolder.resume(disk / "new.run", data=[b"data"])
    result = taciturn("private", "clean", disk, "--yes")
    assert "kept: a training is using it" in result.stdout
    assert result.stdout.endswith("deleted 1 of 2\n") and left(disk) == ["new.run"]
    running.close()


def test_only_the_kinds_named_are_deleted(taciturn: Command, disk: Path) -> None:
    CellCache(disk / "cells").put({"seed": 1}, 2)
    clean = ["private", "clean", disk, "--yes", "--json", "--only"]
    assert json.loads(taciturn(*clean, "pseudonyms,key").stdout)["found"] == []
    deleted = json.loads(taciturn(*clean, "report, cache").stdout)["deleted"]
    assert deleted == [str(disk / "cells")] and left(disk) == ["new.run", "old.run"]
    wrong = taciturn(*clean, "runs")
    assert wrong.returncode == 2 and "--only must be one of run, pseudonyms" in wrong.stderr


@pytest.mark.parametrize("text", ["30", "d", "-3d", "1m", "1.5d", "99999999d", ""])
def test_an_unclear_age_is_refused(taciturn: Command, disk: Path, text: str) -> None:
    result = taciturn("private", "clean", disk, "--older-than", text, "--yes")
    assert result.returncode == 2 and "expected a time such as 30d" in result.stderr
    assert left(disk) == ["new.run", "old.run"]


def test_a_folder_that_may_not_be_read_is_reported(
    taciturn: Command, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def refusing(path: str) -> object:
        if Path(path).name == "old.run":
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr("os.scandir", refusing)
    result = taciturn("private", "list", disk)
    assert "old.run cannot be read" in result.stderr and "new.run" in result.stdout
