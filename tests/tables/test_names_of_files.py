"""File names that are not UTF-8."""

import gzip
import os
from pathlib import Path

import polars as pl
import pytest

from taciturn.cli import app
from taciturn.data import load
from taciturn.tables.whole import read_table

RATINGS = pl.DataFrame({"user_id": [1, 1, 2], "item_id": [1, 2, 1], "rating": [5, 4, 3]})


def odd(folder: Path, suffix: str) -> Path:
    """Path whose last part has a byte that no UTF-8 text has."""
    return folder / os.fsdecode(b"odd\xff" + suffix.encode())


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_a_table_is_read_whatever_its_name(tmp_path: Path, suffix: str) -> None:
    path = odd(tmp_path, suffix)
    plain = tmp_path / "plain"
    if suffix == ".parquet":
        RATINGS.write_parquet(plain)
    else:
        RATINGS.write_csv(plain)
    content = plain.read_bytes()
    path.write_bytes(gzip.compress(content) if suffix == ".csv.gz" else content)
    assert len(load(str(path), scale="1:5").to_frame()) == 3
    assert read_table(path).equals(RATINGS)


def test_a_folder_is_read_whatever_its_name(tmp_path: Path) -> None:
    folder = odd(tmp_path, "")
    folder.mkdir()
    RATINGS.write_parquet(tmp_path / "plain")
    (tmp_path / "plain").rename(odd(folder, ".parquet"))
    assert len(load(str(folder), scale="1:5").to_frame()) == 3


def test_the_command_reads_a_file_whatever_its_name(tmp_path: Path) -> None:
    RATINGS.write_csv(tmp_path / "plain")
    path = (tmp_path / "plain").rename(odd(tmp_path, ".csv"))
    assert app.run(["data", "info", str(path), "--scale", "1:5", "--json"]) == 0


def test_a_missing_file_is_named_in_one_printable_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["data", "info", str(odd(tmp_path, ".csv")), "--scale", "1:5"]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and "odd\\udcff.csv" in message
