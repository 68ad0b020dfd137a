"""Narrower types for values that a test knows more about than their declaration says."""

from typing import TypeVar

from taciturn.accounting.events import GaussianRelease
from taciturn.accounting.ledger import Ledger

T = TypeVar("T")


def present(value: T | None) -> T:
    """An optional value; fails if there is none."""
    assert value is not None
    return value


def gaussian_events(ledger: Ledger) -> list[GaussianRelease]:
    """Events of a ledger; fails if one of them is not a Gaussian release."""
    events = [event for event in ledger.events if isinstance(event, GaussianRelease)]
    assert len(events) == len(ledger.events)
    return events
