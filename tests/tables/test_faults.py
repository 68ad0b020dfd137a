"""Faults in text files: one message for each cause, with the line, and never a field."""

import gzip
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest

from taciturn.data import load
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.tables.whole import read_table
from tests.conftest import Command

HEADER = b"user_id,item_id,rating\n"

FAULTS = [
    (HEADER + b"1,2,3\nanna,3,secret\n", "the rating in line 3 is not a number"),
    (HEADER + b"1,2,3\n\nanna,3,secret\n", "the rating in line 4 is not a number"),
    (HEADER.replace(b"\n", b"\r\n") + b"1,2,3\r\nanna,3,secret\r\n", "the rating in line 3"),
    (HEADER + b"1,2,3\nanna,3,4,secret\n", "line 3 of .* has 4 fields, but the header has 3"),
    (HEADER + b"1,2,3\nanna,secret\n", "line 3 of .* has 2 fields, but the header has 3"),
    (HEADER + b"anna;2;secret\n", "line 2 of .* has 1 field, but the header has 3"),
    (HEADER + b"1,2,3\n\nanna,2,4\n", "line 3 of .* is blank"),
    (HEADER + b"\nanna,2,4\n", "line 2 of .* is blank"),
    (b"\n" + HEADER + b"anna,2,4\n", "the first line of .* is blank"),
    (b"", "is empty"),
    (HEADER, "the source has no rows"),
    (HEADER + b"1,2,3\nanna,2,\n", "rows without a rating: 1, the first in line 3"),
    (HEADER + b"1,2,3\n1,3,9\nanna,2,9\n", "2 of 3 ratings are not on the scale 1:5, .* line 3"),
    (HEADER + b"anna,2,3\n1,3,4\nanna,2,4\n", "pair: 1, for example in line 2 and line 4"),
    (HEADER + b'1,2,3\n"anna,2,4\n1,5,3\n', "line 3 of .* has a quote that is not closed"),
    (HEADER + b'1,2,3\nanna,"2\n",4\n', "a field in line 3 of .* has a line break"),
    (b"user_id::item_id::rating\n1::2::3\nanna:3:4\n", "line 3 of .* has single colons"),
    (HEADER + b"1,2,3\nann\xe9,3,4\n", "line 3 of .* is not UTF-8 text"),
    (b"us\xe9r," + HEADER + b"1,2,3,4\n", "line 1 of .* is not UTF-8 text"),
    ((HEADER + b"anna,2,3\n").decode().encode("utf-16"), "line 1 .* encoding=.utf-16"),
]


@pytest.mark.parametrize(("content", "message"), FAULTS)
def test_each_cause_has_a_message_of_its_own(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "ratings.csv"
    file.write_bytes(content)
    with pytest.raises(InvalidDocument, match=message) as caught:
        load(file, scale="1:5")
    assert not any(word in str(caught.value) for word in ("anna", "secret"))
    packed = tmp_path / "ratings.csv.gz"
    packed.write_bytes(gzip.compress(content))
    with pytest.raises(InvalidDocument, match=message):
        load(packed, scale="1:5")


def test_rows_in_memory_have_an_index(tmp_path: Path) -> None:
    frame = pl.DataFrame({"user": [1, 2], "item": [1, 1], "rating": ["3", "secret"]})
    with pytest.raises(InvalidDocument, match="the rating in row index 1 is not a number"):
        load(frame, scale="1:5")
    frame.with_columns(rating=pl.Series([3.0, 9.0])).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(InvalidDocument, match="the first in row index 1;"):
        load(tmp_path / "a.parquet", scale="1:5")


def test_a_line_after_a_piece_has_its_own_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taciturn.tables.text.PIECE", 4)
    monkeypatch.setattr("taciturn.tables.diagnosis._PIECE", 4)
    rows = [f"{user},1,3" for user in range(20)]
    for bad, message in (("99,1,x", "rating in line 17"), ("99,1,3,4", "line 17 of")):
        text = "\n".join([HEADER.decode().strip(), *rows[:15], bad, *rows[15:]])
        (tmp_path / "a.csv").write_text(text)
        with pytest.raises(InvalidDocument, match=message):
            load(tmp_path / "a.csv", scale="1:5")


def test_dropping_everything_names_the_option_that_did(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(HEADER + b"1,2,30\n1,3,40\n")
    with pytest.raises(InvalidDocument, match='outside="drop" dropped all 2 rows'):
        load(tmp_path / "a.csv", scale="1:5", outside="drop")
    (tmp_path / "a.csv").write_bytes(HEADER + b"1,2,\n1,,4\n")
    with pytest.raises(InvalidDocument, match='missing="drop" dropped all 2 rows'):
        load(tmp_path / "a.csv", scale="1:5", missing="drop")


def test_bad_timestamps_and_item_ids_have_lines(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item,rating,time\n1,2,3,5\n1,3,3,never\n")
    with pytest.raises(InvalidDocument, match="the timestamp in line 3 is neither"):
        load(tmp_path / "a.csv", scale="1:5", timestamps=True)
    (tmp_path / "a.csv").write_text("user,item,rating,time\n1,2,3,5\n1,,3,6\n1,3,3,\n")
    with pytest.raises(InvalidDocument, match="no timestamp in line 4"):
        load(tmp_path / "a.csv", scale="1:5", timestamps=True, missing="drop")
    (tmp_path / "a.csv").write_text("user,item,rating\n1,2,3\n1,x7,3\n")
    with pytest.raises(InvalidDocument, match="the item id in line 3 is not a whole number"):
        load(tmp_path / "a.csv", scale="1:5", item_id_type="int")


HEADERS = [
    "User-ID;ISBN;Book-Rating",
    "uid,movie,stars",
    "USER ID,Item-Id,Score",
    "reviewerID,asin,overall",
    "customer_id,product,star rating",
    'user_id, "item_id", rating',
]


@pytest.mark.parametrize("header", HEADERS)
def test_common_column_names_are_recognised(tmp_path: Path, header: str) -> None:
    separator = ";" if ";" in header else ","
    (tmp_path / "a.csv").write_text(f"{header}\n{separator.join('123')}\n")
    assert load(tmp_path / "a.csv", scale="1:5").to_frame().rows() == [("1", "2", 3.0)]


def test_blanks_around_fields_are_dropped(tmp_path: Path) -> None:
    text = 'user_id, item_id, rating\n1, 2, 3\n 1 ,3\t, 4 \n2, "a ""b""", 5\n2, NA ,1\n'
    (tmp_path / "a.csv").write_text(text)
    found = load(tmp_path / "a.csv", scale="1:5", missing="drop").to_frame()
    assert set(found.rows()) == {("1", "2", 3.0), ("1", "3", 4.0), ("2", 'a "b"', 5.0)}
    assert read_table(tmp_path / "a.csv")["user_id"].to_list() == [1, 1, 2, 2]


def test_a_decimal_comma_is_declared(tmp_path: Path) -> None:
    for text in ("user;item;rating\n1;2;3,5\n1;3;4\n", 'user,item,rating\n1,2,"3,5"\n1,3,4\n'):
        (tmp_path / "a.csv").write_text(text)
        found = load(tmp_path / "a.csv", scale="1:5", decimal_comma=True)
        assert found.to_frame()["rating"].to_list() == [3.5, 4.0]
        with pytest.raises(InvalidDocument, match="line 2 is not a number.*decimal_comma=True"):
            load(tmp_path / "a.csv", scale="1:5")
    (tmp_path / "a.csv").write_text("user;item;rating\n1;2;3,5 \n1;3;4\n")  # read as text
    found = load(tmp_path / "a.csv", scale="1:5", decimal_comma=True)
    assert found.to_frame()["rating"].to_list() == [3.5, 4.0]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8", "UTF8"])
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_an_encoding_is_declared(tmp_path: Path, encoding: str, name: str) -> None:
    content = "user,item,rating\nJosé,2,3\n".encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    found = load(tmp_path / name, scale="1:5", encoding=encoding)
    assert found.user_ids.to_list() == ["José"]


def test_a_wrong_encoding_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("user,item,rating\n1,2,3\nJosé,2,3\n".encode())
    with pytest.raises(InvalidDocument, match="line 3 of .* is not ascii text"):
        load(tmp_path / "a.csv", scale="1:5", encoding="ascii")
    for unknown in ("secret", "rot13", 5):
        with pytest.raises(InvalidParameter, match="encoding must be a text encoding"):
            load(tmp_path / "a.csv", scale="1:5", encoding=cast("Any", unknown))
    with pytest.raises(InvalidParameter, match="encoding applies only to text files"):
        load(([1], [1], [3.0]), scale="1:5", encoding="latin-1")


def test_the_commands_take_both_options(taciturn: Command, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("user;item;rating\nJosé;2;3,5\nJosé;3;4\n".encode("latin-1"))
    info = "data", "info", tmp_path / "a.csv", "--scale", "1:5"
    assert "--encoding latin-1" in taciturn(*info).stderr
    assert "--decimal-comma" in taciturn(*info, "--encoding", "latin-1").stderr
    assert taciturn(*info, "--encoding", "latin-1", "--decimal-comma").returncode == 0
