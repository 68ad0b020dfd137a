"""Releases hold the trained profiles, are written completely or not at all, overwrite nothing."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import polars as pl
import pytest

from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import read_ledger
from taciturn.accounting.ledger import Status
from taciturn.data.synthetic import synthetic_ratings
from taciturn.errors import (
    CheckFailed,
    InvalidDocument,
    InvalidParameter,
    OutputError,
)
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.recommend.export import Form, export_release
from taciturn.recommend.serve import Recommender
from taciturn.release import bundle, write
from taciturn.release.pseudonyms import make_pseudonyms
from taciturn.release.read import load_release
from taciturn.release.verify import verify_release
from taciturn.release.write import UsersOut, write_release
from taciturn.solvers.catalog import make_solver
from taciturn.solvers.contract import Session
from taciturn.training.outputs import Outputs
from taciturn.training.train import train
from tests.failures import fail_link
from tests.narrow import present
from tests.release.helpers import certificate, small_fit, write_small
from tests.solvers.helpers import BUDGET, random_ratings, small_solver

SCHEMAS = Path(bundle.__file__).parents[1] / "schemas"


def test_a_written_release_is_read_unchanged(tmp_path: Path) -> None:
    fit = write_small(tmp_path / "r")
    release = load_release(tmp_path / "r")
    for table, profiles in (
        (release.model.item_profiles, fit.model.item_profiles),
        (release.model.user_profiles, fit.model.user_profiles),
    ):
        assert table.ids.to_list() == profiles.ids.to_list()
        assert np.array_equal(table.factors, profiles.factors)
        assert np.array_equal(table.biases, profiles.biases)
    assert release.model.mean == fit.model.mean and release.facts.solver == "gradient"
    assert release.certificate.status is Status.PROVEN
    assert read_ledger(tmp_path / "r") == fit.ledger
    check = ["/usr/bin/env", "sha256sum", "-c", "--quiet", "SHA256SUMS"]
    subprocess.run(check, cwd=tmp_path / "r", check=True)


def test_profiles_without_factors_are_released(tmp_path: Path) -> None:
    write_small(tmp_path / "r", "bias")
    release = load_release(tmp_path / "r")
    assert release.model.items is not None and release.model.items.factors.shape == (5, 0)
    assert verify_release(tmp_path / "r").passed


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "als", "unit": "value", "uncertainty": True},
        {"solver": "als", "unit": "rating"},
        {"solver": "als", "unit": "user"},
        {"solver": "input-perturbation"},
        {"solver": "paper"},
        {"solver": "non-private"},
    ],
    ids=lambda options: " ".join(map(str, options.values())),
)
def test_the_documents_follow_their_schemas(tmp_path: Path, options: dict[str, Any]) -> None:
    solver = make_solver(options.pop("solver"), factors=2, iterations=2, **options)
    budget = BUDGET if solver.is_private else None
    train(random_ratings(), solver, budget, output=tmp_path / "r")
    document = json.loads((tmp_path / "r" / bundle.CERTIFICATE).read_text())
    schema = json.loads((SCHEMAS / "release.schema.json").read_text())
    jsonschema.validate(document, schema)
    changes: tuple[dict[str, Any], ...] = ({"version": 2}, {"facts": {}}, {"more": 1})
    for broken in changes:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document | broken, schema)


def test_the_card_has_the_guarantee_and_a_recipe_that_runs(tmp_path: Path) -> None:
    write_small(tmp_path / "r")
    card = (tmp_path / "r" / bundle.CARD).read_text(encoding="utf-8")
    for words in ("guarantee is proven", "taciturn verify", "epsilon = ", "5 item profiles"):
        assert words in card
    # The recipe for use without Taciturn runs unchanged.
    code = card.split("```python\n")[1].split("```")[0]
    script = code + "print(best.to_list())\n"
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path / "r", capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert len(json.loads(result.stdout)) == 5


@pytest.mark.parametrize(
    ("solver", "words"),
    [("gradient", "has noise"), ("paper", "no bound is known"), ("non-private", "exact")],
)
def test_the_card_describes_the_contents_of_the_files(
    tmp_path: Path, solver: str, words: str
) -> None:
    write_small(tmp_path / "r", solver)
    card = (tmp_path / "r" / bundle.CARD).read_text(encoding="utf-8")
    assert words in card and ("protected data has noise" in card) is (solver == "gradient")


@pytest.mark.parametrize(
    ("solver", "status"), [("paper", Status.CLAIMED), ("non-private", Status.NONE)]
)
def test_only_a_proven_release_passes_by_default(
    tmp_path: Path, solver: str, status: Status
) -> None:
    write_small(tmp_path / "r", solver)
    verdict = verify_release(tmp_path / "r")
    assert not verdict.passed and [c.name for c in verdict.checks if not c.passed] == ["status"]
    assert verify_release(tmp_path / "r", allowed=frozenset({status})).passed
    card = (tmp_path / "r" / bundle.CARD).read_text(encoding="utf-8")
    assert "**" in card and "guarantee is proven" not in card


def test_pseudonyms_replace_ids_and_their_order(tmp_path: Path) -> None:
    private = make_pseudonyms(small_fit().model.user_profiles.ids, b"a secret of the run")
    fit = write_small(tmp_path / "r", users_out=UsersOut.PSEUDONYMS, pseudonyms=private)
    release = load_release(tmp_path / "r")
    assert release.model.users is not None and release.facts.user_ids == "pseudonyms"
    names, trained = release.model.users.ids.to_list(), fit.model.user_profiles
    assert names == sorted(names) and all(len(name) == 32 for name in names)
    assert sorted(private["pseudonym"].to_list()) == names
    assert private["pseudonym"].to_list() != names
    other = make_pseudonyms(trained.ids, b"another secret")
    assert not set(other["pseudonym"]) & set(names)
    for user, name in private.iter_rows():
        place = trained.ids.to_list().index(user)
        assert np.array_equal(
            release.model.users.factors[names.index(name)], trained.factors[place]
        )
    with pytest.raises(InvalidParameter, match="map of pseudonyms"):
        write_small(tmp_path / "s", users_out=UsersOut.PSEUDONYMS)


def test_a_release_without_users_is_written(tmp_path: Path) -> None:
    write_small(tmp_path / "r", users_out=UsersOut.NONE)
    release = load_release(tmp_path / "r")
    assert release.model.users is None and release.facts.user_ids == "none"
    document = json.loads((tmp_path / "r" / bundle.CERTIFICATE).read_text())
    assert document["facts"]["users"] == 0
    assert not (tmp_path / "r" / bundle.USERS).exists()
    with pytest.raises(InvalidDocument, match="users only"):
        write_small(tmp_path / "s", "paper", users_out=UsersOut.NONE)


def test_an_existing_path_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    with pytest.raises(OutputError, match="exists already"):
        write_small(tmp_path / "r")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(OutputError, match="exists already"):
        write_small(tmp_path / "link")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "r"]


def test_a_void_release_passes_only_if_allowed(tmp_path: Path) -> None:
    solver = make_solver("gradient", factors=2, iterations=2)
    fit = solver.fit(random_ratings(), BUDGET, Session(noise=InsecureTestNoise(1)))
    write_release(fit, certificate(fit), tmp_path / "r")
    assert not verify_release(tmp_path / "r").passed
    assert verify_release(tmp_path / "r", allowed=frozenset({Status.VOID})).passed


@pytest.mark.parametrize("name", ["gradient", "paper", "non-private-gradient"])
def test_pseudonyms_cannot_be_undone_with_the_public_seed(tmp_path: Path, name: str) -> None:
    """Profiles stay near their initial values, so public initial values would reveal users."""
    ratings, solver = synthetic_ratings("10k"), make_solver(name, iterations=3)
    budget = Budget.from_epsilon(1, 1e-5) if solver.is_private else None
    train(
        ratings,
        solver,
        budget,
        output=Outputs(release=tmp_path / "r", users_out="pseudonyms", pseudonyms=tmp_path / "map"),
    )
    users = load_release(tmp_path / "r").model.users
    assert users is not None
    names = dict(pl.read_parquet(tmp_path / "map").iter_rows())
    # The attack: the same training from the public seed.
    guess = solver.fit(ratings, budget, Session(seed=0)).model.users.factors
    unit = [rows / np.linalg.norm(rows, axis=1)[:, None] for rows in (users.factors, guess)]
    nearest = np.argmax(unit[0] @ unit[1].T, axis=1)
    truth = {names[user]: place for place, user in enumerate(ratings.user_ids.to_list())}
    found = [truth[name] == place for name, place in zip(users.ids, nearest, strict=True)]
    assert np.mean(found) < 0.1


def test_a_full_disk_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = small_fit()
    fail_link(monkeypatch, bundle.SUMS)
    with pytest.raises(OutputError, match=r"r/SHA256SUMS: No space left on device; make room"):
        write_release(
            fit,
            certificate(fit),
            tmp_path / "r",
            users_out=UsersOut.PSEUDONYMS,
            pseudonyms=make_pseudonyms(fit.model.user_profiles.ids, b"a secret of the run"),
        )
    assert not list(tmp_path.iterdir())


def test_variances_are_part_of_a_release(tmp_path: Path) -> None:
    solver = make_solver("als", unit="value", factors=2, iterations=2, uncertainty=True)
    fit = solver.fit(random_ratings(), BUDGET)
    assert fit.model.items is not None
    write_release(fit, certificate(fit), tmp_path / "r")
    release = load_release(tmp_path / "r")
    assert release.model.users is not None and release.model.items is not None
    assert release.model.residual_variance == fit.model.residual_variance
    for table, profiles in (
        (release.model.users, fit.model.users),
        (release.model.items, fit.model.items),
    ):
        assert profiles.bias_variances is not None and profiles.variances is not None
        assert np.array_equal(present(table.bias_variances), profiles.bias_variances)
        assert np.array_equal(present(table.variances), profiles.variances)
    recommender = Recommender(release)
    assert recommender.has_variances
    pair = np.array([3], dtype=np.int32), np.array([4], dtype=np.int32)
    ids = [release.model.users.ids[3]], [release.model.items.ids[4]]
    assert recommender.standard_deviations(*ids) == pytest.approx(
        fit.model.standard_deviation_rows(*pair)
    )
    export_release(release, Form.NPZ, tmp_path / "r.npz")
    export_release(release, Form.PARQUET, tmp_path / "tables")
    with np.load(tmp_path / "r.npz") as arrays:
        assert np.array_equal(arrays["item_variances"], fit.model.items.variances)
        assert arrays["residual_variance"] == fit.model.residual_variance
    assert "variance_0" in pl.read_parquet_schema(tmp_path / "tables" / "users.parquet")
    card = (tmp_path / "r" / bundle.CARD).read_text(encoding="utf-8")
    assert f"`{fit.model.residual_variance!r} + item bias_variance" in card


def test_unknown_users_out_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="users_out"):
        train(
            random_ratings(),
            small_solver("bias"),
            BUDGET,
            output=Outputs(release=tmp_path / "r", users_out="all"),
        )
    with pytest.raises(InvalidParameter, match="must be passed together"):
        train(
            random_ratings(),
            small_solver("bias"),
            BUDGET,
            output=Outputs(release=tmp_path / "r", users_out="pseudonyms"),
        )


def test_a_release_under_unit_user_has_no_users(tmp_path: Path) -> None:
    """User profiles are neither written, nor read if another program wrote them."""
    fit = make_solver("als", unit="user", factors=2, iterations=2).fit(random_ratings(), BUDGET)
    leaking = replace(fit, model=replace(fit.owner_model, prior=None))
    with pytest.raises(InvalidDocument, match="under unit user"):
        write_release(leaking, certificate(leaking), tmp_path / "r")
    assert not (tmp_path / "r").exists()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "_released_users", lambda each: each.model.users)
        write_release(leaking, certificate(leaking), tmp_path / "r")
    with pytest.raises(CheckFailed, match="under unit user"):
        load_release(tmp_path / "r")
    assert not verify_release(tmp_path / "r").passed


def test_the_card_of_a_release_without_factors_says_that_it_is_not_personalised(
    tmp_path: Path,
) -> None:
    for name, is_said in (("bias", True), ("gradient", False)):
        write_small(tmp_path / name, name)
        card = (tmp_path / name / "card.md").read_text()
        assert ("This release is not personalised: " in card) == is_said
