"""Damaged Parquet files: refused by their structure, and a clear end if the reader aborts."""

import io
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from taciturn.data import load
from taciturn.errors import InvalidDocument
from taciturn.tables import expansion
from taciturn.tables.parquet_check import check_parquet
from taciturn.tables.thrift import Damaged, Fields, Reader
from taciturn.tables.whole import read_table

COUNT = 120
TABLE = pa.table(
    {
        "user_id": [f"user{row % 40}" for row in range(COUNT)],
        "item_id": [row // 40 for row in range(COUNT)],
        "rating": [1.0 + row % 5 for row in range(COUNT)],
        "tags": [None if row % 7 == 0 else [row] * (row % 3) for row in range(COUNT)],
    }
)
FLAT = TABLE.drop_columns(["tags"])
DELTA = {
    "user_id": "DELTA_BYTE_ARRAY",
    "item_id": "DELTA_BINARY_PACKED",
    "rating": "BYTE_STREAM_SPLIT",
}


def arrow(table: pa.Table = TABLE, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


def by_polars(**options: Any) -> bytes:
    file = io.BytesIO()
    pl.DataFrame(FLAT).write_parquet(file, **options)
    return file.getvalue()


FILES: dict[str, Callable[[], bytes]] = {
    "dictionary": lambda: arrow(compression="none"),
    "plain": lambda: arrow(compression="none", use_dictionary=False),
    "delta": lambda: arrow(FLAT, compression="none", use_dictionary=False, column_encoding=DELTA),
    "version 2": lambda: arrow(compression="none", data_page_version="2.0"),
    "small pages": lambda: arrow(data_page_size=64, row_group_size=50, write_page_index=True),
    "snappy": lambda: arrow(compression="snappy"),
    "gzip, version 2": lambda: arrow(compression="gzip", data_page_version="2.0"),
    "zstd": lambda: arrow(compression="zstd"),
    "polars": by_polars,
    "polars, uncompressed": lambda: by_polars(compression="uncompressed", row_group_size=50),
}


@pytest.mark.parametrize("name", FILES)
def test_a_sound_file_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.parquet").write_bytes(FILES[name]())
    assert len(load(tmp_path / "a.parquet", scale="1:5").to_frame()) == COUNT
    assert len(read_table(tmp_path / "a.parquet")) == COUNT


@pytest.mark.parametrize("kind", ["arrow", "polars"])
def test_a_table_without_rows_is_sound(tmp_path: Path, kind: str) -> None:
    if kind == "arrow":
        pq.write_table(TABLE.slice(0, 0), tmp_path / "a.parquet")
    else:
        pl.DataFrame(FLAT).clear().write_parquet(tmp_path / "a.parquet")
    assert len(read_table(tmp_path / "a.parquet")) == 0


@pytest.mark.parametrize("name", FILES)
def test_any_changed_byte_passes_or_is_refused(tmp_path: Path, name: str) -> None:
    content, chance, path = FILES[name](), np.random.default_rng(7), tmp_path / "a.parquet"
    refused = 0
    for place in chance.choice(len(content), 400, replace=False):
        changed = bytearray(content)
        changed[place] ^= int(chance.integers(1, 256))
        path.write_bytes(changed)
        try:
            check_parquet(str(path))
        except InvalidDocument:
            refused += 1
    assert refused > 20


@pytest.mark.parametrize("cut", [0, 3, 11, 12, 400, -1, -8, -9])
def test_a_truncated_file_is_refused(tmp_path: Path, cut: int) -> None:
    (tmp_path / "a.parquet").write_bytes(FILES["zstd"]()[:cut])
    with pytest.raises(InvalidDocument, match=r"a\.parquet as a table"):
        load(tmp_path / "a.parquet", scale="1:5")


def with_negative_count() -> bytes:
    """File with a data page of -121 values, for which polars would allocate 2^61 bytes or so."""
    content = bytearray(arrow(FLAT, compression="none"))
    begin = pq.ParquetFile(io.BytesIO(bytes(content))).metadata.row_group(0).column(0)
    # The header of a data page begins a struct, whose first field is the number of values.
    place = content.index(b"\x2c\x15\xf0\x01", begin.data_page_offset)
    content[place + 2] ^= 1
    return bytes(content)


LOAD = """
import sys, taciturn
try:
    taciturn.load(sys.argv[1], scale="1:5")
except taciturn.TaciturnError as error:
    print(error)
"""


def python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_file_that_would_abort_the_reader_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(with_negative_count())
    result = python(LOAD, tmp_path / "a.parquet")
    assert result.returncode == 0 and result.stderr == ""
    assert "is damaged (a number is negative)" in result.stdout


def test_the_damaged_file_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(FILES["zstd"]())
    (tmp_path / "b.parquet").write_bytes(with_negative_count())
    with pytest.raises(InvalidDocument, match=r"b\.parquet"):
        load(tmp_path, scale="1:5")


@pytest.mark.parametrize("encoding", ["dictionary", "plain"])
def test_a_file_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setattr(expansion, "SMALL", 2**16)
    path, count = tmp_path / "a.parquet", 10**6
    table = pa.table({"user_id": [1] * count, "item_id": [1] * count, "rating": [3.0] * count})
    pq.write_table(table, path, compression="gzip", use_dictionary=encoding == "dictionary")
    with pytest.raises(InvalidDocument, match="pass a larger max_expansion"):
        load(path, scale="1:5", duplicates="last")
    with pytest.raises(InvalidDocument, match="if you trust it, write it as plain text"):
        read_table(path)
    assert len(load(path, scale="1:5", duplicates="last", max_expansion=1e5).to_frame()) == 1


@pytest.mark.parametrize("byte", [b"\x1c", b"\x19", b"\x29"])
def test_deep_nesting_is_damage(byte: bytes) -> None:
    wanted: tuple[Fields, ...] = ({}, {1: None}, {1: {1: {}}})
    for fields in wanted:
        with pytest.raises(Damaged):
            Reader(byte * 5000).struct(fields)


ABORT = """
import os, sys, threading
from taciturn.tables.abort_guard import abort_guard
with abort_guard("ratings\\n.parquet"):
    with abort_guard("other"):
        pass
    if sys.argv[1] == "inside":
        os.abort()
    if sys.argv[1] == "thread":
        threading.Thread(target=os.abort).start()
        threading.Event().wait()
os.abort()
"""


@pytest.mark.parametrize("place", ["inside", "thread"])
def test_an_abort_of_the_reader_ends_with_a_line_and_code_2(place: str) -> None:
    result = python(ABORT, place)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("error: the Parquet reader aborted while reading ")


def test_an_abort_outside_the_guard_is_left_alone() -> None:
    assert python(ABORT, "outside").returncode == -signal.SIGABRT


READER_ABORTS = """
import os, sys
import numpy as np
import polars as pl
from taciturn.cli import main
pl.LazyFrame.collect_batches = pl.LazyFrame.collect = lambda *_, **__: os.abort()
main(["data", "info", sys.argv[1], "--scale", "1:5"])
"""


def test_the_command_names_the_file_whose_reader_aborts(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(FILES["zstd"]())
    result = python(READER_ABORTS, path)
    assert result.returncode == 2
    assert result.stderr.startswith(f"error: the Parquet reader aborted while reading {path};")
