"""Entries of the catalog of solvers, and the checks of a release against its solver's entry.

Pure Python, so that a release can be checked without the solvers themselves and their compiled
code. Whatever a release says in words of its own, it says through these names: free text in a
verified ledger would pass for part of the guarantee.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from itertools import combinations
from typing import Any

from taciturn.accounting import sampler
from taciturn.accounting.events import (
    OBSERVED,
    Event,
    ExactRelease,
    GaussianRelease,
    PatternRelease,
    Rows,
)
from taciturn.accounting.ledger import Ledger, Status
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidDocument


class Kind(StrEnum):
    """Type of a setting."""

    COUNT = "a whole number above 0"
    NUMBER = "a number"
    FLAG = "true or false"
    UNIT = "a privacy unit"
    CENTRE = "none or item-mean"


@dataclass(frozen=True)
class Setting:
    """A setting's type, and whether it may be left to the solver."""

    kind: Kind
    is_optional: bool = False

    def allows(self, value: object) -> bool:
        """Whether a value, as it stands in a release, is of this type."""
        if value is None:
            return self.is_optional
        if self.kind is Kind.FLAG:
            return isinstance(value, bool)
        if self.kind is Kind.UNIT:
            return isinstance(value, str) and value in list(Unit)
        if self.kind is Kind.CENTRE:
            return isinstance(value, str) and value in ("none", "item-mean")
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if self.kind is Kind.COUNT:
            return isinstance(value, int) and value > 0
        return abs(value) < 1e300 and math.isfinite(value)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One solver, as the catalog knows it without importing it.

    Attributes
    ----------
    home
        Module and class of the solver, such as `bias:BiasSolver`, under `taciturn.solvers`.
    status
        Best status that its releases can have.
    settings
        Its settings, by name.
    purposes
        Pattern that all purposes of its events match.
    proofs
        Pages and headings that its events may name as the proof of their bounds.
    flaws
        Sentences that its events may give for the lack of a proof, in this order.
    """

    home: str
    status: Status
    settings: Mapping[str, Setting]
    purposes: re.Pattern[str]
    proofs: frozenset[str] = frozenset()
    flaws: tuple[str, ...] = ()
    units: frozenset[Unit] = field(default_factory=lambda: frozenset({Unit.VALUE}))

    @property
    def is_private(self) -> bool:
        """Whether it has, or claims, a guarantee."""
        return self.status is not Status.NONE

    @property
    def supports_all_units(self) -> bool:
        """Whether it supports every privacy unit."""
        return self.units == frozenset(Unit)

    def load(self) -> Any:
        """The solver's class."""
        module, _, name = self.home.partition(":")
        return getattr(import_module(f"taciturn.solvers.{module}"), name)

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        """Raise unless these are the settings of the solver, each of its type."""
        if settings.keys() != self.settings.keys():
            raise InvalidDocument("the release has other settings than its solver has")
        for name, setting in self.settings.items():
            if not setting.allows(settings[name]):
                raise InvalidDocument(f"the setting {name} of the release must be {setting.kind}")

    def check_ledger(self, ledger: Ledger) -> None:
        """Raise unless the ledger could be that of this solver."""
        if ledger.unit not in self.units:
            raise InvalidDocument(f"the solver of the release does not support unit {ledger.unit}")
        if _ORDER.index(ledger.status) < _ORDER.index(self.status):
            raise InvalidDocument(
                f"the status of the release is {ledger.status}, and its solver is at best "
                f"{self.status}"
            )
        for event in ledger.events:
            if not self._knows(event):
                raise InvalidDocument(
                    "the ledger has an event in words that its solver does not use"
                )
            if isinstance(event, GaussianRelease) and not _is_consistent(event):
                raise InvalidDocument(
                    "the ledger has an event whose rows or sampler are not those of its purpose"
                )
        if self.is_private and not _is_complete(ledger):
            raise InvalidDocument("the ledger lacks events that its solver records")

    def _knows(self, event: Event) -> bool:
        if isinstance(event, PatternRelease):
            return event.purpose == PATTERN_FEATURES
        if isinstance(event, ExactRelease) and event.purpose == OBSERVED:
            return True
        if not self.purposes.fullmatch(event.purpose):
            return False
        if isinstance(event, GaussianRelease) and event.proof not in self.proofs:
            return False
        flaw = event.flaw if isinstance(event, GaussianRelease) else None
        chosen = (
            " ".join(each)
            for count in range(1, len(self.flaws) + 1)
            for each in combinations(self.flaws, count)
        )
        return flaw is None or flaw in chosen


def _is_consistent(event: GaussianRelease) -> bool:
    """Whether an event has the rows that its purpose names, and the error of the sampler."""
    rows = Rows.TOTAL
    for ending, kind in _ROWS.items():
        if event.purpose.endswith(ending) or event.purpose.startswith(ending):
            rows = kind
    noise = event.sampler_error, event.sampler_tail
    return event.rows is rows and noise == (sampler.ERROR, sampler.TAIL)


def _is_complete(ledger: Ledger) -> bool:
    """Whether numbered steps run from the first to the last, each with the tables of the first.

    The paper's own may stop early. What a solver releases before its first step comes first.
    """
    steps: dict[int, set[str]] = {}
    totals: set[str] = set()
    for event in ledger.events:
        if isinstance(event, GaussianRelease) and (found := _STEP.match(event.purpose)):
            number, total = found.groups()
            steps.setdefault(int(number), set()).add(event.purpose[found.end() :])
            totals.add(total)
    if not steps:
        return sum(isinstance(event, GaussianRelease) for event in ledger.events) == (
            1 if ledger.events[0].purpose == "every rating" else 2
        )
    if len(totals) != 1 or steps.keys() != set(range(1, len(steps) + 1)):
        return False
    (total,) = totals
    is_whole = total is None or int(total) == len(steps)
    return is_whole and all(steps[1] <= tables for tables in steps.values())


_ORDER = list(Status)

_STEP = re.compile(
    "(?:round|step|gradient|gradient of the user profiles, iteration) ([0-9]+)(?: of ([0-9]+))?"
)

_ROWS = {
    "by item": Rows.ITEMS,
    "by user": Rows.USERS,
    "weights of items": Rows.ITEMS,
    "every rating": Rows.RATINGS,
    "gradient of the user profiles": Rows.USERS,
}
"""Rows of a table by how its purpose ends or begins; others are totals."""

PATTERN_FEATURES = "features of the rating pattern, inside the profiles"
"""Purpose of the event with which a solver publishes features of the rating pattern."""
