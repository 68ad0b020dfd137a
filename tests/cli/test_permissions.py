"""Messages about files that the user may not read or write, from a process without privileges."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

RATINGS = pl.DataFrame(
    [(user, item, 1 + (user + item) % 5) for user in range(9) for item in range(9)],
    schema=["user_id", "item_id", "rating"],
    orient="row",
)

Unprivileged = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def unprivileged(tmp_path: Path) -> Unprivileged:
    """Run the command line in `tmp_path` as a user whom file permissions apply to."""
    (tmp_path / "open").mkdir()
    RATINGS.write_csv(tmp_path / "ratings.csv")
    command = [sys.executable, "-c", "from taciturn.cli import main; main()"]
    if os.geteuid() == 0:
        # Without these capabilities, permissions apply to root as to any other owner of a file.
        if shutil.which("setpriv") is None:
            pytest.skip("needs the program setpriv to drop the privileges of root")
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.mark.parametrize("name", ["own.csv", "own.parquet", "folder", "locked/own.csv"])
def test_an_unreadable_input_is_named_with_the_reason(
    unprivileged: Unprivileged, tmp_path: Path, name: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "locked").mkdir()
    RATINGS.write_csv(tmp_path / "own.csv")
    RATINGS.write_parquet(tmp_path / "own.parquet")
    RATINGS.write_parquet(tmp_path / "folder" / "part.parquet")
    shutil.copy(tmp_path / "own.csv", tmp_path / "locked")
    for path in ("own.csv", "own.parquet", "folder/part.parquet", "locked"):
        (tmp_path / path).chmod(0)
    try:
        result = unprivileged("data", "info", name, "--scale", "1:5")
    finally:
        (tmp_path / "locked").chmod(0o700)
    named = "folder/part.parquet" if name == "folder" else name
    assert result.returncode == 2
    assert result.stderr == f"error: cannot read {named}: Permission denied\n"


def test_an_unreadable_folder_is_not_called_empty(
    unprivileged: Unprivileged, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir(mode=0)
    result = unprivileged("data", "info", "folder", "--scale", "1:5")
    (tmp_path / "folder").chmod(0o700)
    assert result.stderr == "error: cannot read folder: Permission denied\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "outputs",
    [
        ["-o", "closed/release"],
        ["-o", "open/release", "--users-out", "pseudonyms", "--pseudonyms-out", "closed/map"],
    ],
)
def test_a_training_that_may_not_write_releases_nothing(
    unprivileged: Unprivileged, tmp_path: Path, outputs: list[str]
) -> None:
    (tmp_path / "closed").mkdir(mode=0o555)
    arguments = "train ratings.csv --scale 1:5 --epsilon 10 --solver bias".split()
    result = unprivileged(*arguments, *outputs)
    assert result.returncode == 2
    last = result.stderr.splitlines()[-1]
    assert f"cannot write {tmp_path / 'closed'}" in last and "Permission denied" in last
    assert "noisy answers" not in result.stderr
    assert list((tmp_path / "open").iterdir()) == []


def test_an_error_of_the_system_names_its_path(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from taciturn.cli import app, doctor

    def refused(name: str) -> str:
        raise PermissionError(13, "Permission denied", "/somewhere/file")

    monkeypatch.setattr(doctor, "_version", refused)
    assert app.run(["doctor"]) == 2
    expected = "error: cannot use /somewhere/file: Permission denied; check its permissions\n"
    assert capsys.readouterr().err == expected
