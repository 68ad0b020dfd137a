"""Releases that name public inputs, such as item features."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest

from taciturn.accounting.certificate import Certificate
from taciturn.accounting.units import Unit
from taciturn.data import load_item_features, load_public_ratings
from taciturn.data.id_lists import with_item_features
from taciturn.data.public_ratings import with_public_ratings
from taciturn.errors import InvalidDocument
from taciturn.release import bundle
from taciturn.release.read import load_release
from taciturn.release.verify import verify_release
from taciturn.release.write import UsersOut, write_release
from taciturn.solvers.catalog import CATALOG
from tests.release.helpers import copy, write_small
from tests.release.test_release import SCHEMAS
from tests.release.test_verify import forge, recertify
from tests.solvers.helpers import BUDGET, SOLVERS, random_ratings, small_solver

FEATURES = load_item_features(
    pl.DataFrame(
        {"item_id": [*range(100, 110), 500], "year": range(11), "kind": ["a", *"bab" * 3, "b"]}
    )
)
RATINGS = with_item_features(random_ratings(), FEATURES)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("inputs") / "release"
    fit = small_solver("als").fit(RATINGS, BUDGET)
    write_release(fit, Certificate.from_ledger(fit.ledger, 1e-5), path)
    return path


def test_a_release_names_the_features_and_passes(release: Path) -> None:
    assert verify_release(release).passed
    found = load_release(release)
    (named,) = found.certificate.public_inputs
    assert named.to_dict() == {
        "kind": "item-features",
        "name": "table",
        "sha256": FEATURES.digest,
        "columns": len(FEATURES.columns),
    }
    card = (release / bundle.CARD).read_text(encoding="utf-8")
    assert card.count(FEATURES.digest) == 2  # among the points of the owner, and in the certificate
    assert found.model.items is not None and 500 in found.model.items.ids


def test_a_release_with_features_follows_the_schemas(release: Path) -> None:
    document = json.loads((release / bundle.CERTIFICATE).read_text())
    jsonschema.validate(document, json.loads((SCHEMAS / "release.schema.json").read_text()))
    ledger = document["certificate"]["ledger"]
    jsonschema.validate(ledger, json.loads((SCHEMAS / "ledger.schema.json").read_text()))
    assert list(ledger) == ["format", "version", "run", "public_inputs", "events"]


def test_a_release_names_public_ratings_and_passes(tmp_path: Path) -> None:
    public = load_public_ratings(random_ratings(1).to_frame(), scale="1:5:1")
    ratings = with_public_ratings(RATINGS, public)
    fit = small_solver("als", Unit.USER).fit(ratings, BUDGET)
    certificate = Certificate.from_ledger(fit.ledger, 1e-5)
    write_release(fit, certificate, tmp_path / "r", users_out=UsersOut.NONE)
    assert verify_release(tmp_path / "r").passed
    _, named = load_release(tmp_path / "r").certificate.public_inputs
    assert named.to_dict() == {
        "kind": "public-ratings",
        "name": "table",
        "sha256": public.digest,
        "ratings": len(public.ratings),
    }
    card = (tmp_path / "r" / bundle.CARD).read_text(encoding="utf-8")
    assert "the public ratings in table" in card


@pytest.mark.parametrize(("name", "unit"), SOLVERS)
def test_only_solvers_that_use_features_name_them(name: str, unit: Unit, tmp_path: Path) -> None:
    solver = small_solver(name, unit, iterations=1)
    assert bool(CATALOG[name].inputs) is solver.uses_item_features
    fit = solver.fit(RATINGS, BUDGET if solver.is_private else None)
    assert bool(fit.ledger.public_inputs) is solver.uses_item_features
    users_out = UsersOut.NONE if unit is Unit.USER else UsersOut.IDS
    certificate = Certificate.from_ledger(fit.ledger, 1e-5)
    write_release(fit, certificate, tmp_path / "r", users_out=users_out)
    assert load_release(tmp_path / "r").certificate == certificate


def test_an_input_that_the_solver_does_not_use_is_refused(tmp_path: Path, release: Path) -> None:
    write_small(tmp_path / "r", "bias")
    inputs = json.loads((release / bundle.CERTIFICATE).read_text())["certificate"]["ledger"]

    def name_features(document: dict[str, Any]) -> None:
        document["certificate"]["ledger"]["public_inputs"] = inputs["public_inputs"]
        recertify(document)

    forge(tmp_path / "r", name_features)
    with pytest.raises(InvalidDocument, match="public input that its solver does not use"):
        load_release(tmp_path / "r")


def test_a_second_table_of_features_is_refused(tmp_path: Path, release: Path) -> None:
    def repeat(document: dict[str, Any]) -> None:
        inputs = document["certificate"]["ledger"]["public_inputs"]
        inputs.append(inputs[0] | {"name": "other.csv"})
        recertify(document)

    forge(copy(release, tmp_path / "r"), repeat)
    with pytest.raises(InvalidDocument, match="public input"):
        load_release(tmp_path / "r")


def test_another_digest_is_refused(tmp_path: Path, release: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        document["certificate"]["ledger"]["public_inputs"][0]["sha256"] = "0" * 64

    forge(copy(release, tmp_path / "r"), change)
    assert not verify_release(tmp_path / "r").passed
