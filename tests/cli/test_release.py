"""`taciturn verify`, `recommend`, `similar`, `predict`, `export` and `keygen` end to end."""

import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.conftest import Command
from tests.release.helpers import write_small


@pytest.fixture
def release(tmp_path: Path) -> Path:
    write_small(tmp_path / "release")
    return tmp_path / "release"


def test_verify_prints_guarantee_and_checks(taciturn: Command, release: Path) -> None:
    result = taciturn("verify", release, "--json")
    document = json.loads(result.stdout)
    assert result.returncode == 0 and document["passed"]
    assert document["status"] == "proven" and document["unit"] == "value"
    assert document["epsilon"] <= 10 and document["delta"] == 1e-5 and document["mu"] > 1
    assert [check["name"] for check in document["checks"]] == [
        "files",
        "contents",
        "signature",
        "status",
    ]
    assert "epsilon = " in taciturn("verify", release).stdout


def test_verify_detects_a_changed_byte(taciturn: Command, release: Path) -> None:
    file = release / "items.parquet"
    content = bytearray(file.read_bytes())
    content[100] ^= 1
    file.write_bytes(bytes(content))
    result = taciturn("verify", release, "--json")
    assert result.returncode == 1 and not json.loads(result.stdout)["passed"]
    assert "items.parquet was changed" in result.stdout and "failed verification" in result.stderr
    refused = taciturn("recommend", release, "--user", 1)
    assert refused.returncode == 1 and "changed" in refused.stderr


def test_verify_accepts_allowed_statuses_only(taciturn: Command, tmp_path: Path) -> None:
    write_small(tmp_path / "paper", "paper")
    assert taciturn("verify", tmp_path / "paper").returncode == 1
    assert taciturn("verify", tmp_path / "paper", "--allow", "none").returncode == 1
    assert taciturn("verify", tmp_path / "paper", "--allow", "claimed").returncode == 0
    wrong = taciturn("verify", tmp_path / "paper", "--allow", "anything")
    assert wrong.returncode == 2 and "one of" in wrong.stderr


@pytest.mark.slow
def test_a_signature_passes_with_its_key_only(taciturn: Command, tmp_path: Path) -> None:
    keys = json.loads(taciturn("keygen", "-o", tmp_path / "k", "--json").stdout)
    assert keys["public_key"].endswith("k.pub")
    assert taciturn("keygen", "-o", tmp_path / "k").returncode == 2
    taciturn("keygen", "-o", tmp_path / "other")
    release = tmp_path / "r"
    train = "train", "synthetic:10k", "--epsilon", 5, "-o", release, "--sign"
    missing = taciturn(*train, tmp_path / "none")
    assert missing.returncode == 2 and "cannot read" in missing.stderr and not release.exists()
    assert taciturn(*train, tmp_path / "k").returncode == 0
    assert taciturn("verify", release, "--public-key", tmp_path / "k.pub").returncode == 0
    result = taciturn("verify", release, "--public-key", tmp_path / "other.pub")
    assert result.returncode == 1 and "a different key" in result.stdout


def test_recommend_prints_ranked_items_without_excluded_ones(
    taciturn: Command, release: Path, tmp_path: Path
) -> None:
    titles = tmp_path / "titles.csv"
    titles.write_text("movieId,title\n100,The First\n101,The Second\n")
    arguments = "recommend", release, "--user", 1, "-k", 3
    document = json.loads(taciturn(*arguments, "--json", "--titles", titles).stdout)
    assert document["user_id"] == 1
    assert [item["rank"] for item in document["items"]] == [1, 2, 3]
    assert list(document["items"][0]) == [
        *("item_id", "score", "rank", "title", "because", "reason")
    ]
    seen = tmp_path / "seen.csv"
    seen.write_text(f"item_id\n{document['items'][0]['item_id']}\n")
    after = json.loads(taciturn(*arguments, "--json", "--exclude", seen).stdout)
    assert after["items"][0]["item_id"] == document["items"][1]["item_id"]
    # If there is a column of users, only the pairs of this user are excluded.
    seen.write_text(f"uid,iid\n2,{document['items'][0]['item_id']}\n")
    other = json.loads(taciturn(*arguments, "--json", "--exclude", seen).stdout)
    assert other["items"][0]["item_id"] == document["items"][0]["item_id"]
    assert taciturn(*arguments).stdout.count("\n") == 3


def test_compressed_files_are_served_like_plain_ones(
    taciturn: Command, release: Path, tmp_path: Path
) -> None:
    arguments = "recommend", release, "--user", 1, "-k", 3, "--json"
    best = json.loads(taciturn(*arguments).stdout)["items"][0]["item_id"]
    seen, titles = tmp_path / "seen.csv.gz", tmp_path / "titles.tsv.gz"
    seen.write_bytes(gzip.compress(f"user_id;item_id\n1;{best}\n".encode()))
    titles.write_bytes(gzip.compress(b"movieId\ttitle\n100\tThe First\n"))
    result = taciturn(*arguments, "--exclude", seen, "--titles", titles)
    assert result.returncode == 0, result.stderr
    items = json.loads(result.stdout)["items"]
    assert best not in [item["item_id"] for item in items]
    assert all(item["title"] == ("The First" if item["item_id"] == 100 else None) for item in items)


def test_ids_cannot_imitate_rows(taciturn: Command, release: Path, tmp_path: Path) -> None:
    ids = ["a\x1b[31m\n  1.  9.99  fake", "b"]
    frame = pl.DataFrame({"item_id": ids, "profile": [[9.0, 9.0], [0.1, 0.1]]})
    frame.write_parquet(tmp_path / "items.parquet")
    result = taciturn("recommend", release, "--user", 1, "--items", tmp_path / "items.parquet")
    assert result.stdout.count("\n") == 2 and "\x1b" not in result.stdout


def test_similar_predict_and_export_serve_a_release(
    taciturn: Command, release: Path, tmp_path: Path
) -> None:
    document = json.loads(taciturn("similar", release, "--item", 100, "-k", 2, "--json").stdout)
    assert document["item_id"] == 100 and len(document["items"]) == 2
    document = json.loads(taciturn("predict", release, "--user", 1, "--item", 100, "--json").stdout)
    assert 1 <= document["rating"] <= 5
    for form in ("npz", "parquet", "ann"):
        result = taciturn("export", release, "--to", form, "-o", tmp_path / form, "--json")
        assert result.returncode == 0, result.stderr
        assert (tmp_path / form).exists()
    assert taciturn("export", release, "--to", "pickle", "-o", tmp_path / "x").returncode == 2


def test_a_paper_release_needs_items(taciturn: Command, tmp_path: Path) -> None:
    fit = write_small(tmp_path / "paper", "paper")
    arguments = "recommend", tmp_path / "paper", "--user", 1
    alone = taciturn(*arguments)
    assert alone.returncode == 2 and "--items" in alone.stderr
    np.save(tmp_path / "items.npy", np.eye(4, 2))
    pl.DataFrame({"id": ["a", "b", "c", "d"]}).write_csv(tmp_path / "ids.csv")
    result = taciturn(
        *arguments, "--items", tmp_path / "items.npy", "--item-ids", tmp_path / "ids.csv", "--json"
    )
    best = json.loads(result.stdout)["items"][0]["item_id"]
    first = fit.model.user_profiles.factors[0]
    assert best == max([(first[0], "a"), (first[1], "b"), (0, "c")])[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["verify", "nothing"], "not a release"),
        (["recommend", "nothing", "--user", "1"], "not a release"),
        (["recommend", "release", "--user", "77"], "--ratings FILE"),
        (["recommend", "release", "--user", "me"], "whole numbers"),
        (["recommend", "release", "--user", "1", "-k", "0"], "count"),
        (["recommend", "release", "--user", "1", "--exclude", "none.csv"], "cannot read"),
        (["recommend", "release", "--user", "1", "--titles", "none.csv"], "cannot read"),
        (["recommend", "release", "--user", "1", "--items", "none.parquet"], "cannot read"),
        (["similar", "release", "--item", "7"], "no item 7"),
        (["predict", "release", "--user", "1", "--item", "7"], "no item 7"),
        (["export", "release", "--to", "npz", "-o", "release"], "exists already"),
        (["verify", "release", "--public-key", "none.pub"], "cannot read"),
    ],
)
def test_errors_are_printed_as_one_line(
    taciturn: Command, release: Path, arguments: list[str], words: str
) -> None:
    result = taciturn(*arguments, cwd=release.parent)
    assert result.returncode == 2 and result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ") and words in line


def test_a_release_without_factors_is_said_to_be_not_personalised(
    taciturn: Command, tmp_path: Path
) -> None:
    for solver, is_personalised in (("bias", False), ("gradient", True)):
        folder = tmp_path / solver
        options = ("--solver", solver, "--unit", "value", "--epsilon", 5, "-o", folder)
        trained = taciturn("train", "synthetic:10k", *options, "--json")
        served = taciturn("recommend", folder, "--user", 1, "-k", 2, "--json")
        for result in (trained, served):
            document = json.loads(result.stdout)
            assert document["personalised"] is is_personalised
            assert document.get("reason", "").startswith("not personalised: ") != is_personalised
        assert (json.loads(trained.stdout)["factors"] > 0) == is_personalised
        text = taciturn("recommend", folder, "--user", 1)
        assert ("warning: not personalised: " in text.stderr) != is_personalised
    table = taciturn("train", "synthetic:10k", *options[:-1], tmp_path / "other").stdout
    assert "factors" in table and "not personalised" not in table
