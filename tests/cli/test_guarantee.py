"""Messages of the command line about the guarantee: δ, merged rows, patterns, owner-only output."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import sparse

import taciturn as library
from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.events import Noise, Rows
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.run_folder import RunFolder
from taciturn.solvers.als.solver import AlsSolver
from taciturn.solvers.bias import BiasSolver
from taciturn.solvers.contract import Session
from taciturn.training.train import train
from tests.conftest import Command
from tests.solvers.helpers import random_ratings

BUDGET = Budget.from_epsilon(1, 1e-5)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    frame = random_ratings(1, users=40, items=12).to_frame()
    frame.write_csv(tmp_path / "ratings.csv")
    return tmp_path / "ratings.csv"


def bias(file: Path, out: Path, *options: object) -> list[object]:
    scale = ["--scale", "1:5", "--solver", "bias", "--epsilon", "1"]
    return ["train", file, *scale, "-o", out, *options]


@pytest.mark.parametrize("delta", ["0.11", "0.5"])
def test_a_large_delta_is_refused(
    taciturn: Command, file: Path, tmp_path: Path, delta: str
) -> None:
    result = taciturn(*bias(file, tmp_path / "r", "--delta", delta))
    assert result.returncode == 2 and "at most 0.1" in result.stderr
    assert not (tmp_path / "r").exists()
    with pytest.raises(InvalidParameter, match=r"at most 0\.1"):
        Budget.from_epsilon(1, float(delta))
    with pytest.raises(InvalidParameter, match=r"at most 0\.1"):
        Certificate.from_ledger(BiasSolver().fit(random_ratings(), BUDGET).ledger, float(delta))


@pytest.mark.parametrize("unit", ["value", "rating", "user"])
def test_the_owner_is_warned_of_a_delta_above_one_over_users(
    taciturn: Command, file: Path, tmp_path: Path, unit: str
) -> None:
    loose = taciturn(*bias(file, tmp_path / "a", "--unit", unit, "--delta", "0.05"))
    assert loose.returncode == 0 and "1/40" in loose.stderr and "owner" in loose.stderr
    tight = taciturn(*bias(file, tmp_path / "b", "--unit", unit))
    assert tight.returncode == 0 and "1/40" not in tight.stderr


@pytest.mark.parametrize("policy", ["last", "mean"])
def test_merged_rows_are_noted(taciturn: Command, file: Path, tmp_path: Path, policy: str) -> None:
    options = ["--unit", "rating", "--duplicates", policy]
    merged = taciturn(*bias(file, tmp_path / "a", *options))
    assert merged.returncode == 0 and "after merging" in " ".join(merged.stderr.split())
    assert "after merging" not in taciturn(*bias(file, tmp_path / "b")).stderr
    certificate = json.loads((tmp_path / "a" / "certificate.json").read_text())["certificate"]
    assert any("(user, item) pair" in note for note in certificate["notes"])


def test_dropped_rows_are_noted(taciturn: Command, file: Path, tmp_path: Path) -> None:
    dropped = taciturn(*bias(file, tmp_path / "a", "--missing", "drop"))
    assert dropped.returncode == 0 and "before training" in " ".join(dropped.stderr.split())


def test_dropping_by_value_is_refused_where_the_pattern_is_published(
    taciturn: Command, file: Path, tmp_path: Path
) -> None:
    refused = taciturn(*bias(file, tmp_path / "a", "--unit", "value", "--outside", "drop"))
    assert refused.returncode == 2 and "--pattern-is-public" in refused.stderr
    dry = taciturn(*bias(file, tmp_path / "a", "--unit", "value", "--outside", "drop", "--dry-run"))
    assert dry.returncode == 2 and not (tmp_path / "a").exists()
    public = taciturn(
        *bias(file, tmp_path / "a", "--unit", "value", "--outside", "drop", "--pattern-is-public")
    )
    assert public.returncode == 0, public.stderr
    protected = taciturn(*bias(file, tmp_path / "b", "--outside", "drop", "--unit", "rating"))
    assert protected.returncode == 0, protected.stderr
    clipped = taciturn(*bias(file, tmp_path / "c", "--unit", "value", "--outside", "clip"))
    assert clipped.returncode == 0, clipped.stderr


def test_a_sparse_matrix_that_cannot_hold_a_zero_is_refused(tmp_path: Path) -> None:
    matrix = sparse.csr_array(random_matrix())
    for scale, is_refused in (("0:5", True), ("-5:5", True), ("1:5", False)):
        ratings = library.load(matrix, scale=scale)
        train_it: dict[str, Any] = {"output": tmp_path / f"r{scale[:2]}"}
        if is_refused:
            with pytest.raises(InvalidParameter, match="sparse"):
                train(ratings, BiasSolver(unit=Unit.VALUE), BUDGET, **train_it)
            train(ratings, BiasSolver(unit=Unit.VALUE), BUDGET, **train_it, pattern_is_public=True)
        else:
            train(ratings, BiasSolver(unit=Unit.VALUE), BUDGET, **train_it)
    # Splits and lists are still marked as sparse.
    part = library.load(matrix, scale="0:5").select(np.arange(len(ratings)) % 2 == 0)
    with pytest.raises(InvalidParameter, match="sparse"):
        listed = library.with_id_lists(part, items=range(30))
        train(listed, BiasSolver(unit=Unit.VALUE), BUDGET, output=tmp_path / "s")


def random_matrix() -> np.ndarray:
    random = np.random.default_rng(1)
    return random.integers(1, 6, (20, 10)) * (random.random((20, 10)) < 0.5)


def test_exact_output_is_marked_in_json(taciturn: Command, file: Path, tmp_path: Path) -> None:
    """Seconds and memory depend on the number of ratings."""
    trained = json.loads(taciturn(*bias(file, tmp_path / "r", "--json", "--holdout", "0.2")).stdout)
    assert trained["view"] == "owner" and trained["seconds"] > 0 and trained["rmse_test"] > 0
    dry = json.loads(taciturn(*bias(file, tmp_path / "d", "--json", "--dry-run")).stdout)
    assert dry["view"] == "owner" and dry["memory_bytes"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one-run", "attack", "two-worlds"])
def test_audits_are_marked_in_json(taciturn: Command, kind: str) -> None:
    size = {
        "one-run": ("--canaries", 40),
        "attack": ("--targets", 40),
        "two-worlds": ("--runs", 40, "--jobs", 1),
    }
    result = taciturn("audit", kind, "--solver", "bias", *size[kind], "--json")
    assert json.loads(result.stdout)["view"] == "owner", result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["value", "user"])
def test_an_audit_like_a_release_audits_its_epsilon(
    taciturn: Command, file: Path, tmp_path: Path, unit: str
) -> None:
    assert taciturn(*bias(file, tmp_path / "r", "--unit", unit)).returncode == 0
    stated = json.loads(taciturn("verify", tmp_path / "r", "--json").stdout)["epsilon"]
    size = ("--runs", 1, "--jobs", 1, "--json")
    audit = taciturn("audit", "two-worlds", "--like", tmp_path / "r", *size)
    assert json.loads(audit.stdout)["claimed_epsilon"] == pytest.approx(stated, rel=1e-7)


def test_compose_prints_the_certified_total(taciturn: Command, tmp_path: Path) -> None:
    """Rounded up, and with the charge for the sampler, which is large here."""
    ledgers = []
    for number in range(2):
        fit = AlsSolver(unit=Unit.USER, factors=40, iterations=20).fit(
            random_ratings(number, items=3000, users=5, density=0.2), Budget.from_epsilon(1, 1e-5)
        )
        fit.ledger.save(tmp_path / f"{number}.json")
        ledgers.append(fit.ledger)
    paths = [tmp_path / f"{number}.json" for number in range(2)]
    total = Certificate.from_ledger(library.combine(ledgers), 1e-5).epsilon
    assert total is not None
    text = taciturn("budget", "compose", *paths).stdout
    (line,) = [line.split() for line in text.splitlines() if line.strip().startswith("epsilon ")]
    assert total <= float(line[1]) < total + 1.1e-6
    document = json.loads(taciturn("budget", "compose", *paths, "--json").stdout)
    assert document["epsilon"] == total
    # Without the charge for the sampler the total is lower.
    assert document["epsilon_exact"] < total - 1e-5


def test_compose_accepts_releases_certificates_and_journals(
    taciturn: Command, file: Path, tmp_path: Path
) -> None:
    assert taciturn(*bias(file, tmp_path / "r")).returncode == 0
    whole = taciturn("budget", "compose", tmp_path / "r").stdout.splitlines()[-2:]
    part = taciturn("budget", "compose", tmp_path / "r" / "certificate.json").stdout.splitlines()[
        -2:
    ]
    assert whole == part
    folder = RunFolder.create(tmp_path / "run", data=[])
    BiasSolver().fit(random_ratings(), BUDGET, Session(folder=folder))
    folder.close()
    result = taciturn("budget", "compose", tmp_path / "run" / "ledger.jsonl")
    assert result.returncode == 0 and "certified" in result.stdout


def test_a_bad_seed_leaves_no_files(taciturn: Command, file: Path, tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    result = taciturn(*bias(file, tmp_path / "r", "--seed", "-1"))
    assert result.returncode == 2 and "counts" not in result.stderr
    assert set(tmp_path.iterdir()) == before


def test_a_list_and_a_type_of_items_exclude_each_other(
    taciturn: Command, file: Path, tmp_path: Path
) -> None:
    (tmp_path / "items.csv").write_text("item_id\n" + "\n".join(map(str, range(100, 112))) + "\n")
    options = ["--item-list", tmp_path / "items.csv", "--item-id-type", "text"]
    result = taciturn(*bias(file, tmp_path / "r", *options))
    assert result.returncode == 2 and "leave out --item-id-type" in result.stderr


def test_a_data_folder_that_is_not_a_folder_is_an_error(taciturn: Command, tmp_path: Path) -> None:
    import os

    for folder in (tmp_path / "absent", tmp_path / "file"):
        (tmp_path / "file").write_text("")
        environment = os.environ | {"TACITURN_DATA": str(folder), "TACITURN_CACHE": str(tmp_path)}
        result = taciturn("data", "info", "ml-100k", env=environment)
        assert result.returncode == 2 and "TACITURN_DATA" in result.stderr
        assert "not a folder" in result.stderr
        listed = taciturn("data", "list", env=environment)
        assert listed.returncode == 2 and "TACITURN_DATA" in listed.stderr


def test_input_perturbation_records_ratings_as_rows() -> None:
    from taciturn.solvers.catalog import make_solver

    fit = make_solver("input-perturbation", factors=2).fit(random_ratings(), BUDGET)
    (event,) = fit.ledger.events
    assert event.rows == "ratings"
    group = Certificate.from_ledger(fit.ledger, 1e-5).group
    assert group[1].mu == pytest.approx(group[0].mu * 10**0.5)


def test_a_group_beyond_the_proof_has_an_infinite_charge() -> None:
    event = library.GaussianRelease(
        purpose="a table",
        proof="user.md#claim",
        unit=Unit.USER,
        sensitivity=1.0,
        noise_scale=1.0,
        rows=Rows.ITEMS,
        noise=Noise.SECURE,
        coordinates=1,
        sampler_error=0.05,
        sampler_tail=0.0,
    )
    assert event.sampler_charge()[0] < 0.1
    assert event.sampler_charge(100)[0] == float("inf")


def test_ids_of_frames_have_the_type_of_their_column() -> None:
    frame = pl.DataFrame({"user_id": ["a"], "item_id": [7], "rating": [3.0]})
    ratings = library.load(frame, scale="1:5")
    assert ratings.item_ids.dtype == pl.Int64
    with pytest.raises(InvalidParameter, match="text files"):
        library.load(frame, scale="1:5", item_id_type="int")
