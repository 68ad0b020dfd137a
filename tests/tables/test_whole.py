"""Small tables are read by the same rules as training data, in every format."""

import bz2
import gzip
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from taciturn.data.id_lists import IdLists
from taciturn.errors import InvalidDocument
from taciturn.recommend.tables import item_titles, own_ratings
from taciturn.tables.names import ITEM, USER
from taciturn.tables.whole import id_column, read_table
from tests.solvers.helpers import random_ratings


def zipped(path: Path, content: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("inside", content)


WRITERS: dict[str, Callable[[Path, bytes], Any]] = {
    "": lambda path, content: path.write_bytes(content),
    ".gz": lambda path, content: path.write_bytes(gzip.compress(content)),
    ".bz2": lambda path, content: path.write_bytes(bz2.compress(content)),
    ".xz": lambda path, content: path.write_bytes(lzma.compress(content)),
    ".zip": zipped,
}


@pytest.fixture(params=WRITERS)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str, str], Path]:
    """Write text to a file, plain or compressed according to its name."""

    def write(name: str, text: str, encoding: str = "utf-8") -> Path:
        path = tmp_path / f"{name}{request.param}"
        WRITERS[request.param](path, text.encode(encoding))
        return path

    return write


@pytest.mark.parametrize("separator", [",", "\t", ";", "|", " ", "::"])
def test_compressed_tables_are_read_like_plain_ones(written: Any, separator: str) -> None:
    rows = [("user_id", "item_id"), ("bob", "7"), ("ann", "8")]
    path = written("seen.csv", "\n".join(separator.join(row) for row in rows) + "\n")
    assert read_table(path).to_dict(as_series=False) == {
        "user_id": ["bob", "ann"],
        "item_id": [7, 8],
    }


def test_a_compressed_id_list_is_read_like_a_plain_one(written: Any) -> None:
    ratings = random_ratings(3, users=8, items=6)
    items = written("items.csv", "\n".join(["item_id", *map(str, range(100, 120))]) + "\n")
    users = written("users.txt", "\n".join(["user id", *map(str, range(20))]) + "\n")
    wide = IdLists(users=users, items=items).extend(ratings)
    assert wide.shape == (20, 20)
    assert wide.user_ids.dtype == pl.String and wide.item_ids.dtype == pl.Int64


def test_compressed_titles_are_read_like_plain_ones(written: Any) -> None:
    ids = pl.Series([10, 13])
    named = written("titles.csv", 'movieId,title\n10,"Ten, the film"\n13,Thirteen\n')
    assert item_titles(named, ids).to_list() == ["Ten, the film", "Thirteen"]
    old = written("movies.dat", '10::"Am\u00e9lie": a film::x\n13::B::y\n', "latin-1")
    assert item_titles(old, ids).to_list() == ['"Am\u00e9lie": a film', "B"]


def test_compressed_own_ratings_are_read_like_plain_ones(written: Any) -> None:
    path = written("own.csv", "movieId;stars\n10;5\n13;2.5\n")
    assert own_ratings(path, pl.Series([10])) == {10: 5.0, 13: 2.5}


def test_ids_in_an_old_file_without_a_header_are_its_first_column(tmp_path: Path) -> None:
    (tmp_path / "movies.dat").write_text("1::Heat: the film::Crime\n12::NA::Drama\n")
    frame = read_table(tmp_path / "movies.dat")
    assert id_column(frame, ITEM, "movies.dat").to_list() == [1, 12]
    assert frame["title"].to_list() == ["Heat: the film", None]


def test_a_single_column_needs_no_separator(tmp_path: Path) -> None:
    for header in ("item_id", "item id", '"Item ID"', "id"):
        (tmp_path / "ids.csv").write_text(f"{header}\n7\n8\n")
        ids = id_column(read_table(tmp_path / "ids.csv"), ITEM, "ids.csv")
        assert ids.to_list() == [7, 8]


def test_a_table_without_rows_keeps_its_columns(tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("user_id,item_id\n")
    frame = read_table(tmp_path / "none.csv")
    assert frame.columns == ["user_id", "item_id"] and len(frame) == 0


def test_parquet_is_recognised_by_its_first_bytes(tmp_path: Path) -> None:
    pl.DataFrame({"item_id": [7]}).write_parquet(tmp_path / "ids")
    assert read_table(tmp_path / "ids")["item_id"].to_list() == [7]


def test_untyped_ids_stay_text(tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("user_id\n7\n8\n")
    assert read_table(tmp_path / "users.csv", is_typed=False)["user_id"].to_list() == ["7", "8"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("none.csv", None, "no such file"),
        ("empty.csv", b"", "is empty"),
        ("latin.csv", "item_id,title\n1,\u00c9\n".encode("latin-1"), "UTF-8"),
        ("ragged.csv", b"item_id,title\n1,2,3\n", "line 2 .* has 3 fields"),
        ("quotes.csv", b'item_id,title\n1,"a\n2,b"\n', "line break"),
        ("long.dat", b"id::title\n1::a::b\n", "has 3 fields, but the first line has 2"),
        ("noise.gz", b"\x1f\x8bnoise", "damaged"),
        ("noise.zip", b"noise", "as a table"),
        ("noise.parquet", b"PAR1 noise", "as a table"),
    ],
)
def test_an_unreadable_table_is_named(
    tmp_path: Path, name: str, content: bytes | None, words: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidDocument, match=words) as error:
        read_table(tmp_path / name)
    assert name in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(("header", "flags", "name"), [(b"PK\3\4", 6, 30), (b"PK\1\2", 8, 46)])
def test_a_zip_file_whose_member_has_no_valid_name_is_refused(
    tmp_path: Path, header: bytes, flags: int, name: int
) -> None:
    """The name is flagged as UTF-8 and is not, in the header of the file or in the directory."""
    zipped(tmp_path / "table.zip", b"item_id\n7\n")
    content = bytearray((tmp_path / "table.zip").read_bytes())
    start = content.index(header)
    content[start + flags + 1] |= 8
    content[start + name] = 0x8C
    (tmp_path / "table.zip").write_bytes(content)
    with pytest.raises(InvalidDocument, match=r"cannot read .*table\.zip as a table"):
        read_table(tmp_path / "table.zip")


def test_the_error_for_a_table_without_ids_names_the_column(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("one,two\n1,2\n")
    with pytest.raises(InvalidDocument, match=r"a\.csv has no column of user ids.*user_id"):
        id_column(read_table(tmp_path / "a.csv"), USER, "a.csv")
