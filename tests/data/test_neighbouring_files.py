"""Files that differ by one row give the same training input for all other users.

Each test runs `taciturn train` twice, on two files that are neighbours under a unit, and compares
the input of the solver and of the held-out evaluation. Ids, their types and order, the split and
the ratings of all other users must not depend on the row that differs.
"""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import taciturn.training.train
from taciturn.cli.app import app
from taciturn.data import load
from taciturn.data.splits import random_split
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.solvers.bias import BiasSolver

ROWS = 10_500
"""More rows than a reader might use to infer column types."""

USERS, ITEMS = 150, 100

Line = tuple[str, str, str]


def lines(separator: str = ",") -> list[Line]:
    """Plain rows: user and item numbers, ratings from 1 to 5."""
    found = [(u, i) for u in range(1, USERS + 1) for i in range(1, ITEMS + 1) if (u * i) % 10 < 7]
    return [(str(u), str(i), str(1 + (u + 3 * i) % 5)) for u, i in found][:ROWS]


class Stop(Exception):
    """Ends training once its input has been captured."""


@pytest.fixture(scope="module")
def known() -> dict[Any, tuple[Any, Any]]:
    """Inputs by the contents of their files and options: most tests share one of their files."""
    return {}


@pytest.fixture
def given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, known: dict[Any, tuple[Any, Any]]
) -> Any:
    """Run `taciturn train` on lines of text; gives its training and held-out ratings."""

    def run_once(name: str, text: list[str], *options: object) -> tuple[Any, Any]:
        contents = [each.read_text() if isinstance(each, Path) else each for each in options]
        key = "\n".join(text), *contents
        if key not in known:
            known[key] = run(name, text, *options)
        return known[key]

    def run(name: str, text: list[str], *options: object) -> tuple[Any, Any]:
        seen: list[Any] = []

        def fit(self: Any, ratings: Any, *rest: Any) -> Any:
            seen.append(ratings)
            raise Stop

        def split(*args: Any) -> Any:
            seen.append(random_split(*args)[1])
            return random_split(*args)

        monkeypatch.setattr(BiasSolver, "fit", fit)
        monkeypatch.setattr(taciturn.training.train, "random_split", split)
        file = tmp_path / f"{name}.csv"
        file.write_text("\n".join(["user_id,item_id,rating", *text]) + "\n")
        command = ["train", str(file), "--scale", "1:5", "--epsilon", "1", "--solver", "bias"]
        command += ["--holdout", "0.2", "-o", str(tmp_path / f"{name}.out"), *map(str, options)]
        result = CliRunner().invoke(app, command)
        assert isinstance(result.exception, Stop), result.output
        monkeypatch.undo()
        test, train = seen
        return train, test

    return run_once


def joined(rows: list[Line]) -> list[str]:
    return [",".join(row) for row in rows]


def listed(tmp_path: Path, role: str, ids: list[str]) -> Path:
    file = tmp_path / f"{role}-list.csv"
    file.write_text("\n".join([f"{role}_id", *ids]) + "\n")
    return file


def others(ratings: Any, user: str, item: str | None) -> pl.DataFrame:
    """All ratings except the one that differs, or except those of one user."""
    mine = pl.col("user_id").cast(pl.String) == user
    if item is not None:
        mine &= pl.col("item_id").cast(pl.String) == item
    frame: pl.DataFrame = ratings.to_frame()
    return frame.filter(~mine)


def assert_same(datasets: list[tuple[Any, Any]], user: str, item: str | None) -> None:
    for part in (0, 1):
        one, two = (others(dataset[part], user, item) for dataset in datasets)
        names = pl.col("user_id", "item_id").cast(pl.String)
        assert one.with_columns(names).equals(two.with_columns(names)), "another split"
        assert one.schema == two.schema
    one, two = (dataset[0] for dataset in datasets)
    assert one.item_ids.dtype == two.item_ids.dtype and one.item_ids.equals(two.item_ids)
    if item is not None:
        assert one.user_ids.equals(two.user_ids)
    else:
        assert one.user_ids.filter(one.user_ids != user).equals(two.user_ids)


ODD_IDS = ["bob", "007", "3.0", "1e5", "-5", "+7", "0", "9999999999999999999999", '"8,5"', "é"]
PLACES = [0, pytest.param(5000, marks=pytest.mark.slow), ROWS]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("odd", ODD_IDS)
def test_one_user_more_changes_no_other(given: Any, tmp_path: Path, odd: str, place: int) -> None:
    """Unit user: the form of one user's id does not affect other ids."""
    items = listed(tmp_path, "item", [str(i) for i in range(1, ITEMS + 1)])
    plain = lines()
    mine = [(odd, str(i), "5") for i in (3, 4, 7)]
    texts = [joined(plain[:place] + mine + plain[place:]), joined(plain)]
    datasets = [
        given(name, text, "--unit", "user", "--item-list", items)
        for name, text in zip(("one", "two"), texts, strict=True)
    ]
    assert_same(datasets, odd.strip('"'), None)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("odd", ODD_IDS)
def test_one_rating_more_changes_no_other(given: Any, tmp_path: Path, odd: str, place: int) -> None:
    """Unit rating: the user or item of the rating has an unusual id on the public id list."""
    users = [odd, *(str(u) for u in range(1, USERS + 1))]
    items = ["0012", *(str(i) for i in range(1, ITEMS + 1))]
    options = ["--unit", "rating", "--user-list", listed(tmp_path, "user", users)]
    options += ["--item-list", listed(tmp_path, "item", items)]
    plain = lines()
    for user, item in ((odd, "5"), ("9", "0012")):
        texts = [joined([*plain[:place], (user, item, "5"), *plain[place:]]), joined(plain)]
        datasets = [
            given(f"{name}-{item}", text, *options)
            for name, text in zip(("one", "two"), texts, strict=True)
        ]
        assert_same(datasets, user.strip('"'), item)


@pytest.mark.parametrize("place", [0, 5000, ROWS - 1])
@pytest.mark.parametrize("odd", ["5.0", "4.5", "5e0", "+3", '"5"', "1.00000000000000000001"])
def test_another_value_changes_no_other(given: Any, tmp_path: Path, odd: str, place: int) -> None:
    """Unit value: the form of the number does not matter."""
    options = ["--user-list", listed(tmp_path, "user", [str(u) for u in range(1, USERS + 1)])]
    options += ["--item-list", listed(tmp_path, "item", [str(i) for i in range(1, 1 + ITEMS)])]
    plain = lines()
    user, item, _ = plain[place]
    changed = [*plain[:place], (user, item, odd), *plain[place + 1 :]]
    for unit in ("value", "rating"):
        datasets = [
            given(f"{name}-{unit}", joined(text), "--unit", unit, *options)
            for name, text in (("one", changed), ("two", plain))
        ]
        assert_same(datasets, user, item)


@pytest.mark.parametrize("blank", ["", ",,", "7,,5", ",7,5", "7,8,", "NA,7,5"])
@pytest.mark.parametrize("place", PLACES)
def test_an_incomplete_row_changes_no_other(given: Any, blank: str, place: int) -> None:
    """Such rows are dropped. A blank line before the first rating is refused."""
    if (blank, place) == ("", 0):
        place = 1
    plain = joined([row for row in lines() if row[:2] != ("7", "8")])
    texts = [[*plain[:place], blank, *plain[place:]], plain]
    for unit in ("rating", "user"):
        datasets = [
            given(f"{name}-{unit}", text, "--unit", unit, "--missing", "drop")
            for name, text in zip(("one", "two"), texts, strict=True)
        ]
        for part in (0, 1):
            one, two = (dataset[part].to_frame() for dataset in datasets)
            assert one.equals(two)


@pytest.mark.parametrize("quoted", ['"7"', '"150"'])
def test_quotes_are_not_part_of_an_id(given: Any, quoted: str) -> None:
    plain = lines()
    user = quoted.strip('"')
    changed = [(quoted, *row[1:]) if row[0] == user else row for row in plain]
    datasets = [given(name, joined(text)) for name, text in (("one", changed), ("two", plain))]
    for part in (0, 1):
        assert datasets[0][part].to_frame().equals(datasets[1][part].to_frame())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (('"bob', "7", "5"), ("bob", "8", "4")),
        (("bob", '"7', "5"), ("bob", '8"', "4")),
        (("bob", "7", '"5'), ("bob", "8", '4"')),
        (('"bob', "7", "5"), ('bob"', "8", "4")),
        (('b"ob', "7", "5"), ('b"ob', "8", "4")),
    ],
)
def test_stray_quotes_swallow_no_rows_of_others(first: Line, second: Line, tmp_path: Path) -> None:
    """Malformed CSV rows of one user are refused; no rows are lost silently."""
    plain = lines()
    file = tmp_path / "quotes.csv"
    rows = [*plain[:4000], first, *plain[4000:6000], second, *plain[6000:]]
    file.write_text("\n".join(["user_id,item_id,rating", *joined(rows)]) + "\n")
    with pytest.raises(InvalidDocument):
        load(file, scale="1:5", missing="drop", outside="drop", duplicates="last")


def test_stray_quotes_in_a_column_that_is_not_read_swallow_no_rows(tmp_path: Path) -> None:
    file = tmp_path / "comments.csv"
    rows = [(*row, "fine") for row in lines()]
    rows[4000:4000] = [("bob", "7", "5", '"9')]
    rows[6000:6000] = [("bob", "8", "5", '9"')]
    file.write_text("\n".join(["user_id,item_id,rating,comment", *map(",".join, rows)]) + "\n")
    with pytest.raises(InvalidDocument, match="line break"):
        load(file, scale="1:5", missing="drop")


@pytest.mark.parametrize("first", ["1,2,3,x;5;3", "rating;item;4", "a b|c;7;3", "u::v;7;3"])
def test_the_first_rating_does_not_determine_the_format(tmp_path: Path, first: str) -> None:
    """Without a header the separator must be declared: the first line is a user's rating."""
    file = tmp_path / "plain.txt"
    rows = [";".join(row) for row in lines()]
    for text in ([first, *rows], rows):
        file.write_text("\n".join(text) + "\n")
        with pytest.raises(InvalidDocument, match="header=False"):
            load(file, scale="1:5")
        with pytest.raises(InvalidParameter, match="separator"):
            load(file, scale="1:5", header=False)
    found = []
    for text in ([first, *rows], rows):
        file.write_text("\n".join(text) + "\n")
        options: dict[str, Any] = {"separator": ";", "header": False, "outside": "clip"}
        ratings = load(file, scale="1:5", **options)
        user, item, _ = first.split(";")
        found.append(others(ratings, user, item))
    assert found[0].equals(found[1])


def test_ids_with_and_without_leading_zeros_are_different_users(given: Any) -> None:
    """7 and 007 are two users."""
    rows = [*lines(), ("007", "3", "5"), ("7.0", "3", "1")]
    train, _ = given("zeros", joined(rows))
    assert {"7", "007", "7.0"} <= set(train.user_ids.to_list())
    assert train.user_ids.dtype == train.item_ids.dtype == pl.String


def test_item_ids_are_numbers_if_declared(given: Any, tmp_path: Path) -> None:
    """By an option, or by a public list of numbers; user ids stay text."""
    for options in (
        ["--item-id-type", "int"],
        ["--item-list", listed(tmp_path, "item", [str(i) for i in range(1, ITEMS + 1)])],
    ):
        train, _ = given(f"typed-{options[0]}", joined(lines()), *options)
        assert train.item_ids.dtype == pl.Int64 and train.user_ids.dtype == pl.String
        assert train.item_ids.is_sorted()


@pytest.mark.parametrize("odd", ["007", "3.0", "abc", "9999999999999999999999"])
def test_an_id_that_is_not_the_declared_number_is_refused(odd: str, tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text("\n".join(["user_id,item_id,rating", *joined(lines()), f"1,{odd},5"]) + "\n")
    command = ["train", str(file), "--scale", "1:5", "--epsilon", "1", "--item-id-type", "int"]
    result = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "out")])
    assert result.exception is not None
    assert "whole number" in str(result.exception) and odd not in str(result.exception)


def test_the_split_does_not_depend_on_how_ids_are_stored() -> None:
    """Splits treat a number and its decimal text alike, so a file and a frame agree."""
    frame = pl.DataFrame(
        [(int(u), int(i), float(v)) for u, i, v in lines()],
        schema=["user_id", "item_id", "rating"],
        orient="row",
    )
    text = frame.with_columns(pl.col("user_id", "item_id").cast(pl.String))
    parts = [random_split(load(each, scale="1:5"), 0.2, 3)[1].to_frame() for each in (frame, text)]
    columns = [pl.col("user_id", "item_id").cast(pl.Int64), "rating"]
    one, two = (part.select(columns).sort("user_id", "item_id") for part in parts)
    assert one.equals(two)
