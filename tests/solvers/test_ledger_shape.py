"""Ledgers that differ from those of their solver are refused."""

from dataclasses import replace
from typing import Any

import pytest

from taciturn.accounting.events import GaussianRelease, PatternRelease, Rows
from taciturn.accounting.ledger import Ledger
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidDocument
from taciturn.solvers.catalog import check_solver
from taciturn.solvers.contract import Fit
from taciturn.solvers.entry import PATTERN_INTEREST
from tests.narrow import gaussian_events
from tests.solvers.helpers import BUDGET, SOLVERS, random_ratings, small_solver


def fit(name: str, unit: Unit = Unit.VALUE) -> Fit:
    return small_solver(name, unit).fit(random_ratings(6), BUDGET)


def check(whole: Fit, events: list[Any], **settings: Any) -> None:
    stated = {**whole.settings, **settings}
    check_solver(whole.solver, stated, Ledger(events, run=whole.ledger.run))


PRIVATE = [(name, unit) for name, unit in SOLVERS if small_solver(name, unit).is_private]


@pytest.mark.parametrize(("name", "unit"), PRIVATE)
def test_events_that_are_missing_repeated_or_moved_are_refused(name: str, unit: Unit) -> None:
    whole = fit(name, unit)
    events = list(whole.ledger.events)
    check(whole, events)
    others = [[*events, events[0]], events[::-1], [*events[:1], *events[2:]]]
    for changed in others:
        if changed in (events, []):
            continue  # a single event, backwards
        with pytest.raises(InvalidDocument):
            check(whole, changed)


@pytest.mark.parametrize(
    "change",
    [
        {"purpose": "gradient 1 of " + "9" * 5000 + ", sums by user"},
        {"purpose": "gradient 1 of 1000000, sums by user"},
        {"purpose": "gradient 1 of ३, sums by user"},
        {"purpose": "gradient {step} of {steps}, sums by user"},
        {"purpose": "approved by the regulator"},
        {"rows": Rows.TOTAL},
        {"proof": "als.md#claim"},
        {"part": "approved by the regulator"},
        {"flaw": "none at all"},
    ],
)
def test_an_event_with_other_contents_is_refused(change: dict[str, Any]) -> None:
    whole = fit("gradient")
    first, *rest = whole.ledger.events
    with pytest.raises(InvalidDocument):
        check(whole, [replace(first, **change), *rest])


def test_levels_that_no_solver_uses_are_refused() -> None:
    whole = fit("gradient")
    first, *rest = whole.ledger.events
    assert isinstance(first, GaussianRelease)
    levels = (("harmless for all", first.sensitivity),)
    with pytest.raises(InvalidDocument, match="levels"):
        check(whole, [replace(first, sensitivity_by_level=levels), *rest])


def test_settings_state_the_steps_of_the_ledger() -> None:
    whole = fit("gradient")
    with pytest.raises(InvalidDocument, match="iterations"):
        check(whole, list(whole.ledger.events), iterations=300)


def test_the_published_algorithm_states_its_flaw_in_every_event() -> None:
    whole = fit("paper")
    first, *rest = gaussian_events(whole.ledger)
    with pytest.raises(InvalidDocument):
        check(whole, [replace(first, flaw=None), *rest])


def test_pattern_features_are_published_once_and_only_by_als() -> None:
    pattern = PatternRelease(
        purpose="features of the rating pattern, inside the profiles", unit=Unit.VALUE
    )
    als, gradient = fit("als"), fit("gradient")
    events = list(als.ledger.events)
    interest = replace(pattern, purpose=PATTERN_INTEREST)
    assert events[-2:] == [pattern, interest]
    for whole, changed, settings in (
        (als, [*events, pattern], {}),
        (als, [*events, interest], {}),
        (als, events, {"pattern_features": False}),
        (als, events, {"interest": False}),
        (gradient, [*gradient.ledger.events, pattern], {}),
    ):
        with pytest.raises(InvalidDocument):
            check(whole, changed, **settings)
