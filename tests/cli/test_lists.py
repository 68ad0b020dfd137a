"""Lists of `taciturn recommend` and `similar` on a release with interest, end to end."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from taciturn.recommend.serve import Recommender
from taciturn.release.read import load_release
from taciturn.solvers.contract import Fit
from tests.conftest import Command
from tests.narrow import present
from tests.release.helpers import write_small, write_with_interest


@pytest.fixture
def release(tmp_path: Path) -> Path:
    write_with_interest(tmp_path / "release")
    return tmp_path / "release"


def listed(taciturn: Command, *arguments: object) -> dict[str, Any]:
    result = taciturn(*arguments, "--json")
    assert result.returncode == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def ids(document: dict[str, Any]) -> list[int]:
    return [row["item_id"] for row in document["items"]]


@pytest.mark.parametrize(
    ("options", "chosen", "by"),
    [
        ([], {}, "interest"),
        (["--by", "interest"], {"by": "interest"}, "interest"),
        (["--by", "rating"], {"by": "rating"}, "rating"),
        (["--popularity-weight", 0.25], {"popularity_weight": 0.25}, "interest"),
    ],
)
def test_lists_are_those_of_the_library(
    taciturn: Command,
    release: Path,
    tmp_path: Path,
    options: list[object],
    chosen: dict[str, Any],
    by: str,
) -> None:
    recommender = Recommender(load_release(release))
    document = listed(taciturn, "recommend", release, "--user", 1, "-k", 4, *options)
    assert document["by"] == by and document["personalised"]
    weight = chosen.get("popularity_weight", 1) if by == "interest" else None
    assert document.get("popularity_weight") == weight
    assert ids(document) == recommender.recommend(1, 4, **chosen)["item_id"].to_list()
    (tmp_path / "own.csv").write_text("item_id,rating\n100,5\n101,2\n")
    document = listed(taciturn, "recommend", release, "--ratings", tmp_path / "own.csv", *options)
    mine = recommender.fold_in({100: 5.0, 101: 2.0})
    best = recommender.recommend_profile(
        mine.bias, mine.factors, interest=mine.interest, exclude=[100, 101], **chosen
    )
    assert document["by"] == by
    assert ids(document) == [each.item_id for each in best] and len(best) == 3


def nearest(fit: Fit, item: int, liked: list[int]) -> list[int]:
    """Liked items by their cosine to an item, if it is near."""
    items = fit.model.item_profiles
    vectors = present(items.interests)[:, 1:]
    unit = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    rows = {each: row for row, each in enumerate(items.ids)}
    cosines = {each: float(unit[rows[item]] @ unit[rows[each]]) for each in liked}
    near = sorted(cosines, key=lambda each: -cosines[each])[:2]
    return [each for each in near if cosines[each] >= 0.5]


def test_every_list_says_why_with_titles(taciturn: Command, tmp_path: Path) -> None:
    fit = write_with_interest(tmp_path / "r")
    (tmp_path / "titles.csv").write_text("movieId,title\n100,The First\n101,A \x1b[31mred one\n")
    (tmp_path / "own.csv").write_text("item_id,rating\n100,5\n101,4\n102,1\n")
    (tmp_path / "seen.csv").write_text("user,item,rating\n1,100,5\n1,101,5\n1,102,2\n2,103,5\n")
    titles = "--titles", tmp_path / "titles.csv"
    for who in (
        ["--ratings", tmp_path / "own.csv"],
        ["--user", 1, "--exclude", tmp_path / "seen.csv"],
    ):
        command = "recommend", tmp_path / "r", *who
        document = listed(taciturn, *command, *titles)
        rows = document["items"]
        assert sorted(ids(document)) == [103, 104]
        for row in rows:
            near = nearest(fit, row["item_id"], [100, 101])
            names = {100: "The First", 101: "A \x1b[31mred one"}
            assert row["because"] == near
            if near:
                assert row["reason"] == "similar to " + " and ".join(names[each] for each in near)
        shown = taciturn(*command, *titles).stdout
        assert shown.count("\n") == 2 and "\x1b" not in shown
        lines = shown.splitlines()
        for line, row in zip(lines, rows, strict=True):
            assert line.endswith(row["reason"].replace("\x1b", "\\x1b"))
        plain = listed(taciturn, *command)["items"]
        assert [row["because"] for row in plain] == [row["because"] for row in rows]
        assert not any("The First" in row["reason"] for row in plain)


def test_titles_line_up(taciturn: Command, release: Path, tmp_path: Path) -> None:
    width = load_release(release).model.factor_count
    own = pl.DataFrame({"item_id": [7, 10_000], "profile": [[1.0] * width] * 2})
    own.write_parquet(tmp_path / "own.parquet")
    (tmp_path / "titles.csv").write_text("item,title\n7,Seven\n10000,Many\n")
    options = "--items", tmp_path / "own.parquet", "--titles", tmp_path / "titles.csv"
    lines = taciturn("recommend", release, "--user", 1, *options).stdout.splitlines()
    starts = {line.index(title) for title in ("Seven", "Many") for line in lines if title in line}
    assert len(lines) == 2 and len(starts) == 1


def test_a_table_without_users_says_nothing_about_a_user(
    taciturn: Command, release: Path, tmp_path: Path
) -> None:
    (tmp_path / "sold-out.csv").write_text("item\n100\n101\n")
    (tmp_path / "own.csv").write_text("item_id,rating\n102,5\n")
    for who, known in ((["--user", 1], []), (["--ratings", tmp_path / "own.csv"], [102])):
        exclude = "--exclude", tmp_path / "sold-out.csv"
        document = listed(taciturn, "recommend", release, *who, *exclude)
        assert not {100, 101, *known} & set(ids(document))
        named = {each for row in document["items"] for each in row["because"]}
        assert named <= set(known)
        assert all(row["reason"] for row in document["items"])


@pytest.mark.parametrize(("options", "by"), [([], "interest"), (["--by", "rating"], "rating")])
def test_similar_says_what_it_compared(
    taciturn: Command, release: Path, options: list[object], by: str
) -> None:
    command = "similar", release, "--item", 100, *options
    document = listed(taciturn, *command)
    expected = Recommender(load_release(release)).similar(100, by=by)
    assert document["by"] == by and ids(document) == [each.item_id for each in expected]
    assert set(document["items"][0]) == {"item_id", "score", "rank"}
    assert taciturn(*command).stdout.startswith(f"compared by {by} factors:\n  1.  ")


def test_predictions_do_not_depend_on_interest(taciturn: Command, tmp_path: Path) -> None:
    fit = write_with_interest(tmp_path / "r")
    found = listed(taciturn, "predict", tmp_path / "r", "--user", 1, "--item", 100)
    assert found["rating"] == pytest.approx(fit.model.without_interest().predict(1, 100))


def test_export_indexes_items_in_either_order(
    taciturn: Command, release: Path, tmp_path: Path
) -> None:
    pytest.importorskip("voyager", reason="needs the extra ann")
    for by in ("interest", "rating"):
        options = "--to", "ann", "-o", tmp_path / by, "--by", by
        assert listed(taciturn, "export", release, *options)["by"] == by
    refused = taciturn("export", release, "--to", "npz", "-o", tmp_path / "x", "--by", "rating")
    assert refused.returncode == 2 and "--by applies to --to ann" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["recommend", "release", "--by", "size"], "--by must be one of interest, rating"),
        (["recommend", "release", "--popularity-weight", "2"], "must be between 0 and 1, got 2"),
        (["recommend", "release", "--popularity-weight", "low"], "expected a number"),
        (
            ["recommend", "release", "--popularity-weight", "0.5", "--by", "rating"],
            "--popularity-weight applies to interest",
        ),
        (
            ["recommend", "plain", "--by", "interest"],
            "train with --solver als, without --no-interest and --no-pattern-features, to add it",
        ),
        (["recommend", "plain", "--popularity-weight", "0.5"], "this model has no interest"),
        (["similar", "plain", "--item", "100", "--by", "interest"], "--by rating"),
        (["recommend", "release", "--items", "own.parquet", "--by", "interest"], "your own item"),
    ],
)
def test_impossible_orders_are_errors_in_one_line(
    taciturn: Command, release: Path, arguments: list[str], words: str
) -> None:
    write_small(release.parent / "plain")
    width = load_release(release).model.factor_count
    own = pl.DataFrame({"item_id": [1, 2], "profile": [[1.0] * width] * 2})
    own.write_parquet(release.parent / "own.parquet")
    user = ["--user", "1"] if arguments[0] == "recommend" else []
    result = taciturn(*arguments, *user, cwd=release.parent)
    assert result.returncode == 2 and result.stdout == ""
    assert words in result.stderr.replace("\n", " ")


@pytest.mark.slow
def test_training_learns_interest_unless_it_is_refused(taciturn: Command, tmp_path: Path) -> None:
    """From ratings to lists, through the command line alone."""
    arguments = "train", "synthetic:10k", "--unit", "value", "--epsilon", 1, "--json"
    whole = json.loads(taciturn(*arguments, "-o", tmp_path / "whole").stdout)
    assert whole["interest_factors"] > 0 and whole["personalised"]
    card = (tmp_path / "whole" / "card.md").read_text(encoding="utf-8")
    assert "popularity and interest factors of the rating pattern" in card
    assert "Lists are in the order of the ranking score" in card
    chosen = "--user", 3, "-k", 5
    lists = [
        listed(taciturn, "recommend", tmp_path / "whole", *chosen, *options)
        for options in ([], ["--by", "rating"], ["--popularity-weight", 0.5])
    ]
    assert [each["by"] for each in lists] == ["interest", "rating", "interest"]
    assert ids(lists[0]) != ids(lists[1])
    assert lists[0]["items"][0]["score"] != lists[2]["items"][0]["score"]
    for number, option in enumerate(("--no-interest", "--no-pattern-features")):
        place = tmp_path / f"without-{number}"
        without = json.loads(taciturn(*arguments, "-o", place, option).stdout)
        assert without["interest_factors"] == 0
        assert "interest" not in (place / "card.md").read_text(encoding="utf-8")
        assert listed(taciturn, "recommend", place, *chosen)["by"] == "rating"
        refused = taciturn("recommend", place, *chosen, "--popularity-weight", 0.5)
        assert refused.returncode == 2 and "no interest" in refused.stderr
        assert taciturn("verify", place).returncode == 0
