"""`taciturn train` end to end."""

import gzip
import json
import os
import pty
import re
import signal
import subprocess
import time
from pathlib import Path

import polars as pl
import pytest

from taciturn.accounting.certificate import read_ledger
from taciturn.accounting.units import Unit
from taciturn.data.synthetic import synthetic_ratings
from tests.commands import MAIN
from tests.conftest import Command
from tests.known_noise import known_noise


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    file = tmp_path / "ratings.csv"
    synthetic_ratings("10k").to_frame().write_csv(file)
    return file


def test_a_file_becomes_a_release(taciturn: Command, ratings: Path, tmp_path: Path) -> None:
    release = tmp_path / "release"
    result = taciturn(
        "train", ratings, "--scale", "1:5:1", "-o", release, "--epsilon", 5, "--delta", "1e-6",
        "--json",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["status"] == "proven" and document["unit"] == "rating"
    assert 4.999 < document["epsilon"] <= 5 and document["delta"] == 1e-6
    assert document["release"] == str(release) and document["seconds"] > 0
    assert "rmse_test" not in document and "rmse_train" not in document
    assert read_ledger(release).status == "proven"
    profiles = pl.read_parquet(release / "users.parquet")["profile"]
    assert profiles.dtype == pl.List(pl.Float32) and set(profiles.list.len()) == {0}


def test_unit_rating_releases_every_listed_user_and_item(
    taciturn: Command, ratings: Path, tmp_path: Path
) -> None:
    """Profiles of all listed ids, so that a release does not reveal which of them have ratings."""
    lists = tmp_path / "users.csv", tmp_path / "items.parquet"
    pl.DataFrame({"user_id": range(1, 501)}).write_csv(lists[0])
    pl.DataFrame({"item_id": range(1, 2001)}).write_parquet(lists[1])
    arguments = (
        "train", ratings, "--scale", "1:5:1", "-o", tmp_path / "r", "--epsilon", 5, "--unit",
        "rating", "--user-list", lists[0], "--item-list", lists[1],
    )  # fmt: skip
    result = taciturn(*arguments, "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["status"] == "proven" and document["unit"] == "rating"
    assert "treated as public" not in result.stderr
    assert len(pl.read_parquet(tmp_path / "r" / "users.parquet")) == 500
    assert len(pl.read_parquet(tmp_path / "r" / "items.parquet")) == 2000
    certificate = json.loads((tmp_path / "r" / "certificate.json").read_text())["certificate"]
    assert any("both lists are treated as public" in each for each in certificate["not_protected"])
    # All ids are text if one id of the list is text.
    pl.DataFrame({"item_id": [*map(str, range(1, 2001)), "x"]}).write_csv(tmp_path / "items.csv")
    changed: dict[object, Path] = {tmp_path / "r": tmp_path / "t", lists[1]: tmp_path / "items.csv"}
    text = taciturn(*[changed.get(each, each) for each in arguments])
    assert text.returncode == 0, text.stderr
    assert pl.read_parquet(tmp_path / "t" / "items.parquet")["item_id"].dtype == pl.String
    pl.DataFrame({"user_id": range(1, 5)}).write_csv(lists[0])
    short = taciturn(*[tmp_path / "s" if each == tmp_path / "r" else each for each in arguments])
    assert short.returncode == 2 and "not listed" in short.stderr
    assert not (tmp_path / "s").exists()


def test_a_compressed_item_list_is_read_like_a_plain_one(
    taciturn: Command, ratings: Path, tmp_path: Path
) -> None:
    content = pl.DataFrame({"item_id": range(1, 2001), "year": 1999}).write_csv().encode()
    for name, packed in (("items.csv", content), ("items.csv.gz", gzip.compress(content))):
        (tmp_path / name).write_bytes(packed)
        arguments = "train", ratings, "--scale", "1:5:1", "--epsilon", 5, "--solver", "bias"
        release = tmp_path / f"r-{name}"
        result = taciturn(*arguments, "--item-list", tmp_path / name, "-o", release)
        assert result.returncode == 0, result.stderr
        ids = pl.read_parquet(release / "items.parquet")["item_id"]
        assert ids.to_list() == list(range(1, 2001))


def test_unit_user_releases_items_only(taciturn: Command, ratings: Path, tmp_path: Path) -> None:
    arguments = "train", ratings, "--scale", "1:5:1", "--epsilon", 20, "--unit", "user"
    result = taciturn(*arguments, "-o", tmp_path / "r", "--holdout", 0.1, "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["unit"] == "user" and 0.5 < document["rmse_test"] < 1.5
    assert "list of items is taken from the ratings" in result.stderr
    names = {file.name for file in (tmp_path / "r").iterdir()}
    assert names == {"card.md", "certificate.json", "items.parquet", "SHA256SUMS"}
    facts = json.loads((tmp_path / "r" / "certificate.json").read_text())["facts"]
    assert facts["users"] == 0 and facts["user_ids"] == "none"
    refused = taciturn(*arguments, "-o", tmp_path / "s", "--users-out", "pseudonyms")
    assert refused.returncode == 2 and "exact function of one user" in refused.stderr
    own = tmp_path / "own.csv"
    own.write_text("item_id,rating\n1,5\n2,1\n3,4\n")
    best = taciturn("recommend", tmp_path / "r", "--ratings", own, "-k", 3, "--json")
    assert best.returncode == 0, best.stderr
    items = [each["item_id"] for each in json.loads(best.stdout)["items"]]
    assert len(items) == 3 and not {1, 2, 3} & set(items)
    lost = taciturn("recommend", tmp_path / "r", "--user", 1)
    assert lost.returncode == 2 and "--ratings" in lost.stderr
    neither = taciturn("recommend", tmp_path / "r")
    assert neither.returncode == 2 and "--user ID, or --ratings" in neither.stderr
    rated = taciturn("predict", tmp_path / "r", "--ratings", own, "--item", 5, "--json")
    assert 1 <= json.loads(rated.stdout)["rating"] <= 5
    own.write_text("item_id,rating\n1,5\n99999,3\n")
    part = taciturn("recommend", tmp_path / "r", "--ratings", own)
    assert part.returncode == 0 and "1 of 2 items" in part.stderr
    for text, words in (
        ("item_id,rating\n1,9\n", "between 1 and 5"),
        ("item_id,rating\n1,5\n1,4\n", "twice"),
        ("item_id\n1\n", "no rating column"),
        ("item_id,rating\n", "has no ratings"),
        ("item_id,rating\n99999,3\n", "none of the items"),
        ("user_id,item_id,rating\n1,1,5\n2,2,4\n", "several users"),
    ):
        own.write_text(text)
        bad = taciturn("recommend", tmp_path / "r", "--ratings", own)
        assert bad.returncode == 2 and words in bad.stderr, bad.stderr


@pytest.mark.slow
@pytest.mark.parametrize("unit", [Unit.RATING, Unit.USER])
def test_an_interrupted_training_gives_the_same_release(unit: Unit, tmp_path: Path) -> None:
    from taciturn.accounting.budget import Budget
    from taciturn.data.splits import random_split
    from taciturn.solvers.als.solver import AlsSolver
    from taciturn.training.train import train

    data, _ = random_split(synthetic_ratings("10k"), 0.1, 1)
    solver, budget = AlsSolver(unit=unit, factors=2), Budget.from_epsilon(5, 1e-5)
    with known_noise(1):
        train(data, solver, budget, output=tmp_path / "whole")

    def stop(done: int, total: int) -> None:
        if done == 7:
            raise KeyboardInterrupt

    with known_noise(1), pytest.raises(KeyboardInterrupt):
        train(data, solver, budget, output=tmp_path / "r", progress=stop)
    train(data, solver, budget, output=tmp_path / "r", resume=True)
    one, two = (pl.read_parquet(tmp_path / name / "items.parquet") for name in ("whole", "r"))
    assert one.equals(two)


@pytest.mark.slow
def test_als_releases_variances_and_pattern_features_as_asked(
    taciturn: Command, ratings: Path, tmp_path: Path
) -> None:
    """A release has variances if requested, and pattern features unless refused."""
    arguments = (
        "train",
        ratings,
        "--scale",
        "1:5:1",
        "--unit",
        "value",
        "--epsilon",
        5,
        "--iterations",
        3,
    )
    first = taciturn(*arguments, "-o", tmp_path / "a", "--uncertainty")
    second = taciturn(*arguments, "-o", tmp_path / "b", "--no-pattern-features", "--factors", 3)
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    cards = [(tmp_path / name / "card.md").read_text(encoding="utf-8") for name in "ab"]
    assert "features of the rating pattern" in cards[0] and "features" not in cards[1]
    assert "a bias and 3 factors" in cards[1]
    pair = "--user", 1, "--item", 1
    found = json.loads(taciturn("predict", tmp_path / "a", *pair, "--json").stdout)
    assert 1 <= found["rating"] <= 5 and 0.2 < found["deviation"] < 3
    assert list(found["probabilities"]) == ["1", "2", "3", "4", "5"]
    assert sum(found["probabilities"].values()) == pytest.approx(1)
    assert re.fullmatch(
        r"\d\.\d{3} ± \d\.\d{3}\n(  [1-5] +\d+\.\d%\n){5}",
        taciturn("predict", tmp_path / "a", *pair).stdout,
    )
    assert "deviation" not in json.loads(
        taciturn("predict", tmp_path / "b", *pair, "--json").stdout
    )
    for name in "ab":
        assert taciturn("verify", tmp_path / name).returncode == 0


@pytest.mark.slow
def test_errors_are_marked_as_owner_only(taciturn: Command, tmp_path: Path) -> None:
    arguments = "train", "synthetic:10k", "--epsilon", 20, "--holdout", 0.1
    result = taciturn(*arguments, "-o", tmp_path / "a", "--json")
    document = json.loads(result.stdout)
    assert document["rmse_view"] == "owner"
    assert document["rmse_train"] > 0.5 and 0.5 < document["rmse_test"] < 2
    shown = taciturn(*arguments, "-o", tmp_path / "b").stdout
    assert len(re.findall(r"rmse \w+ +[\d.]+ +owner-only", shown)) == 2


def test_a_dry_run_releases_nothing(taciturn: Command, tmp_path: Path) -> None:
    result = taciturn("train", "synthetic:10k", "--epsilon", 3, "--dry-run", "--json", cwd=tmp_path)
    document = json.loads(result.stdout)
    assert document["dry_run"] and document["releases"] == 92 and document["epsilon"] <= 3
    assert document["seconds"] > 0 and document["memory_bytes"] > 2**25
    shown = taciturn("train", "synthetic:10k", "--epsilon", 3, "--dry-run", cwd=tmp_path)
    assert "nothing was released" in shown.stdout and "Privacy certificate: proven" in shown.stdout
    assert not list(tmp_path.iterdir())


def test_the_paper_solver_is_claimed_and_explains_why(taciturn: Command, tmp_path: Path) -> None:
    result = taciturn(
        "train", "synthetic:10k", "--solver", "paper", "--unit", "value", "--epsilon-i", 0.4,
        "--iterations", 20,
        "--centre", "item-mean", "--tau", 5, "-o", tmp_path / "r", "--json",
        "--private-items-out", tmp_path / "mine.parquet",
    )  # fmt: skip
    assert json.loads(result.stdout)["status"] == "claimed"
    assert "theorem is false" in result.stderr and "centred by exact item means" in result.stderr
    assert not (tmp_path / "r" / "items.parquet").exists()
    assert pl.read_parquet(tmp_path / "mine.parquet").columns == ["item_id", "bias", "profile"]


@pytest.mark.parametrize("solver", ["non-private", "non-private-gradient", "non-private-bias"])
def test_a_non_private_solver_says_so(taciturn: Command, tmp_path: Path, solver: str) -> None:
    result = taciturn("train", "synthetic:10k", "--solver", solver, "-o", tmp_path / "r", "--json")
    document = json.loads(result.stdout)
    assert document["status"] == "none" and document["epsilon"] is None
    assert "without noise" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--epsilon", "1"], "-o DIR"),
        (["-o", "r"], "--epsilon"),
        (["-o", "r", "--epsilon", "1", "--solver", "magic"], "must be one of als"),
        (["-o", "r", "--epsilon", "1", "--step-size", "1"], "no setting --step-size"),
        (["-o", "r", "--epsilon-i", "1"], "no setting --epsilon-i"),
        (["-o", "r", "--epsilon", "1", "--solver", "non-private"], "not private"),
        (["-o", "r", "--epsilon", "1", "--unit", "household"], "value, rating, user"),
        (["-o", "r", "--epsilon", "1", "--unit", "user", "--solver", "paper"], "als and bias"),
        (["-o", "r", "--epsilon", "1", "--unit", "user", "--users-out", "ids"], "--users-out none"),
        (["-o", "r", "--epsilon", "1", "--unit", "user", "--user-list", "u"], "no list"),
        (
            ["-o", "r", "--epsilon", "1", "--unit", "user", "--serve", "profiles"],
            "--serve profiles",
        ),
        (["-o", "r", "--epsilon", "1", "--serve", "fold-in", "--users-out", "ids"], "users-out"),
        (["-o", "r", "--epsilon", "-1"], "epsilon"),
        (["-o", "r", "--epsilon", "x"], "number"),
        (["-o", "r", "--epsilon", "1", "--factors", "0"], "factors"),
        (["-o", "r", "--epsilon", "1", "--tau", "4"], "no setting --tau"),
        (["-o", "r", "--epsilon", "1", "--resume"], "no interrupted training"),
        (["-o", "r", "--epsilon", "1", "--holdout", "1.5"], "holdout"),
        (["-o", "no/r", "--epsilon", "1"], "does not exist"),
        (["-o", ".", "--epsilon", "1"], "exists already"),
        (["-o", "r", "--epsilon", "1", "--threads", "0"], "threads"),
        (
            [
                "-o",
                "r",
                "--epsilon",
                "1",
                "--epsilon-i",
                "1",
                "--solver",
                "paper",
                "--unit",
                "value",
            ],
            "not both",
        ),
        (["-o", "r", "--epsilon", "1", "--solver", "gradient"], "pass --unit value to accept"),
        (["-o", "r", "--epsilon-i", "1", "--solver", "paper"], "pass --unit value to accept"),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_files(
    taciturn: Command, tmp_path: Path, arguments: list[str], words: str
) -> None:
    result = taciturn("train", "synthetic:10k", *arguments, cwd=tmp_path)
    assert result.returncode == 2 and result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ") and words in line
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_an_interrupted_command_can_be_resumed(taciturn: Command, tmp_path: Path) -> None:
    arguments = [
        "train", "synthetic:100k", "--epsilon", "5", "-o", str(tmp_path / "r"),
        "--iterations", "3000", "--factors", "4", "--solver", "gradient", "--unit", "value",
    ]  # fmt: skip
    with subprocess.Popen([*MAIN, *arguments], stderr=subprocess.PIPE, text=True) as process:
        uses = tmp_path / "r.run" / "uses.jsonl"
        deadline = time.monotonic() + 60
        while not (uses.exists() and uses.stat().st_size > 5000):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "--resume" in errors and "interrupted" in errors
    assert (tmp_path / "r.run" / "state").exists() and not (tmp_path / "r").exists()
    refused = taciturn(*arguments)
    assert refused.returncode == 2 and "--resume" in refused.stderr
    changed = taciturn(*arguments, "--resume", "--seed", "5")
    assert changed.returncode == 2 and "another configuration" in changed.stderr
    done = taciturn(*arguments, "--resume", "--json")
    assert done.returncode == 0, done.stderr
    assert len(read_ledger(tmp_path / "r").events) == 6000
    assert not (tmp_path / "r.run").exists()


@pytest.mark.slow
def test_progress_on_a_terminal_shows_counts_only(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    arguments = (
        "train synthetic:100k --solver gradient --unit value --epsilon 5 --iterations 200".split()
    )
    arguments += ["--holdout", "0.1", "-o"]
    process = subprocess.Popen(
        [*MAIN, *arguments, str(tmp_path / "r")],
        stdout=subprocess.DEVNULL,
        stderr=follower,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(follower)
    seen = b""
    while True:
        try:
            piece = os.read(leader, 4096)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    assert process.wait(timeout=60) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    assert re.search(r"gradient .*\d+/200 [\d.]+/s 0:00:0\d", text)
    # Only the title, a bar, counts, the rate and the time left.
    rest = re.sub(r"gradient|\d+/(200|\?)|[\d.]+/s|\d:\d\d:\d\d|-:--:--|[━╸╺\s]", "", text)
    assert rest == ""
