"""`--item-features` of `train` and `compare`."""

import json
import zipfile
from pathlib import Path

import polars as pl
import pytest

from taciturn.data.named import NAMED_SETS
from taciturn.data.synthetic import synthetic_ratings
from tests.conftest import Command


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    file = tmp_path / "ratings.csv"
    synthetic_ratings("10k").to_frame().write_csv(file)
    return file


@pytest.fixture
def films(tmp_path: Path) -> Path:
    file = tmp_path / "films.parquet"
    genres = [["a", "b"], ["a"], ["b"], None] * 101
    table = pl.DataFrame({"item_id": range(1, 405), "genre": genres, "year": range(404)})
    table.write_parquet(file)
    return file


def test_a_file_of_features_is_named_by_the_release(
    taciturn: Command, ratings: Path, films: Path, tmp_path: Path
) -> None:
    options = ("--scale", "1:5:1", "--epsilon", 2, "--item-features", films)
    result = taciturn("train", ratings, *options, "-o", tmp_path / "r")
    assert result.returncode == 0, result.stderr
    assert "films.parquet and the items listed there are treated as public" in result.stderr
    assert pl.read_parquet(tmp_path / "r" / "items.parquet")["item_id"].dtype == pl.String
    verified = taciturn("verify", tmp_path / "r")
    assert verified.returncode == 0 and "item features in films.parquet" in verified.stdout
    document = json.loads(taciturn("verify", tmp_path / "r", "--json").stdout)
    assert document["public_inputs"][0]["columns"] == 3
    shown = taciturn("train", ratings, *options, "--dry-run").stdout
    assert "item features in films.parquet" in shown


def test_a_configuration_file_holds_the_option(
    taciturn: Command, ratings: Path, films: Path, tmp_path: Path
) -> None:
    options = ("--scale", "1:5:1", "--epsilon", 2, "--item-features", films, "-o", tmp_path / "r")
    shown = taciturn("train", ratings, *options, "--show-config").stdout
    assert f'item-features = "{films}"' in shown
    (tmp_path / "train.toml").write_text(shown)
    result = taciturn("train", "--config", tmp_path / "train.toml")
    assert result.returncode == 0, result.stderr
    assert "films.parquet" in (tmp_path / "r" / "card.md").read_text(encoding="utf-8")


def test_features_that_a_named_set_brings_are_used(
    taciturn: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACITURN_DATA", str(tmp_path))
    monkeypatch.setenv("TACITURN_CACHE", str(tmp_path / "cache"))
    frame = synthetic_ratings("10k").to_frame().with_columns(pl.col("rating").cast(pl.Int64))
    rows = "".join(f"{user}::{item}::{rating}::1\n" for user, item, rating in frame.iter_rows())
    movies = "".join(f"{item}::Film (19{item % 100:02})::Drama|War\n" for item in range(1, 500))
    with zipfile.ZipFile(tmp_path / NAMED_SETS["ml-1m"].archive, "w") as archive:
        archive.writestr("ml-1m/ratings.dat", rows)
        archive.writestr("ml-1m/movies.dat", movies)
    options = ("--epsilon", 2, "--item-features", "builtin", "-o", tmp_path / "r")
    result = taciturn("train", "ml-1m", *options)
    assert result.returncode == 0, result.stderr
    assert "ml-1m:movies.dat" in (tmp_path / "r" / "card.md").read_text(encoding="utf-8")
    assert len(pl.read_parquet(tmp_path / "r" / "items.parquet")) == 499


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--item-features", "builtin"], "synthetic:10k has no item features of its own"),
        (["--item-features", "none.csv"], "no such file"),
        (["--solver", "bias", "--item-features", "x.csv"], "bias does not use item features"),
    ],
)
def test_bad_features_are_refused_in_one_line(
    taciturn: Command, tmp_path: Path, options: list[str], words: str
) -> None:
    result = taciturn("train", "synthetic:10k", "--epsilon", 1, *options, "-o", tmp_path / "r")
    assert result.returncode != 0 and words in result.stderr
    assert len(result.stderr.splitlines()) == 1 and not list(tmp_path.iterdir())


def test_a_comparison_uses_features_in_its_cells_of_als(
    taciturn: Command, ratings: Path, films: Path, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    common = ("compare", ratings, "--scale", "1:5:1", "--epsilons", 2, "--seeds", 1)
    options = ("--solvers", "als,bias", "--item-features", films, "-o", tmp_path / "c", "--json")
    result = taciturn(*common, *options)
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert "films.parquet" in document["source"]
    plain = taciturn(
        *common, "--solvers", "als,bias", "-o", tmp_path / "d", "--against",
        tmp_path / "c" / "compare.json",
    )  # fmt: skip
    assert plain.returncode == 0, plain.stderr
    refused = taciturn(*common, "--solvers", "bias", "--item-features", films, "-o", tmp_path / "e")
    assert refused.returncode != 0 and "add als to --solvers" in refused.stderr
