"""Titles of items in every list, from files, tables and dictionaries."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

from taciturn.errors import InvalidInput
from taciturn.recommend.serve import Recommender
from taciturn.release.read import load_release
from tests.conftest import Command
from tests.release.helpers import write_small

TITLES: dict[int | str, str] = {100: "The First", 102: "The Third"}
TITLE_SOURCES = {
    "a dictionary": TITLES,
    "text keys": {str(item): title for item, title in TITLES.items()},
    "polars": pl.DataFrame({"movieId": list(TITLES), "title": list(TITLES.values())}),
    "pandas": pd.DataFrame({"id": list(TITLES), "name": list(TITLES.values())}),
}


@pytest.mark.parametrize("kind", TITLE_SOURCES)
def test_every_list_in_python_has_titles(tmp_path: Path, kind: str) -> None:
    write_small(tmp_path / "r")
    recommender = Recommender(load_release(tmp_path / "r"), titles=TITLE_SOURCES[kind])
    table = recommender.recommend([1, 2], 5)
    assert table.columns == ["user_id", "item_id", "score", "rank", "title"]
    expected = [TITLES.get(item) for item in table["item_id"]]
    assert table["title"].to_list() == expected and any(expected)
    mine = recommender.fold_in({101: 4.0})
    for best in (
        recommender.recommend_profile(mine.bias, mine.factors, 25),
        recommender.similar(101, 25),
    ):
        assert [each.title for each in best] == [TITLES.get(each.item_id) for each in best]
        assert any(each.title for each in best)
    assert recommender.title(102) == "The Third" and recommender.title(101) is None


def test_titles_stay_with_their_items_when_some_are_excluded(tmp_path: Path) -> None:
    write_small(tmp_path / "r")
    recommender = Recommender(load_release(tmp_path / "r"), titles=TITLES)
    seen = pd.DataFrame({"user_id": [1, 1], "item_id": [100, 103]})
    table = recommender.recommend([1], 30, exclude=seen)
    assert [*table.columns] == ["user_id", "item_id", "score", "rank", "title"]
    titles = dict(zip(table["item_id"], table["title"], strict=True))
    assert 100 not in titles and titles[102] == "The Third" and pd.isna(titles[101])


def test_lists_without_titles_have_no_column_for_them(tmp_path: Path) -> None:
    write_small(tmp_path / "r")
    recommender = Recommender(load_release(tmp_path / "r"))
    assert "title" not in recommender.recommend([1], 3).columns
    assert recommender.title(100) is None and recommender.similar(101, 1)[0].title is None


@pytest.mark.parametrize("titles", [3, {100: 5}, {1.5: "half"}, {None: "x"}, [1, 2], object()])
def test_titles_of_a_wrong_type_are_refused(tmp_path: Path, titles: Any) -> None:
    write_small(tmp_path / "r")
    with pytest.raises(InvalidInput):
        Recommender(load_release(tmp_path / "r"), titles=titles)


def test_every_list_on_the_command_line_has_titles(taciturn: Command, tmp_path: Path) -> None:
    write_small(tmp_path / "r")
    (tmp_path / "titles.csv").write_text("movieId,title\n100,The First\n102,A \x1b[31mred one\n")
    (tmp_path / "mine.csv").write_text("item_id,rating\n101,4\n")
    release, titles = tmp_path / "r", ["--titles", tmp_path / "titles.csv"]
    for command in (
        ["recommend", release, "--user", 1, "-k", 30],
        ["recommend", release, "--ratings", tmp_path / "mine.csv", "-k", 30],
        ["similar", release, "--item", 101, "-k", 30],
    ):
        shown = taciturn(*command, *titles).stdout
        assert "100  The First" in shown and "A \\x1b[31mred one" in shown
        document = json.loads(taciturn(*command, *titles, "--json").stdout)
        assert {row["item_id"]: row["title"] for row in document["items"]}[100] == "The First"
        plain = json.loads(taciturn(*command, "--json").stdout)
        assert all("title" not in row for row in plain["items"]) and "title" not in plain
    similar = ["similar", release, "--item", 100, *titles, "--json"]
    assert json.loads(taciturn(*similar).stdout)["title"] == "The First"


def test_predictions_have_titles(taciturn: Command, tmp_path: Path) -> None:
    write_small(tmp_path / "r")
    (tmp_path / "titles.csv").write_text("movieId,title\n100,The First\n")
    (tmp_path / "mine.csv").write_text("item_id,rating\n101,4\n")
    titles = ["--titles", tmp_path / "titles.csv"]
    for who in (["--user", 1], ["--ratings", tmp_path / "mine.csv"]):
        predict = ["predict", tmp_path / "r", *who, "--item"]
        plain = taciturn(*predict, 100).stdout
        assert taciturn(*predict, 100, *titles).stdout == f"{plain.rstrip()}  100  The First\n"
        assert json.loads(taciturn(*predict, 100, *titles, "--json").stdout)["title"] == "The First"
        assert json.loads(taciturn(*predict, 101, *titles, "--json").stdout)["title"] is None
        assert "title" not in json.loads(taciturn(*predict, 100, "--json").stdout)
