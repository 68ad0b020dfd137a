"""Biases alone, under every unit."""

from typing import ClassVar

from taciturn.accounting.events import GaussianRelease
from taciturn.accounting.ledger import Status
from taciturn.accounting.units import Unit
from tests.solvers.contract import ProvenContract, SolverContract, ValueContract
from tests.solvers.helpers import random_ratings


class TestBias(ValueContract):
    name = "bias"
    small: ClassVar = {}

    def test_events_name_their_rows(self) -> None:
        ratings = random_ratings(1, users=13, items=9)
        events = self.run(ratings).ledger.events
        rows = [event.rows for event in events if isinstance(event, GaussianRelease)]
        assert rows == ["items", "users", "total"]
        assert "item" in events[0].purpose and "user" in events[1].purpose


class TestBiasUnderRating(ProvenContract):
    name = "bias"
    small: ClassVar = {}
    unit = Unit.RATING
    fixed_sensitivities = False


class TestBiasUnderUser(ProvenContract):
    name = "bias"
    small: ClassVar = {}
    unit = Unit.USER
    fixed_sensitivities = False


class TestNonPrivateBias(SolverContract):
    name = "non-private-bias"
    small: ClassVar = {}
    status = Status.NONE
