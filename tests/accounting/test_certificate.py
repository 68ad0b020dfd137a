"""Certificates follow from their ledgers, round towards privacy and are checked when read."""

import copy
import json
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from referencing import Registry, Resource

from taciturn._internal import strict_json
from taciturn.accounting import gaussian
from taciturn.accounting.budget import Budget
from taciturn.accounting.calibration import noise_multiplier
from taciturn.accounting.certificate import Certificate, read_ledger
from taciturn.accounting.events import ExactRelease, FoldInServing, PatternRelease
from taciturn.accounting.ledger import Ledger, Status
from taciturn.accounting.units import Unit
from taciturn.errors import CheckFailed, InvalidDocument, InvalidParameter
from tests.accounting.strategies import ledgers
from tests.accounting.test_ledger import ITEMS, MEAN, USERS
from tests.narrow import present

LEDGER = Ledger([ITEMS, USERS, MEAN])


def schema(name: str) -> Any:
    return json.loads((resources.files("taciturn") / "schemas" / name).read_text("utf-8"))


def validator() -> jsonschema.Draft202012Validator:
    ledger = Resource.from_contents(schema("ledger.schema.json"))
    return jsonschema.Draft202012Validator(
        schema("certificate.schema.json"), registry=ledger @ Registry()
    )


@pytest.mark.slow
@given(ledgers)
def test_a_certificate_survives_a_round_trip_and_fits_its_schema(ledger: Ledger) -> None:
    certificate = Certificate.from_ledger(ledger, 1e-5)
    document = json.loads(strict_json.dumps(certificate.to_dict()))
    validator().validate(document)
    assert Certificate.from_dict(document) == certificate
    assert str(certificate.status) in certificate.to_text()


def test_a_published_pattern_alone_costs_nothing_under_value() -> None:
    published = PatternRelease(purpose="counts", unit=Unit.VALUE)
    ledger = Ledger([published])
    certificate = Certificate.from_ledger(ledger, 1e-5)
    assert (certificate.status, certificate.epsilon, certificate.mu) == (Status.PROVEN, 0, 0)
    assert all(epsilon == 0 for _, epsilon in certificate.curve)
    assert all(rate == most for rate, most in certificate.attacker)
    assert all((line.mu, line.epsilon) == (0, 0) for line in certificate.group)
    assert Certificate.from_dict(certificate.to_dict()) == certificate
    validator().validate(certificate.to_dict())
    with pytest.raises(InvalidParameter, match="nothing to certify"):
        _ = Ledger([FoldInServing(purpose="own profiles", unit=Unit.VALUE)]).status


def test_numbers_equal_those_of_the_exact_curve() -> None:
    certificate = Certificate.from_ledger(LEDGER, 1e-5)
    mu = (0.2**2 + 0.1**2 + 0.05**2) ** 0.5
    assert certificate.mu == pytest.approx(mu, rel=1e-14)
    assert certificate.epsilon == pytest.approx(gaussian.epsilon(1e-5, mu), rel=1e-9)
    assert present(certificate.epsilon) >= gaussian.epsilon(1e-5, mu)
    assert dict(certificate.curve)[1e-5] == certificate.epsilon
    for false, true in certificate.attacker:
        assert true == pytest.approx(gaussian.true_positive_rate(false, mu), rel=1e-9)
        assert true >= gaussian.true_positive_rate(false, mu)
    assert [line.size for line in certificate.group] == [1, 10, 100]
    assert certificate.group[0].epsilon == certificate.epsilon


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 7.0, 100.0])
@pytest.mark.parametrize("count", [1, 3, 300])
def test_a_calibrated_run_never_exceeds_its_budget(epsilon: float, count: int) -> None:
    budget = Budget.from_epsilon(epsilon, 1e-5)
    scale = noise_multiplier(budget.mu, count) * ITEMS.sensitivity
    ledger = Ledger([replace(ITEMS, noise_scale=scale)] * count)
    certificate = Certificate.from_ledger(ledger, 1e-5)
    assert present(certificate.epsilon) <= epsilon
    assert certificate.epsilon == pytest.approx(epsilon, rel=1e-9)


def test_a_certificate_does_not_change_with_its_ledger() -> None:
    ledger = Ledger([ITEMS])
    certificate = Certificate.from_ledger(ledger, 1e-5)
    before = certificate.to_dict()
    ledger.append(USERS)
    certificate.ledger.append(ExactRelease(purpose="means", unit=Unit.VALUE))
    assert certificate.to_dict() == before


def numbers(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all numbers outside the ledger."""
    if isinstance(document, dict):
        pairs = [(key, child) for key, child in document.items() if key != "ledger"]
    elif isinstance(document, list):
        pairs = list(enumerate(document))
    else:
        return [path] if isinstance(document, int | float) else []
    return [found for key, child in pairs for found in numbers(child, (*path, key))]


DOCUMENT = json.loads(strict_json.dumps(Certificate.from_ledger(LEDGER, 1e-5).to_dict()))


@pytest.mark.parametrize("path", [path for path in numbers(DOCUMENT) if path != ("version",)])
@pytest.mark.parametrize("factor", [0.999999, 1.000001])
def test_every_changed_number_is_refused(path: tuple[Any, ...], factor: float) -> None:
    document = copy.deepcopy(DOCUMENT)
    node = document
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] *= factor
    with pytest.raises(CheckFailed, match="does not follow from its ledger"):
        Certificate.from_dict(document)


@pytest.mark.parametrize(
    "change",
    [
        {"status": "none"},
        {"status": True},
        {"reasons": ["because"]},
        {"curve": []},
        {"group": None},
        {"attacker": {}},
        {"statement": DOCUMENT["statement"] | {"unit": "user"}},
        {"statement": DOCUMENT["statement"] | {"epsilon": None}},
        {"statement": DOCUMENT["statement"] | {"relation": "anything"}},
        {"statement": DOCUMENT["statement"] | {"protects": "everything about every user"}},
        {"statement": DOCUMENT["statement"] | {"epsilon": 10**400}},
        {"statement": DOCUMENT["statement"] | {"more": 1}},
        {"not_protected": []},
        {"notes": DOCUMENT["notes"][:-1]},
        {"checking": DOCUMENT["checking"] | {"proves": "honesty"}},
        {"surprise": 1},
    ],
)
def test_other_changes_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(CheckFailed):
        Certificate.from_dict(DOCUMENT | change)


@pytest.mark.parametrize("key", sorted(set(DOCUMENT) - {"format", "version", "ledger"}))
def test_a_missing_part_is_refused(key: str) -> None:
    with pytest.raises((CheckFailed, InvalidDocument)):
        Certificate.from_dict({name: part for name, part in DOCUMENT.items() if name != key})


def test_a_ledger_without_one_event_is_refused() -> None:
    document = copy.deepcopy(DOCUMENT)
    del document["ledger"]["events"][0]
    with pytest.raises(CheckFailed):
        Certificate.from_dict(document)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"version": 3},
        {"version": True},
        {"statement": None},
        {"statement": {"delta": "x"}},
        {"statement": {"delta": 2}},
        {"ledger": None},
        {"ledger": Ledger().to_dict()},
    ],
)
def test_unusable_certificates_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidDocument):
        Certificate.from_dict(DOCUMENT | change)


def test_a_certificate_without_privacy_has_no_numbers() -> None:
    ledger = Ledger([ITEMS, ExactRelease(purpose="item means", unit=Unit.VALUE)])
    certificate = Certificate.from_ledger(ledger, 1e-5)
    assert certificate.status is Status.NONE
    assert certificate.epsilon is None and certificate.mu is None and certificate.group == ()
    text = certificate.to_text()
    assert "Not private" in text and "item means" in text and "epsilon =" not in text
    assert certificate.to_dict()["statement"]["protects"] is None


def test_noise_that_protects_nothing_gets_no_certificate() -> None:
    with pytest.raises(InvalidParameter, match="protects nothing"):
        Certificate.from_ledger(Ledger([replace(ITEMS, noise_scale=1e-7)]), 1e-5)


@pytest.mark.parametrize("unit", Unit)
def test_plain_words_say_what_is_protected_and_what_is_not(unit: Unit) -> None:
    text = Certificate.from_ledger(Ledger([replace(ITEMS, unit=unit)]), 1e-5).to_text()
    facts = unit.facts
    for sentence in (facts.relation, facts.protects, *facts.not_protected):
        assert sentence in text
    for phrase in (
        "compose",
        "held-out error",
        "follow from its ledger",
        "ledger is honest",
        "false-positive",
    ):
        assert phrase in text


@pytest.mark.parametrize(
    ("change", "heading"),
    [
        ({}, "Protected: how a user"),
        ({"flaw": "no proof"}, "Claimed to be protected: how a user"),
        ({"noise": "test"}, "Would be protected with secure noise: how a user"),
    ],
)
def test_plain_words_promise_no_more_than_the_status(change: dict[str, Any], heading: str) -> None:
    certificate = Certificate.from_ledger(Ledger([replace(ITEMS, **change)]), 1e-5)
    assert f"\n{heading}" in certificate.to_text()
    assert (certificate.to_dict()["statement"]["protects"] is None) == bool(change)


def test_plain_words_round_epsilon_up() -> None:
    certificate = Certificate.from_ledger(LEDGER, 1e-5)
    shown = float(certificate.to_text().split("epsilon = ")[1].split()[0])
    epsilon = present(certificate.epsilon)
    assert epsilon <= shown <= epsilon + 1e-4


def test_a_budget_is_the_same_from_epsilon_and_from_mu() -> None:
    budget = Budget.from_epsilon(1, 1e-5)
    assert f"{budget.mu:.8f}" == "0.26805112"
    again = Budget.from_mu(budget.mu, 1e-5)
    assert again.epsilon <= 1 and again.epsilon == pytest.approx(1, rel=1e-9)
    with pytest.raises(InvalidParameter, match="spends more"):
        Budget(epsilon=1, delta=1e-5, mu=0.3)


def test_ledgers_are_found_in_folders_certificates_and_files(tmp_path: Path) -> None:
    Certificate.from_ledger(LEDGER, 1e-5).save(tmp_path / "certificate.json")
    LEDGER.save(tmp_path / "ledger.json")
    assert Certificate.load(tmp_path / "certificate.json").ledger == LEDGER
    for path in (tmp_path, tmp_path / "certificate.json", tmp_path / "ledger.json"):
        assert read_ledger(path) == LEDGER
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "other.json", tmp_path / "empty", tmp_path / "absent"):
        with pytest.raises(InvalidDocument):
            read_ledger(path)
