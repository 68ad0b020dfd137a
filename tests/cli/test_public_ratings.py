"""`--public-ratings` of `train` and `compare`."""

import json
from pathlib import Path

import polars as pl
import pytest

from taciturn.data.synthetic import synthetic_ratings
from tests.conftest import Command


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    file = tmp_path / "ratings.csv"
    synthetic_ratings("10k").to_frame().filter(pl.col("user_id") % 2 == 0).write_csv(file)
    return file


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    file = tmp_path / "theirs.parquet"
    frame = synthetic_ratings("10k").to_frame().filter(pl.col("user_id") % 2 == 1)
    frame.with_columns(pl.col("user_id").cast(pl.String)).write_parquet(file)
    return file


def test_a_release_names_the_public_ratings(
    taciturn: Command, ratings: Path, theirs: Path, tmp_path: Path
) -> None:
    options = ("--scale", "1:5:1", "--epsilon", 2, "--unit", "user", "--public-ratings", theirs)
    result = taciturn("train", ratings, *options, "-o", tmp_path / "r")
    assert result.returncode == 0, result.stderr
    assert "the ratings in theirs.parquet are treated as public" in result.stderr
    verified = taciturn("verify", tmp_path / "r")
    assert verified.returncode == 0 and "public ratings in theirs.parquet" in verified.stdout
    document = json.loads(taciturn("verify", tmp_path / "r", "--json").stdout)
    assert document["public_inputs"][0]["ratings"] == len(pl.read_parquet(theirs))
    shown = taciturn("train", ratings, *options, "--show-config").stdout
    assert f'public-ratings = "{theirs}"' in shown


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--public-ratings", "none.csv"], "there is no file and no named set"),
        (["--solver", "bias", "--public-ratings", "ml-1m"], "bias does not use public ratings"),
        (["--public-ratings", "synthetic:10k"], "--public-ratings is the source of the ratings"),
    ],
)
def test_bad_public_ratings_are_refused_in_one_line(
    taciturn: Command, tmp_path: Path, options: list[str], words: str
) -> None:
    result = taciturn("train", "synthetic:10k", "--epsilon", 1, *options, "-o", tmp_path / "r")
    assert result.returncode != 0 and words in result.stderr
    assert len(result.stderr.splitlines()) == 1 and not list(tmp_path.iterdir())


def test_errors_in_a_public_file_name_it_and_no_option_for_the_ratings(
    taciturn: Command, ratings: Path, tmp_path: Path
) -> None:
    frame = pl.read_csv(ratings)
    frame.with_columns(rating=pl.lit(10.0)).write_csv(tmp_path / "wide.csv")
    frame.rename({"item_id": "thing"}).write_csv(tmp_path / "nameless.csv")
    for name, words in (("wide.csv", "not on the scale"), ("nameless.csv", "does not name")):
        options = ("--scale", "1:5", "--epsilon", 1, "--public-ratings", tmp_path / name)
        result = taciturn("train", ratings, *options, "-o", tmp_path / "r")
        assert result.returncode == 2 and len(result.stderr.splitlines()) == 1
        assert f"public ratings from {name}: " in result.stderr and words in result.stderr
        assert "--" not in result.stderr and not (tmp_path / "r").exists()


def test_a_comparison_has_a_row_of_the_public_ratings_alone(
    taciturn: Command, ratings: Path, theirs: Path, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    common = ("compare", ratings, "--scale", "1:5:1", "--epsilons", 2, "--seeds", 1)
    public = ("--public-ratings", theirs, "--units", "user,rating", "-o", tmp_path / "c")
    result = taciturn(*common, "--solvers", "als,bias", *public, "--json")
    assert result.returncode == 0, result.stderr
    assert "user ids of the ratings and of the public ratings are taken as unrelated" in (
        result.stderr
    )
    document = json.loads(result.stdout)
    assert "theirs.parquet" in document["source"] and document["same_users"] is False
    rows = [row for row in document["results"] if row["solver"] == "public"]
    assert [(row["unit"], row["epsilon"], row["status"]) for row in rows] == [
        ("user", 0, "public"),
        ("rating", 0, "public"),
    ]
    shared = taciturn(*common, "--solvers", "als", *public, "--same-users", "--json")
    assert shared.returncode == 0 and "but not tested" in shared.stderr
    assert json.loads(shared.stdout)["same_users"] is True


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--same-users"], "--same-users needs --public-ratings"),
        (["--public-ratings", "ml-1m", "--solvers", "bias"], "add als to --solvers"),
    ],
)
def test_options_that_do_not_fit_are_refused_by_a_comparison(
    taciturn: Command, tmp_path: Path, options: list[str], words: str
) -> None:
    pytest.importorskip("matplotlib")
    result = taciturn("compare", "synthetic:10k", *options, "-o", tmp_path / "c")
    assert result.returncode != 0 and words in result.stderr
