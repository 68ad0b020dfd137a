"""Compressed text files that unpack to far more than their size."""

import bz2
import gzip
import io
import lzma
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from taciturn.cli import app
from taciturn.data import load
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.tables import expansion
from taciturn.tables.expansion import ExpansionLimit, unpacked
from taciturn.tables.whole import read_table

HEADER = b"user_id,item_id,rating\n"
ROWS = HEADER + b"".join(b"u%d,%d,3\n" % (user, item) for user in range(30) for item in range(9))


def zipped(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ratings.csv", content)
    return file.getvalue()


def zstd_stored(content: bytes) -> bytes:
    """Zstandard frame whose blocks store their bytes, behind a frame to skip."""
    blocks = [content[begin : begin + 1000] for begin in range(0, len(content), 1000)]
    frame = b"\x28\xb5\x2f\xfd\x00\x38"
    for place, block in enumerate(blocks):
        is_last = place == len(blocks) - 1
        frame += (is_last | len(block) << 3).to_bytes(3, "little") + block
    return b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + frame


def zstd_bomb(blocks: int) -> bytes:
    """Zstandard frame of a header line and of zeros, 128 KiB in each four bytes."""
    head = (len(HEADER) << 3).to_bytes(3, "little") + HEADER
    zeros = (2 | 2**17 << 3).to_bytes(3, "little") + b"0"
    last = (3 | 2**17 << 3).to_bytes(3, "little") + b"0"
    return b"\x28\xb5\x2f\xfd\x00\x38" + head + zeros * (blocks - 1) + last


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zip": zipped,
    "csv": zlib.compress,  # recognised by its first bytes, whatever the name
}


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accept only 64 KiB from a small file instead of 64 MiB."""
    monkeypatch.setattr(expansion, "SMALL", 2**16)


@pytest.mark.usefixtures("tight")
@pytest.mark.parametrize("kind", [*PACK, "zst"])
def test_a_bomb_is_refused_and_the_limit_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"ratings.{kind}"
    packed = zstd_bomb(1000) if kind == "zst" else PACK[kind](HEADER + b"0" * 2**25)
    path.write_bytes(packed)
    with pytest.raises(InvalidDocument) as caught:
        load(path, scale="1:5")
    assert "max_expansion" in str(caught.value)
    assert f"more than {max(2**16, 100 * len(packed)):,} bytes" in str(caught.value)
    for read in (read_table, lambda path: unpacked(ExpansionLimit(str(path)))):
        with pytest.raises(InvalidDocument, match="if you trust it, write it as plain text"):
            read(path)


@pytest.mark.usefixtures("tight")
@pytest.mark.parametrize("kind", PACK)
def test_the_option_raises_the_limit(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"ratings.{kind}"
    path.write_bytes(PACK[kind](HEADER + b"u1,1,3\n" * 20_000))
    with pytest.raises(InvalidDocument, match="pass a larger max_expansion"):
        load(path, scale="1:5", duplicates="last")
    assert len(load(path, scale="1:5", duplicates="last", max_expansion=2000).to_frame()) == 1


@pytest.mark.parametrize("kind", PACK)
def test_usual_files_are_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"ratings.{kind}"
    path.write_bytes(PACK[kind](ROWS))
    assert len(load(path, scale="1:5").to_frame()) == 270
    assert len(read_table(path)) == 270


def test_zstandard_blocks_are_measured_exactly_where_they_state_their_size(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv.zst"
    path.write_bytes(zstd_stored(ROWS))
    with path.open("rb") as file:
        assert expansion._zstd_size(file) == len(ROWS)
    path.write_bytes(zstd_stored(ROWS)[11:])  # polars does not read a skipped frame first
    assert len(load(path, scale="1:5").to_frame()) == 270


def test_several_members_of_a_gzip_file_count_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ratings.csv.gz"
    path.write_bytes(gzip.compress(HEADER) + gzip.compress(b"0" * 2**20) * 70)
    unpacked(ExpansionLimit(str(path), 1100))
    monkeypatch.setattr(expansion, "SMALL", 2**20)
    with pytest.raises(InvalidDocument, match="unpacks to more"):
        unpacked(ExpansionLimit(str(path), 900))


@pytest.mark.parametrize("kind", ["gz", "zst", "csv", "bz2", "xz"])
@pytest.mark.usefixtures("tight")
def test_a_truncated_file_is_an_error_of_one_line(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"ratings.{kind}"
    packed = zstd_bomb(1000) if kind == "zst" else PACK[kind](HEADER + b"0" * 2**20)
    path.write_bytes(packed[: len(packed) - 5])
    with pytest.raises(InvalidDocument):
        load(path, scale="1:5")


def test_text_that_is_compressed_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv.bz2"
    path.write_bytes(bz2.compress(gzip.compress(ROWS)))
    with pytest.raises(InvalidDocument, match="compressed twice"):
        load(path, scale="1:5")


@pytest.mark.parametrize("factor", [0, -1, "many", float("nan")])
def test_the_option_must_be_a_positive_number(factor: Any) -> None:
    with pytest.raises(InvalidParameter, match="max_expansion"):
        load(([1], [1], [3.0]), scale="1:5", max_expansion=factor)


def test_the_command_takes_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ratings.csv.gz"
    path.write_bytes(gzip.compress(ROWS + b"\n" * 2**26))
    assert app.run(["data", "info", str(path), "--scale", "1:5"]) == 2
    assert "pass a larger --max-expansion" in capsys.readouterr().err
    assert app.run(["data", "info", str(path), "--scale", "1:5", "--max-expansion", "0"]) == 2
    assert "--max-expansion must be" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_checking_takes_little_memory(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"ratings.csv.{kind}"
    line = gzip.compress(HEADER + b"u1,1,") + gzip.compress(b"0" * 2**24) * 32
    path.write_bytes(zstd_bomb(2**14) if kind == "zst" else line)
    code = (
        "import re, sys, taciturn\n"
        "try: taciturn.load(sys.argv[1], scale='1:5')\n"
        "except taciturn.TaciturnError as error: assert 'unpacks to more' in str(error)\n"
        "else: raise SystemExit('read')\n"
        "peak = int(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1])\n"
        "assert peak < 250_000, peak\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=60)
