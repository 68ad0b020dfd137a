"""`train --solver popularity`: trained, verified and served from end to end."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import Command


@pytest.mark.parametrize("unit", ["value", "rating", "user"])
def test_popularity_is_trained_verified_and_served(
    taciturn: Command, tmp_path: Path, unit: str
) -> None:
    release, options = tmp_path / "release", ["--solver", "popularity", "--unit", unit]
    trained = taciturn(
        "train", "synthetic:10k", *options, "--epsilon", "1", "-o", release, "--json"
    )
    assert trained.returncode == 0, trained.stderr
    certificate = json.loads((release / "certificate.json").read_text())["certificate"]
    spent = certificate["statement"]["epsilon"]
    assert certificate["status"] == "proven"
    assert spent == (0 if unit == "value" else pytest.approx(1, rel=1e-3))
    assert taciturn("verify", release, "--max-epsilon", "1").returncode == 0
    own = tmp_path / "own.csv"
    items = pl.read_parquet(release / "items.parquet")["item_id"]
    own.write_text(f"item_id,rating\n{items[0]},4\n")
    call = ["--ratings", own] if unit == "user" else ["--user", "1"]
    shown = taciturn("recommend", release, *call, "--json")
    assert shown.returncode == 0, shown.stderr
    assert "predicts no ratings" in (release / "card.md").read_text(encoding="utf-8")
    for command, words in (
        (["recommend", release, *call, "--by", "rating"], "this model predicts no ratings"),
        (["recommend", release, *call, "--popularity-weight", 0], "nothing to order items by"),
        (["predict", release, *call, "--item", items[1]], "train with --solver als"),
    ):
        refused = taciturn(*command)
        assert refused.returncode == 2 and words in refused.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--solver", "popularity", "--no-interest"], "has no setting --no-interest"),
        (["--no-pattern-features"], "unit rating publishes no features of the rating pattern"),
        (["--unit", "user", "--no-pattern-features"], "leave out --no-pattern-features"),
    ],
)
def test_options_without_effect_are_refused_as_typed(
    taciturn: Command, tmp_path: Path, options: list[str], words: str
) -> None:
    call = ["train", "synthetic:10k", "--epsilon", "1", "-o", tmp_path / "r", *options]
    refused = taciturn(*call)
    assert refused.returncode == 2 and words in refused.stderr.replace("\n", " ")


def test_a_comparison_of_lists_alone_has_no_table_of_errors(
    taciturn: Command, tmp_path: Path
) -> None:
    options = ["--solvers", "popularity", "--epsilons", "1", "--seeds", "1", "-o", tmp_path / "c"]
    shown = taciturn("compare", "synthetic:10k", *options)
    assert shown.returncode == 0, shown.stderr
    assert "RMSE by user activity" not in shown.stdout + (tmp_path / "c/compare.html").read_text()
    assert "Lists by user activity" in shown.stdout


def test_a_solver_that_predicts_nothing_has_no_error_on_held_out_ratings(
    taciturn: Command, tmp_path: Path
) -> None:
    options = ["--solver", "popularity", "--epsilon", "1", "--holdout", "0.2", "-o", tmp_path / "r"]
    trained = taciturn("train", "synthetic:10k", *options)
    assert trained.returncode == 0 and "rmse" not in trained.stdout
    assert "there is no error on the held-out ratings" in trained.stderr.replace("\n", " ")
