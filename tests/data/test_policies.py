"""Bad input gives a clear error or needs an explicit option; errors quote no values."""

import zipfile
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from taciturn.data import load
from taciturn.data.options import Duplicates, ReadingOptions
from taciturn.data.readers import read_ratings
from taciturn.errors import InvalidDocument, InvalidParameter, TaciturnError
from tests.data.helpers import (
    EXPECTED,
    FRAME,
    ITEMS,
    TIMES,
    USERS,
    VALUES,
    as_dict,
    check,
    check_structure,
    text,
)
from tests.narrow import present


def test_the_scale_must_be_declared() -> None:
    with pytest.raises(InvalidParameter, match="declared"):
        load(FRAME, scale=None)


def test_values_outside_the_scale_are_refused_clipped_or_dropped() -> None:
    with pytest.raises(InvalidDocument, match="2 of 5 ratings are not on the scale 2:4"):
        load(FRAME, scale="2:4")
    clipped = load(FRAME, scale="2:4", outside="clip")
    assert as_dict(clipped) == {pair: min(max(v, 2), 4) for pair, v in EXPECTED.items()}
    dropped = load(FRAME, scale="2:4", outside="drop")
    assert as_dict(dropped) == {pair: v for pair, v in EXPECTED.items() if 2 <= v <= 4}
    check_structure(dropped)
    with pytest.raises(InvalidDocument, match="1 of 1"):
        load(([1], [1], [2.5]), scale="1:5:1")
    with pytest.raises(InvalidDocument, match="no ratings"):
        load(FRAME, scale="8:9", outside="drop")


@pytest.mark.parametrize("role", ["user_id", "item_id", "rating"])
def test_missing_values_are_refused_or_dropped(role: str) -> None:
    holes = FRAME.with_columns(
        pl.when(pl.int_range(pl.len()) == 1).then(None).otherwise(pl.col(role)).alias(role)
    )
    with pytest.raises(InvalidDocument, match=f"rows without a {role.removesuffix('_id')}: 1"):
        load(holes, scale="1:5")
    rest = {(u, i): v for n, ((u, i), v) in enumerate(EXPECTED.items()) if n != 1}
    assert as_dict(load(holes, scale="1:5", missing="drop")) == rest
    not_a_number = ([1, 2], [1, 2], [np.nan, 3.0])
    with pytest.raises(InvalidDocument, match="rows without a rating: 1"):
        load(not_a_number, scale="1:5")
    assert len(load(not_a_number, scale="1:5", missing="drop")) == 1


def test_missing_values_in_text_are_refused_or_dropped(tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text("user,item,rating\n1,1,3\n2,,4\nNA,3,4\n3,3,\n")
    with pytest.raises(InvalidDocument, match='line 4; .* missing="drop"'):
        load(file, scale="1:5")
    assert as_dict(load(file, scale="1:5", missing="drop")) == {("1", "1"): 3.0}


def test_duplicates_are_refused_or_merged() -> None:
    triples = ([1, 1, 2, 1, 2], [7, 7, 7, 8, 7], [1, 4, 5, 3, 2])
    with pytest.raises(
        InvalidDocument, match="pair: 2, for example in row index 0 and row index 1;"
    ):
        load(triples, scale="1:5:1")
    last = load(triples, scale="1:5:1", duplicates="last")
    assert as_dict(last) == {(1, 7): 4, (1, 8): 3, (2, 7): 2}
    mean = load(triples, scale="1:5:1", duplicates="mean")
    assert as_dict(mean) == {(1, 7): 2.5, (1, 8): 3, (2, 7): 3.5}
    assert mean.scale.step is None
    for ratings in (last, mean):
        check_structure(ratings)
    timed = (*triples, [9, 1, 1, 1, 2])
    newest = load(timed, scale="1:5:1", duplicates="last", timestamps=True)
    assert as_dict(newest) == {(1, 7): 1, (1, 8): 3, (2, 7): 2}
    assert present(newest.timestamps).tolist() == [9, 1, 2]


@pytest.mark.parametrize(
    "times",
    [
        TIMES,
        pl.Series(TIMES).cast(pl.Date),
        pl.Series([time * 10**6 for time in TIMES]).cast(pl.Datetime("us")),
        [f"2005-09-0{day} 00:00:00" for day in (5, 4, 3, 2, 1)],
    ],
    ids=["numbers", "dates", "moments", "text"],
)
def test_timestamps_follow_their_ratings(times: Any) -> None:
    ratings = load((USERS, ITEMS, VALUES, times), scale="1:5", timestamps=True)
    order = np.argsort(present(ratings.timestamps))
    values = ratings.values()[order]
    assert values.tolist() == VALUES[::-1]
    assert load((USERS, ITEMS, VALUES, times), scale="1:5").timestamps is None


def test_missing_timestamps_are_an_error() -> None:
    with pytest.raises(InvalidDocument, match="no column of timestamps"):
        load((USERS, ITEMS, VALUES), scale="1:5", timestamps=True)
    with pytest.raises(InvalidDocument, match="timestamp"):
        load((USERS, ITEMS, VALUES, ["x"] * 5), scale="1:5", timestamps=True)


@pytest.mark.parametrize(
    "source",
    [
        ([], [], []),
        FRAME.clear(),
        sparse.csr_array((3, 4)),
    ],
)
def test_empty_input_is_refused(source: Any) -> None:
    with pytest.raises(InvalidDocument, match="no ratings"):
        load(source, scale="1:5")


def test_one_user_or_one_item_is_enough() -> None:
    assert as_dict(load(([7], ["x"], [3]), scale="1:5")) == {(7, "x"): 3}
    assert len(load(([7] * 3, [1, 2, 3], [3, 3, 3]), scale="1:5")) == 3
    assert len(load(([1, 2, 3], [7] * 3, [3, 3, 3]), scale="1:5")) == 3


@pytest.mark.parametrize(
    "source",
    [
        42,
        None,
        object(),
        ([1], [2]),
        ([1, 2], [1], [3]),
        ([[1]], [[1]], [[3]]),
        ([1, "a"], [1, 2], [3, 3]),
        ([1.5], [1], [3]),
        ([True], [1], [3]),
        ([1], [1], ["good"]),
        ([1], [1], [True]),
        pl.DataFrame({"a": [1], "b": [2]}),
        pl.DataFrame({"user": [1], "item": [2]}),
    ],
)
def test_other_input_is_refused(source: Any) -> None:
    with pytest.raises(TaciturnError) as caught:
        load(source, scale="1:5")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.csv", b""),
        ("word.csv", b"hello"),
        ("header.csv", b"user,item,rating\n"),
        ("two.csv", b"1,2\n3,4\n"),
        ("ragged.csv", b"user,item,rating\n1,2,3\n1,2,3,4,5\n"),
        ("words.csv", b"user,item,rating\n1,2,good\n"),
        ("latin.csv", "user,item,rating\nÄ,2,3\n".encode("latin-1")),
        ("noise.parquet", b"PAR1 this is not parquet"),
        ("noise.csv.bz2", b"noise"),
        ("noise.csv.xz", b"noise"),
        ("noise.csv.gz", b"\x1f\x8bnoise"),
        ("noise.zip", b"PK\x03\x04noise"),
        ("nul.csv", b"user,item,rating\n\0,\0,\0\n"),
    ],
)
def test_broken_files_are_refused(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidDocument) as caught:
        load(tmp_path / name, scale="1:5")
    message = str(caught.value)
    assert "\n" not in message and "good" not in message  # nothing of the content is quoted


@pytest.mark.parametrize(
    "content",
    [
        "1,2,3\n4,5,3\n1,000,2,5\n",
        "user,item,rating\nSmith, J,2,3\n",
        "user,item,rating\n1,10,20,3\n2,10,20,4\n",  # row names, as R writes them
        "1::x::3\n2::a:b:4::5\n",
        "1::x::3\n2:y:4\n",
    ],
)
def test_lines_whose_fields_are_shifted_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(InvalidDocument):
        load(tmp_path / "a.csv", scale="0:5")


def test_a_name_with_brackets_is_a_name(tmp_path: Path) -> None:
    (tmp_path / "r[1].csv").write_text("user,item,rating\n7,8,3\n")
    (tmp_path / "r1.csv").write_text("user,item,rating\n1,1,1\n2,2,2\n")
    assert as_dict(load(tmp_path / "r[1].csv", scale="1:5")) == {("7", "8"): 3.0}
    folder = tmp_path / "d[1]*"
    folder.mkdir()
    FRAME.write_parquet(folder / "a[0].parquet")
    check(load(folder, scale="1:5"))
    check(load(folder / "a[0].parquet", scale="1:5"))


@pytest.mark.parametrize("content", ["alice@x.org,Date,4\nbob@x.org,Night,3\n", "u,secret,NA\n"])
def test_a_first_line_is_never_quoted(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.csv").write_text(content)
    choices: tuple[dict[str, Any], ...] = ({}, {"columns": {"user": "who"}}, {"header": True})
    for options in choices:
        try:
            load(tmp_path / "a.csv", scale="1:5", **options)
        except TaciturnError as error:
            assert not any(word in str(error) for word in ("alice", "Date", "secret"))


def test_ids_that_do_not_fit_a_number_are_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"user,item,rating\n{2**64 - 1},1e5,3\n{10**21},100000,4\n")
    ratings = load(tmp_path / "a.csv", scale="1:5")
    assert ratings.user_ids.to_list() == sorted([str(2**64 - 1), str(10**21)])
    assert ratings.item_ids.to_list() == ["100000", "1e5"]


def test_leading_zeros_are_part_of_an_id(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item,rating\n007,0,3\n7,10,4\n")
    ratings = load(tmp_path / "a.csv", scale="1:5")
    assert as_dict(ratings) == {("007", "0"): 3.0, ("7", "10"): 4.0}


def test_the_separator_is_found_outside_quotes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('user_id,item_id,rating,"title::x"\n1,2,3,"a::b"\n')
    assert as_dict(load(tmp_path / "a.csv", scale="1:5")) == {("1", "2"): 3.0}


def test_missing_ids_in_pandas_can_be_dropped() -> None:
    import pandas as pd

    numbers = pd.DataFrame({"user": [1.0, None], "item": [1, 2], "rating": [3, 4]})
    words = pd.DataFrame({"user": ["a", pd.NA], "item": [1, 2], "rating": [3, 4]}).astype(
        {"user": "string"}
    )
    for frame, user in ((numbers, 1), (words, "a")):
        with pytest.raises(InvalidDocument, match="rows without a user: 1"):
            load(frame, scale="1:5")
        assert as_dict(load(frame, scale="1:5", missing="drop")) == {(user, 1): 3.0}


def test_the_scale_does_not_depend_on_whether_there_were_duplicates() -> None:
    for users in ([1, 1], [1, 2]):
        ratings = load((users, [7, 7], [1, 4]), scale="1:5:1", duplicates="mean")
        assert str(ratings.scale) == "1:5"


def test_damaged_archives_are_read_or_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", text(",") * 50)
    whole = bytearray((tmp_path / "a.zip").read_bytes())
    for place in range(40, 120, 7):
        broken = whole.copy()
        broken[place] ^= 0xFF
        (tmp_path / "b.zip").write_bytes(broken)
        try:
            load(tmp_path / "b.zip", scale="1:5", duplicates="last")
        except TaciturnError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("options", [{"scale": 5}, {"scale": (1, 5)}, {"columns": ["a"]}])
def test_options_of_the_wrong_type_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(TaciturnError):
        load(FRAME, **({"scale": "1:5"} | options))


@pytest.mark.parametrize("name", ["foo", "Scale", "fetch"])
def test_an_unknown_option_is_refused_by_name(name: str) -> None:
    option: dict[str, Any] = {name: 1}
    for source in (FRAME, "synthetic:10k"):
        with pytest.raises(InvalidParameter, match=f"no reading option '{name}'.*outside"):
            load(source, **option)


def test_options_are_checked_when_they_are_built() -> None:
    options = ReadingOptions.of(scale="1:5", columns="user=a,item=b", duplicates="last")
    assert str(options.scale) == "1:5" and options.duplicates is Duplicates.LAST
    assert options.columns == {"user": "a", "item": "b"}
    for bad in ({"scale": "5:1"}, {"duplicates": "all"}, {"columns": "user"}, {"outside": None}):
        with pytest.raises(InvalidParameter):
            ReadingOptions.of(**bad)


def test_absent_and_odd_paths_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    options = ReadingOptions.of(scale="1:5")
    for path in ("absent.csv", "absent.parquet", "a\0b", "x" * 300, tmp_path / "empty", "*.absent"):
        with pytest.raises(InvalidDocument):
            load(path, scale="1:5")
        with pytest.raises(InvalidDocument):
            read_ratings(path, options)
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.csv", "1,2,3")
        archive.writestr("b.csv", "1,2,3")
    with pytest.raises(InvalidDocument, match="2 files"):
        load(tmp_path / "two.zip", scale="1:5")


def test_ratings_cannot_be_changed() -> None:
    ratings = load(FRAME, scale="1:5")
    with pytest.raises(FrozenInstanceError):
        ratings.scale = None  # type: ignore[misc, assignment]
    with pytest.raises(ValueError, match="read-only"):
        ratings.by_user.codes[0] = 1


def test_the_repr_of_ratings_has_only_their_scale() -> None:
    assert repr(load(FRAME, scale="1:5")) == "Ratings(scale=1:5)"


@given(st.binary(max_size=200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
def test_any_bytes_are_read_or_refused(tmp_path: Path, content: bytes) -> None:
    for name in ("fuzz.csv", "fuzz.parquet", "fuzz.csv.gz"):
        (tmp_path / name).write_bytes(content)
        try:
            check_structure(load(tmp_path / name, scale="1:5", duplicates="last"))
        except TaciturnError as error:
            assert "\n" not in str(error)


cells = st.one_of(
    st.integers(-5, 10).map(str),
    st.floats(-1, 6).map(str),
    st.sampled_from(["", "NA", '"', '"x"', "x,y", "nan", "1e999", "\u2028", "a\x00b", "é"]),
)


@pytest.mark.slow
@given(st.lists(st.lists(cells, min_size=2, max_size=5), max_size=8), st.sampled_from(",\t;|"))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
def test_any_table_is_read_or_refused(tmp_path: Path, rows: list[list[str]], by: str) -> None:
    (tmp_path / "fuzz.csv").write_text("\n".join(by.join(row) for row in rows), encoding="utf-8")
    options: dict[str, Any] = {"duplicates": "mean", "missing": "drop", "outside": "clip"}
    try:
        check_structure(load(tmp_path / "fuzz.csv", scale="1:5", **options))
    except TaciturnError as error:
        assert "\n" not in str(error)
