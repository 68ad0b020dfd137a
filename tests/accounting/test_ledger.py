"""Events and ledgers: refused input, composition, and a lossless JSON round trip."""

import copy
import json
import math
import os
from collections.abc import Iterable
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn._internal import strict_json
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.events import (
    ExactRelease,
    GaussianRelease,
    Noise,
    PatternRelease,
    Rows,
    event_from_dict,
)
from taciturn.accounting.ledger import Ledger, Status, combine
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidDocument, InvalidParameter, OutputError
from tests.accounting.strategies import ledgers

ITEMS = GaussianRelease(
    purpose="item sums",
    proof="grid.md#sensitivity",
    unit=Unit.VALUE,
    sensitivity=4.0,
    noise_scale=20.0,
    rows=Rows.ITEMS,
    noise=Noise.SECURE,
    coordinates=20,
)
USERS = replace(ITEMS, purpose="user sums", rows=Rows.USERS, noise_scale=40.0)
MEAN = replace(ITEMS, purpose="the mean", rows=Rows.TOTAL, noise_scale=80.0)


def validator() -> jsonschema.Draft202012Validator:
    text = (resources.files("taciturn") / "schemas" / "ledger.schema.json").read_text("utf-8")
    return jsonschema.Draft202012Validator(json.loads(text))


def test_events_are_frozen_and_hold_plain_types() -> None:
    plain: dict[str, Any] = {
        "unit": "value",
        "sensitivity": 4,
        "rows": "items",
        "noise": "secure",
    }
    event = replace(ITEMS, **plain)
    assert event == ITEMS
    assert isinstance(event.unit, Unit)
    assert type(event.sensitivity) is float
    with pytest.raises(FrozenInstanceError):
        event.sensitivity = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    "change",
    [
        {"sensitivity": 0},
        {"sensitivity": math.nan},
        {"noise_scale": -1},
        {"noise_scale": math.inf},
        {"noise_scale": 1e-300},
        {"unit": "household"},
        {"rows": "both"},
        {"noise": "none"},
        {"purpose": ""},
        {"purpose": "two\nlines"},
        {"purpose": "\x1b[2J"},
        {"purpose": "\ud800"},
        {"flaw": " "},
        {"coordinates": 0},
        {"coordinates": 2.5},
        {"sampler_error": -1e-9},
        {"sampler_error": 0.5},
        {"sampler_tail": math.nan},
        {"sampler_error": 1e-12, "noise_scale": 0.1},
    ],
)
def test_bad_events_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        replace(ITEMS, **change)


def test_a_ledger_has_one_unit() -> None:
    ledger = Ledger([ITEMS])
    with pytest.raises(InvalidParameter, match="each unit separately"):
        ledger.append(replace(ITEMS, unit=Unit.USER))
    assert ledger.events == (ITEMS,)


@pytest.mark.parametrize("thing", ["event", None, {"mechanism": "gaussian"}, object()])
def test_a_ledger_records_events_only(thing: Any) -> None:
    with pytest.raises(InvalidParameter, match="records events"):
        Ledger([thing])


@pytest.mark.parametrize("run", ["", "x" * 32, "AB" * 16, 5, "0" * 31])
def test_bad_run_names_are_refused(run: Any) -> None:
    with pytest.raises(InvalidParameter, match="hexadecimal"):
        Ledger(run=run)


@pytest.mark.parametrize("group", [0, -1, 1.5, True])
def test_bad_groups_are_refused(group: Any) -> None:
    with pytest.raises(InvalidParameter, match="group must be"):
        Ledger([ITEMS]).spend(group=group)


def test_an_empty_ledger_certifies_nothing() -> None:
    for ask in (lambda: Ledger().unit, lambda: Ledger().status, Ledger().spend):
        with pytest.raises(InvalidParameter, match="empty"):
            ask()


def test_group_privacy_depends_on_the_rows_of_a_table() -> None:
    ledger = Ledger([ITEMS, USERS, MEAN])
    for size in (1, 10, 100):
        expected = math.sqrt(size * 0.2**2 + size**2 * (0.1**2 + 0.05**2))
        assert ledger.spend(group=size).mu == pytest.approx(expected, rel=1e-14)
        assert ledger.spend(group=size).mu <= size * ledger.spend().mu * (1 + 1e-12)
    users = Ledger([replace(ITEMS, unit=Unit.USER)])
    assert users.spend(group=10).mu == pytest.approx(10 * users.spend().mu, rel=1e-14)


def test_sampler_errors_of_all_coordinates_are_summed() -> None:
    event = replace(ITEMS, coordinates=7, sampler_error=1e-6, sampler_tail=1e-12)
    spend = Ledger([event, event, ITEMS]).spend(group=10)
    assert spend.error == pytest.approx(-10 * 14 * math.log1p(-1e-6), rel=1e-12)
    assert spend.tail == pytest.approx(10 * 14 * 1e-12, rel=1e-12)


def test_mu_is_rounded_up() -> None:
    ledger = Ledger([replace(ITEMS, sensitivity=0.1, noise_scale=0.3)] * 1000)
    assert Fraction(ledger.spend().mu) ** 2 >= 1000 * (Fraction(0.1) / Fraction(0.3)) ** 2


@pytest.mark.parametrize(
    ("events", "status", "reason"),
    [
        ([ITEMS], Status.PROVEN, None),
        ([ITEMS, replace(USERS, flaw="the step is not bounded")], Status.CLAIMED, "not bounded"),
        (
            [replace(ITEMS, flaw="no proof"), replace(USERS, noise=Noise.TEST)],
            Status.VOID,
            "reproduce",
        ),
        ([ITEMS, ExactRelease(purpose="means", unit=Unit.VALUE)], Status.NONE, "means"),
    ],
)
def test_status_is_the_worst_of_the_events(
    events: list[Any], status: Status, reason: str | None
) -> None:
    ledger = Ledger(events)
    assert ledger.status is status
    assert (reason is None) == (ledger.reasons == ())
    assert reason is None or any(reason in each for each in ledger.reasons)


def test_a_ledger_with_an_exact_release_has_no_mu() -> None:
    with pytest.raises(InvalidParameter, match="without noise"):
        Ledger([ExactRelease(purpose="means", unit=Unit.VALUE), ITEMS]).spend()


def test_a_published_pattern_is_free_under_value_only() -> None:
    """The rating pattern is public under `value` and protected under the other units."""
    published = PatternRelease(purpose="features", unit=Unit.VALUE)
    ledger = Ledger([ITEMS, USERS, published])
    plain = Ledger([ITEMS, USERS])
    assert ledger.spend(group=7) == plain.spend(group=7) and ledger.status is Status.PROVEN
    certificate = Certificate.from_ledger(ledger, 1e-5)
    assert certificate.not_protected[-1].endswith(": features")
    assert "features" in certificate.to_text()
    assert Certificate.from_dict(certificate.to_dict()) == certificate
    protected = Ledger([replace(ITEMS, unit=Unit.RATING), replace(published, unit=Unit.RATING)])
    assert protected.status is Status.NONE and "features" in protected.reasons[0]


@pytest.mark.slow
@given(ledgers)
def test_json_round_trip_keeps_every_bit_and_fits_the_schema(ledger: Ledger) -> None:
    text = strict_json.dumps(ledger.to_dict())
    document = strict_json.loads(text, "test")
    validator().validate(document)
    assert Ledger.from_dict(document) == ledger


def paths(document: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Path of every node of a JSON document."""
    children: Iterable[tuple[Any, Any]] = ()
    if isinstance(document, dict):
        children = document.items()
    elif isinstance(document, list):
        children = enumerate(document)
    return [prefix] + [path for key, child in children for path in paths(child, (*prefix, key))]


junk: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "x", "value", [], {}, {"mechanism": "gaussian"}]
)


@pytest.mark.slow
@given(ledgers, st.data())
def test_the_schema_accepts_every_ledger_that_is_read(ledger: Ledger, data: st.DataObject) -> None:
    """A damaged document is read only if it still fits the published schema."""
    document = copy.deepcopy(json.loads(strict_json.dumps(ledger.to_dict())))
    *parents, last = data.draw(st.sampled_from([path for path in paths(document) if path]))
    node = document
    for key in parents:
        node = node[key]
    action = data.draw(st.sampled_from(["replace", "remove", "add"]))
    if action == "replace":
        node[last] = data.draw(junk)
    elif action == "remove":
        del node[last]
    elif isinstance(node, dict):
        node["surprise"] = data.draw(junk)
    try:
        Ledger.from_dict(document)
    except InvalidDocument:
        return
    validator().validate(document)


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", '"x"', "NaN", '{"a": 1, "a": 2}', "[" * 100_000, "{} {}"]
)
def test_broken_files_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "ledger.json"
    file.write_text(text)
    with pytest.raises(InvalidDocument):
        Ledger.load(file)


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidDocument, match="cannot read"):
        Ledger.load(tmp_path / "absent.json")
    with pytest.raises(InvalidDocument, match="cannot read"):
        Ledger.load(tmp_path)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidDocument, match="UTF-8"):
        Ledger.load(tmp_path / "bytes")
    os.mkfifo(tmp_path / "pipe")
    for name in (tmp_path / "pipe", "/dev/zero", "a\0b", "a" * 300):
        with pytest.raises(InvalidDocument, match="cannot read"):
            Ledger.load(name)


def test_saved_files_have_the_usual_permissions(tmp_path: Path) -> None:
    Ledger([ITEMS]).save(tmp_path / "ledger.json")
    (tmp_path / "other").touch()
    assert (tmp_path / "ledger.json").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("version", [0, 2, 3, "1", True, None])
def test_other_versions_are_refused(version: object) -> None:
    with pytest.raises(InvalidDocument, match="version"):
        Ledger.from_dict(Ledger([ITEMS]).to_dict() | {"version": version})


def test_saving_never_replaces_a_file(tmp_path: Path) -> None:
    file = tmp_path / "ledger.json"
    Ledger([ITEMS]).save(file)
    before = file.read_bytes()
    with pytest.raises(OutputError, match="exists already"):
        Ledger([USERS]).save(file)
    with pytest.raises(OutputError, match="cannot write"):
        Ledger([USERS]).save(tmp_path / "absent" / "ledger.json")
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_combined_ledgers_compose_and_the_same_run_is_refused() -> None:
    first, second = Ledger([ITEMS]), Ledger([USERS, MEAN])
    total = combine([first, second])
    expected = math.hypot(first.spend().mu, second.spend().mu)
    assert total.spend().mu == pytest.approx(expected, rel=1e-14)
    with pytest.raises(InvalidParameter, match="same run"):
        combine([first, second, Ledger(first.events, run=first.run)])


def test_an_absent_field_must_be_left_out() -> None:
    document = json.loads(strict_json.dumps(Ledger([ITEMS]).to_dict()))["events"][0]
    with pytest.raises(InvalidDocument, match="null"):
        event_from_dict(document | {"flaw": None})
