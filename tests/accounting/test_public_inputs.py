"""Public inputs in ledgers and certificates."""

import json
from pathlib import Path
from typing import Any

import pytest

from taciturn.accounting.certificate import Certificate
from taciturn.accounting.ledger import Ledger, combine
from taciturn.accounting.public_inputs import InputKind, PublicInput
from taciturn.errors import CheckFailed, InvalidDocument, InvalidParameter
from tests.accounting.test_ledger import ITEMS, USERS, validator

FILMS = PublicInput(
    kind=InputKind.ITEM_FEATURES, name="films.csv", sha256="0123456789abcdef" * 4, columns=7
)
OTHER = PublicInput(
    kind=InputKind.ITEM_FEATURES, name="ml-1m:movies.dat", sha256="f" * 64, columns=29
)

RATED = PublicInput(
    kind=InputKind.PUBLIC_RATINGS, name="ml-latest-small", sha256="a" * 64, ratings=100_836
)


def test_a_ledger_without_inputs_has_the_fields_it_always_had() -> None:
    assert list(Ledger([ITEMS]).to_dict()) == ["format", "version", "run", "events"]


def test_inputs_survive_the_round_trip_and_follow_the_schema(tmp_path: Path) -> None:
    ledger = Ledger([ITEMS], public_inputs=[FILMS, OTHER])
    ledger.save(tmp_path / "ledger.json")
    loaded = Ledger.load(tmp_path / "ledger.json")
    assert loaded == ledger and loaded.public_inputs == (FILMS, OTHER)
    assert loaded != Ledger([ITEMS], run=ledger.run)
    validator().validate(ledger.to_dict())


def test_inputs_cost_nothing() -> None:
    plain, named = Ledger([ITEMS]), Ledger([ITEMS], public_inputs=[FILMS])
    assert plain.spend() == named.spend() and plain.status is named.status


def test_a_combined_ledger_names_each_input_once() -> None:
    first = Ledger([ITEMS], public_inputs=[FILMS])
    both = combine([first, Ledger([USERS], public_inputs=[FILMS, OTHER]), Ledger([USERS])])
    assert both.public_inputs == (FILMS, OTHER)


def test_a_certificate_names_the_input_and_its_digest() -> None:
    certificate = Certificate.from_ledger(Ledger([ITEMS], public_inputs=[FILMS]), 1e-5)
    for part in (certificate.to_text(), json.dumps(certificate.to_dict()["not_protected"])):
        assert "films.csv" in part and FILMS.sha256 in part and "7 columns" in part
    assert any("films.csv" in fact for _, fact in certificate.facts())
    assert Certificate.from_dict(json.loads(json.dumps(certificate.to_dict()))) == certificate


def test_a_certificate_that_hides_its_input_is_refused() -> None:
    document = Certificate.from_ledger(Ledger([ITEMS], public_inputs=[FILMS]), 1e-5).to_dict()
    del document["ledger"]["public_inputs"]
    with pytest.raises(CheckFailed, match="not_protected"):
        Certificate.from_dict(document)


def test_public_ratings_are_named_with_their_number() -> None:
    ledger = Ledger([ITEMS], public_inputs=[FILMS, RATED])
    validator().validate(ledger.to_dict())
    assert Ledger.from_dict(ledger.to_dict()) == ledger
    assert list(RATED.to_dict()) == ["kind", "name", "sha256", "ratings"]
    text = Certificate.from_ledger(ledger, 1e-5).to_text()
    assert "the public ratings in ml-latest-small (100836 ratings" in " ".join(text.split())


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "public-ratings"},
        {"columns": None},
        {"kind": "ratings"},
        {"name": "films of the year.csv"},
        {"name": ""},
        {"name": "a" * 65},
        {"sha256": "F" * 64},
        {"sha256": "f" * 63},
        {"columns": 0},
        {"columns": True},
    ],
    ids=str,
)
def test_an_invalid_input_is_refused(changes: dict[str, Any]) -> None:
    document = FILMS.to_dict() | changes
    with pytest.raises(InvalidParameter):
        PublicInput(**document)
    ledger = Ledger([ITEMS]).to_dict() | {"public_inputs": [document]}
    with pytest.raises(InvalidDocument, match="not valid"):
        Ledger.from_dict(ledger)
    assert not validator().is_valid(ledger)


def test_an_input_has_only_the_count_of_its_kind() -> None:
    for document in (FILMS.to_dict() | {"ratings": 3}, RATED.to_dict() | {"columns": 3}):
        with pytest.raises(InvalidParameter, match="counts only"):
            PublicInput(**document)
        ledger = Ledger([ITEMS]).to_dict() | {"public_inputs": [document]}
        with pytest.raises(InvalidDocument, match="the count of its kind"):
            Ledger.from_dict(ledger)
        assert not validator().is_valid(ledger)


@pytest.mark.parametrize(
    "inputs", [[], {}, [FILMS.to_dict()] * 2, [7], [{}], [FILMS.to_dict() | {"more": 1}]], ids=str
)
def test_a_malformed_list_of_inputs_is_refused(inputs: Any) -> None:
    ledger = Ledger([ITEMS]).to_dict() | {"public_inputs": inputs}
    with pytest.raises(InvalidDocument):
        Ledger.from_dict(ledger)
    assert not validator().is_valid(ledger)
