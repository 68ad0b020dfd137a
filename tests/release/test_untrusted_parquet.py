"""Tables from strangers: refused with one line, in little memory, or exactly what was written."""

import io
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from taciturn.errors import InvalidDocument
from taciturn.model.profiles import Profiles
from taciturn.release import bundle
from taciturn.release.plain_parquet import PlainTable, decode, encode
from taciturn.release.read import load_release
from taciturn.release.tables import profiles_from_parquet
from taciturn.release.verify import verify_release
from tests.release.helpers import copy, reseal
from tests.release.test_plain_parquet import decoded, make_table, widths

# These releases are copies of a signed one, and loaded without its key.
pytestmark = pytest.mark.filterwarnings("ignore::taciturn.errors.SignatureNotChecked")

REFUSED = "is not a table of profiles as a release has it"


def read_items(content: bytes, rows: int = 5, width: int = 2) -> Profiles:
    return profiles_from_parquet(
        content, "items.parquet", "item_id", count=rows, width=width, has_variances=False
    )


EVERY_BYTE = """
import sys
from pathlib import Path
from taciturn.errors import TaciturnError
from taciturn.release.tables import profiles_from_parquet

content = Path(sys.argv[1]).read_bytes()
for place in range(len(content)):
    for byte in range(256):
        changed = content[:place] + bytes([byte]) + content[place + 1 :]
        try:
            profiles_from_parquet(
                changed, "items.parquet", "item_id", count=5, width=2, has_variances=False
            )
        except TaciturnError:
            pass
print("read all")
"""


@pytest.mark.slow
def test_no_changed_byte_ends_the_process(signed: Path) -> None:
    """All values of all bytes; a general reader allocated 10^18 bytes for one of them and died."""
    command = [sys.executable, "-c", EVERY_BYTE, str(signed / "release" / bundle.ITEMS)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0 and result.stdout == "read all\n", result.stderr


PEAK = """
import resource, sys
from pathlib import Path
from taciturn.errors import TaciturnError
from taciturn.release.tables import profiles_from_parquet

content = Path(sys.argv[1]).read_bytes()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    profiles_from_parquet(
        content, "items.parquet", "item_id", count=int(sys.argv[2]), width=0, has_variances=False
    )
except TaciturnError as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, error)
"""


def test_equal_rows_compressed_into_a_few_bytes_take_no_memory(tmp_path: Path) -> None:
    """20 million equal rows in 200 kB take hundreds of megabytes in a general reader."""
    rows, groups = 1_000_000, 20
    table = pa.table(
        {
            "item_id": pa.array(np.ones(rows, dtype=np.int64)),
            "bias": pa.array(np.ones(rows, dtype=np.float32)),
            "profile": pa.array([[]] * rows, pa.list_(pa.float32())),
        }
    )
    file = tmp_path / "items.parquet"
    with pyarrow.parquet.ParquetWriter(file, table.schema, compression="zstd") as writer:
        for _ in range(groups):
            writer.write_table(table)
    assert file.stat().st_size < 300_000
    command = [sys.executable, "-c", PEAK, str(file), str(rows * groups)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    kilobytes, _, message = result.stdout.partition(" ")
    assert int(kilobytes) < 20_000
    assert REFUSED in message


def test_bytes_between_pages_and_footer_are_refused(signed: Path, tmp_path: Path) -> None:
    release = copy(signed / "release", tmp_path / "r")
    content = (release / bundle.ITEMS).read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    hidden = random.Random(1).randbytes(13_000)  # noqa: S311 any bytes
    (release / bundle.ITEMS).write_bytes(content[:footer] + hidden + content[footer:])
    reseal(release)
    with pytest.raises(InvalidDocument, match="items.parquet"):
        load_release(release)
    assert not verify_release(release).passed


def test_a_table_in_another_layout_is_refused(signed: Path) -> None:
    content = (signed / "release" / bundle.ITEMS).read_bytes()
    frame = pl.read_parquet(io.BytesIO(content))
    assert len(read_items(content)) == 5
    for options in ({}, {"compression": "uncompressed", "statistics": False}):
        other = io.BytesIO()
        frame.write_parquet(other, **options)  # type: ignore[arg-type]
        with pytest.raises(InvalidDocument, match=REFUSED):
            read_items(other.getvalue())
    other = io.BytesIO()
    pyarrow.parquet.write_table(
        frame.to_arrow(), other, compression="none", use_dictionary=False, write_statistics=False
    )
    with pytest.raises(InvalidDocument, match=REFUSED):
        read_items(other.getvalue())


TABLES = [make_table(4, 2, "text", variances=True), make_table(9, 3), make_table(2, 0, "unsigned")]


def damaged(content: bytes, other: bytes, chance: random.Random) -> bytes:
    """Flip, delete, insert, splice or truncate bytes, or change the stated size of the footer."""
    place = chance.randrange(len(content))
    size = chance.choice([1, 2, 4, 8, 40, 400])
    match chance.randrange(8):
        case 0:
            return (
                content[:place]
                + bytes([content[place] ^ 1 << chance.randrange(8)])
                + content[place + 1 :]
            )
        case 1:
            return content[:place] + chance.randbytes(size) + content[place + size :]
        case 2:
            return content[:place] + content[place + size :]
        case 3:
            return (
                content[:place]
                + chance.choice([chance.randbytes(size), bytes(size)])
                + content[place:]
            )
        case 4:
            return content[:place]
        case 5:
            return content[:place] + other[chance.randrange(len(other)) :]
        case 6:
            number = chance.choice([0, 1, place, len(content), 2**31, 2**32 - 1])
            return content[:-8] + number.to_bytes(4, "little") + content[-4:]
        case _:
            again = chance.randrange(len(content))
            return content[:place] + content[again : again + size] + content[place:]


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES, ids=["text", "signed", "unsigned"])
def test_damaged_tables_are_refused_or_decode_to_their_own_bytes(table: PlainTable) -> None:
    chance = random.Random(len(table.ids))  # noqa: S311 what to damage
    content = encode(table)
    others = [content, *map(encode, TABLES), chance.randbytes(1000)]
    refused = accepted = 0
    for _ in range(10_000):
        changed = content
        for _ in range(chance.choice([1, 1, 1, 2, 5])):
            changed = damaged(changed or b"\0", chance.choice(others), chance)
        try:
            found = decoded(changed, table)
        except InvalidDocument as error:
            assert "\n" not in str(error) and len(str(error)) < 200
            refused += 1
        else:
            assert encode(found) == changed
            accepted += 1
    assert refused > 5_000 and accepted > 50  # values may change, nothing else


def test_facts_that_the_table_does_not_have_are_refused() -> None:
    table = make_table(6, 2, "text")
    content, right = encode(table), widths(table)
    decode(content, "t", "item_id", 6, right)
    for id_name, rows, wrong in (
        ("user_id", 6, right),
        ("item_id", 5, right),
        ("item_id", 7, right),
        ("item_id", 0, right),
        ("item_id", -1, right),
        ("item_id", 10**4300, right),
        ("item_id", 6, {"bias": None, "profile": 1}),
        ("item_id", 6, {"bias": None, "profile": 0}),
        ("item_id", 6, {"bias": None, "profile": 10**4300}),
        ("item_id", 6, {"profile": 2, "bias": None}),
        ("item_id", 6, {"bias": None}),
        ("item_id", 6, right | {"bias_variance": None, "profile_variance": 2}),
    ):
        with pytest.raises(InvalidDocument, match=REFUSED):
            decode(content, "t", id_name, rows, wrong)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" * 3, bytes(100), b"\xff" * 100])
def test_bytes_that_are_no_table_are_refused(content: bytes) -> None:
    with pytest.raises(InvalidDocument, match=REFUSED):
        read_items(content, 1, 0)


def test_ids_that_are_not_utf8_or_leave_their_page_are_refused() -> None:
    content = encode(make_table(3, 1, "text"))
    for before, after, words in (
        ("𝛼1".encode(), b"\xff\xff\xff\xff1", "not UTF-8"),
        ("𝛼1".encode(), b"\xed\xa0\x80\x801", "not UTF-8"),  # half of a surrogate pair
        (b"\x05\0\0\0", b"\x06\0\0\0", "is not"),
        (b"\x05\0\0\0", b"\xff\xff\xff\xff", "do not fill their page"),
        (b"\x05\0\0\0", b"\x04\0\0\0", "do not fill their page"),
    ):
        assert before in content
        with pytest.raises(InvalidDocument, match=words):
            decoded(content.replace(before, after, 1), make_table(3, 1, "text"))


@pytest.mark.parametrize("ids", ["signed", "text"])
def test_memory_is_a_small_multiple_of_the_size_of_the_file(ids: str) -> None:
    table = make_table(30_000, 0, ids)
    if ids == "text":  # the shortest ids take the most memory for their size
        table = PlainTable(
            id_name="item_id", ids=[chr(256 + i) for i in range(30_000)], columns=table.columns
        )
    content = encode(table)
    tracemalloc.start()
    try:
        decoded(content, table)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 12 * len(content)
