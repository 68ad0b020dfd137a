"""Training to a release: its files, its private outputs and its certificate."""

import json
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from taciturn.accounting.certificate import Certificate, read_ledger
from taciturn.data.splits import random_split
from taciturn.errors import InvalidParameter, OutputError
from taciturn.evaluate.metrics import rmse
from taciturn.release.read import load_release
from taciturn.training.outputs import run_folder
from taciturn.training.train import train
from tests.narrow import present
from tests.solvers.helpers import BUDGET, small_solver
from tests.training.helpers import RATINGS, go, stop_at


def test_a_release_is_written_and_the_run_folder_removed(tmp_path: Path) -> None:
    trained = go(tmp_path / "release", holdout=0.2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["release"]
    assert sorted(path.name for path in trained.release.iterdir()) == [
        "SHA256SUMS",
        "card.md",
        "certificate.json",
        "items.parquet",
        "users.parquet",
    ]
    assert trained.fit is not None
    assert read_ledger(trained.release) == trained.fit.ledger
    assert trained.rmse_test is not None and trained.rmse_train is not None
    items = pl.read_parquet(trained.release / "items.parquet")
    assert items["item_id"].to_list() == RATINGS.item_ids.to_list()
    assert trained.fit.model.items is not None
    assert np.array_equal(items["profile"].to_list(), trained.fit.model.items.factors)
    assert np.array_equal(items["bias"].to_numpy(), trained.fit.model.items.biases)


def test_errors_are_shown_only_with_a_holdout(tmp_path: Path) -> None:
    trained = go(tmp_path / "release")
    assert trained.rmse_train is None and trained.rmse_test is None


def test_a_run_without_releases_leaves_no_files(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "parts", progress=stop_at(0))
    assert not list(tmp_path.iterdir())


def test_existing_files_are_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    for output in (tmp_path / "there", tmp_path / "no" / "folder"):
        with pytest.raises(OutputError, match=r"exists already|does not exist"):
            go(output)
    with pytest.raises(OutputError, match="exists already"):
        go(tmp_path / "new", "paper", private={"private_items": tmp_path / "there"})
    assert (tmp_path / "there").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_private_items_are_written_to_a_separate_file(tmp_path: Path) -> None:
    trained = go(
        tmp_path / "release", "paper", private={"private_items": tmp_path / "mine.parquet"}
    )
    assert not (trained.release / "items.parquet").exists()
    items = pl.read_parquet(tmp_path / "mine.parquet")
    assert items["item_id"].to_list() == RATINGS.item_ids.to_list()
    assert (tmp_path / "mine.parquet").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.parquet", "release"]


def test_outputs_are_checked_before_training(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="leave out private_items"):
        go(tmp_path / "other", private={"private_items": tmp_path / "none.parquet"})
    for same_path in (tmp_path / "r", run_folder(tmp_path / "r")):
        with pytest.raises(InvalidParameter, match="different paths"):
            go(tmp_path / "r", "paper", private={"private_items": same_path})
    assert not list(tmp_path.iterdir())


def test_every_training_has_a_key_of_its_own(tmp_path: Path) -> None:
    keys = set()
    solver = small_solver("gradient", iterations=6)
    for name in ("a", "b"):
        with pytest.raises(KeyboardInterrupt):
            train(RATINGS, solver, BUDGET, output=tmp_path / name, progress=stop_at(2))
        keys.add(json.loads((run_folder(tmp_path / name) / "key.json").read_text())["key"])
    assert len(keys) == 2 and all(len(set(key)) > 4 for key in keys)


def test_a_release_has_only_known_public_facts(tmp_path: Path) -> None:
    """The names of all facts are listed here, so that no private fact can be added unnoticed."""
    go(tmp_path / "release", "paper")
    document = json.loads((tmp_path / "release" / "certificate.json").read_text())
    assert document.keys() == {"format", "version", "certificate", "facts"}
    assert document["facts"].keys() == {
        "solver", "settings", "taciturn", "date", "scale", "mean", "factors", "users", "items",
        "user_ids", "ids_from_ratings",
    }  # fmt: skip
    assert (
        document["facts"]["settings"]
        == small_solver("paper", iterations=6).resolved(BUDGET).settings
    )
    assert document["facts"]["items"] == 0


def test_rmse_is_the_error_of_the_owner_model(tmp_path: Path) -> None:
    fit = present(go(tmp_path / "release").fit)
    predictions = fit.owner_model.predict_rows(RATINGS.rows(), RATINGS.by_user.columns)
    expected = np.sqrt(np.mean((predictions - RATINGS.values()) ** 2))
    assert rmse(fit, RATINGS) == pytest.approx(expected, rel=1e-5)


def test_two_trainings_do_not_share_a_folder(tmp_path: Path) -> None:
    started = time.monotonic()

    def second(done: int, total: int) -> None:
        if done == 2:
            for resume in (False, True):
                with pytest.raises(OutputError, match="another training is writing"):
                    go(tmp_path / "release", resume=resume)

    go(tmp_path / "release", progress=second)
    assert time.monotonic() - started < 60


def test_the_certificate_has_the_delta_of_the_budget(tmp_path: Path) -> None:
    trained = go(tmp_path / "release")
    assert trained.certificate.delta == BUDGET.delta
    document = json.loads((trained.release / "certificate.json").read_text())
    assert Certificate.from_dict(document["certificate"]).epsilon == trained.certificate.epsilon


@pytest.mark.parametrize("name", ["gradient", "bias"])
def test_the_held_out_error_is_that_of_the_release(name: str, tmp_path: Path) -> None:
    """The judged model, with its number of factors, is the released one."""
    trained = go(tmp_path / "release", name, holdout=0.2)
    rest, test = random_split(RATINGS, 0.2, 3)
    model = load_release(tmp_path / "release").model
    assert trained.factors == model.factor_count
    assert trained.rmse_test == pytest.approx(rmse(model, test), rel=1e-6)
    assert trained.rmse_train == pytest.approx(rmse(model, rest), rel=1e-6)
