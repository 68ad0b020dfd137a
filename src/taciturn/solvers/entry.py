"""Entries of the catalog of solvers, and the checks of a release against its solver's entry.

Pure Python, so that a release can be checked without the solvers themselves and their compiled
code. A release can use only the names and sentences declared here: free text in a verified ledger
could be mistaken for part of the guarantee.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from itertools import combinations
from typing import Any

from taciturn.accounting.events import (
    EXACT,
    OBSERVED,
    Event,
    ExactRelease,
    FoldInServing,
    GaussianRelease,
    PatternRelease,
)
from taciturn.accounting.ledger import Ledger, Status
from taciturn.accounting.public_inputs import InputKind
from taciturn.accounting.units import DEFAULT_UNIT, Unit
from taciturn.errors import InvalidDocument
from taciturn.solvers.ledger_shape import LedgerShape


class Kind(StrEnum):
    """Type of a setting."""

    COUNT = "a whole number above 0"
    NUMBER = "a number"
    FLAG = "true or false"
    UNIT = "a privacy unit"
    CHOICE = "one of the choices of its solver"


@dataclass(frozen=True)
class Setting:
    """Type of a setting, its choices if any, and whether it may be null.

    Releases of earlier versions lack a setting that `is_new`; it then has its default.
    """

    kind: Kind
    is_optional: bool = False
    choices: tuple[str, ...] = ()
    is_new: bool = False

    def allows(self, value: object) -> bool:
        """Whether a value in a release has this type."""
        if value is None:
            return self.is_optional
        if self.kind is Kind.FLAG:
            return isinstance(value, bool)
        if self.kind is Kind.UNIT:
            return isinstance(value, str) and value in list(Unit)
        if self.kind is Kind.CHOICE:
            return isinstance(value, str) and value in self.choices
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if self.kind is Kind.COUNT:
            return isinstance(value, int) and value > 0
        return abs(value) < 1e300 and math.isfinite(value)


PATTERN_FEATURES = "features of the rating pattern, inside the profiles"
"""Purpose of the event with which a solver publishes features of the rating pattern."""

PATTERN_INTEREST = "popularity and interest factors of the rating pattern, inside the profiles"
"""Purpose of the event with which a solver publishes interest learnt from the rating pattern."""

POPULARITY = "numbers of ratings by item, inside the profiles"
"""Purpose of the event with which a solver publishes exact numbers of ratings."""

POPULARITY_TABLE = "table {step} of {steps}: "
"""Start of the purpose of a noisy table of popularity."""

OWN_PROFILES = "each user's own profile, shown to that user only"
"""Purpose of the event with which a solver serves users by folding them in."""

SUM_OF_RATINGS = "sum of ratings"
"""Purpose of the release of the sum of all ratings, which are not clipped."""

FOLD_IN = "fold-in"
"""Value of the setting `serve` under which users fold in."""

_OF_INTEREST = {PATTERN_INTEREST, POPULARITY}

INTEREST_ROUNDS = 4
"""Number of rounds in which a solver queries interest."""

INTEREST_FACTORS_MAX = {Unit.VALUE: 63, Unit.RATING: 24, Unit.USER: 24}
"""Maximum number of interest factors beside popularity, by privacy unit."""

_ORDER = list(Status)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Catalog entry of a solver, which is not imported.

    Attributes
    ----------
    home
        Module and class of the solver, such as `bias:BiasSolver`, under `taciturn.solvers`.
    status
        Best status that its releases can have.
    settings
        Its settings, by name.
    ledgers
        Shape of its ledger under each privacy unit that it supports. The shape is None for a solver
        that is not private.
    flaws
        Sentences with which its events explain the lack of a proof, in this order. The first is
        always present.
    pattern_purposes
        Purposes of the statistics of the rating pattern that it may publish under unit `value`, and
        the setting that turns each off; None if nothing does.
    ledger_of_biases
        Shape of its ledger under `value` if its data are too small for factors; None if it has
        none.
    ledger_of_users
        Shape of its ledger under unit `rating` if it bounds whole users, who then fold in; None if
        it never does.
    inputs
        Kinds of public inputs that it uses, each at most once.
    predicts_ratings
        Whether its predicted ratings depend on the ratings. If not, it only ranks.
    always_has_interest
        Whether its profiles have interest vectors whatever the settings.
    """

    home: str
    status: Status
    settings: Mapping[str, Setting]
    ledgers: Mapping[Unit, LedgerShape | None]
    flaws: tuple[str, ...] = ()
    pattern_purposes: Mapping[str, str | None] = field(default_factory=dict)
    ledger_of_biases: LedgerShape | None = None
    ledger_of_users: LedgerShape | None = None
    inputs: frozenset[InputKind] = frozenset()
    predicts_ratings: bool = True
    always_has_interest: bool = False

    @property
    def is_private(self) -> bool:
        """Whether it has or claims a guarantee."""
        return self.status is not Status.NONE

    @property
    def units(self) -> frozenset[Unit]:
        """Privacy units that it supports."""
        return frozenset(self.ledgers)

    @property
    def supports_all_units(self) -> bool:
        """Whether it supports every privacy unit."""
        return self.units == frozenset(Unit)

    @property
    def default_unit(self) -> Unit:
        """Unit if none is chosen: the default unit, or `value` if no other is supported."""
        return DEFAULT_UNIT if DEFAULT_UNIT in self.units else Unit.VALUE

    @property
    def has_factors(self) -> bool:
        """Whether its profiles have factors in addition to biases."""
        return "factors" in self.settings

    def load(self) -> Any:
        """Class of the solver."""
        module, _, name = self.home.partition(":")
        return getattr(import_module(f"taciturn.solvers.{module}"), name)

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        """Raise unless these are the settings of the solver, with the right types."""
        lacking = {name for name, setting in self.settings.items() if setting.is_new}
        if settings.keys() - lacking != self.settings.keys() - lacking:
            raise InvalidDocument("the settings of the release are not those of its solver")
        for name, setting in self.settings.items():
            if name in settings and not setting.allows(settings[name]):
                raise InvalidDocument(f"the setting {name} of the release must be {setting.kind}")

    def check_ledger(self, ledger: Ledger, settings: Mapping[str, Any]) -> None:
        """Raise unless the ledger could be that of this solver with these settings."""
        if ledger.unit not in self.units:
            raise InvalidDocument(f"the solver of the release does not support unit {ledger.unit}")
        if "unit" in settings and settings["unit"] != ledger.unit:
            raise InvalidDocument("the unit of the ledger is not that of the settings")
        self._check_patterns(ledger, settings)
        if _ORDER.index(ledger.status) < _ORDER.index(self.status):
            raise InvalidDocument(
                f"the status of the release is {ledger.status}, and its solver is at best "
                f"{self.status}"
            )
        serves = settings.get("serve") == FOLD_IN and ledger.unit is not Unit.USER
        served = sum(isinstance(event, FoldInServing) for event in ledger.events)
        if served != serves:
            raise InvalidDocument("the ledger and the settings differ in how users are served")
        kinds = [each.kind for each in ledger.public_inputs]
        if not self.inputs.issuperset(kinds) or len(set(kinds)) < len(kinds):
            raise InvalidDocument("the ledger names a public input that its solver does not use")
        if not all(map(self._is_known, ledger.events)):
            raise InvalidDocument("the ledger has an event that its solver does not record")
        shape = self._shape(ledger, settings)
        if shape is None:
            return
        if learns_interest(settings):
            shape = shape.with_interest()
        steps = shape.check([each for each in ledger.events if isinstance(each, GaussianRelease)])
        stated = settings.get("iterations")
        if steps is not None and stated is not None and steps != stated:
            raise InvalidDocument(
                "the number of steps in the ledger is not the number of iterations in the settings"
            )

    def has_interest(self, settings: Mapping[str, Any]) -> bool:
        """Whether profiles have interest vectors."""
        return self.always_has_interest or learns_interest(settings)

    def _check_patterns(self, ledger: Ledger, settings: Mapping[str, Any]) -> None:
        """Raise unless each published statistic of the pattern is one that the settings allow."""
        found = [each.purpose for each in ledger.events if isinstance(each, PatternRelease)]
        allowed = {
            purpose
            for purpose, setting in self.pattern_purposes.items()
            if ledger.unit is Unit.VALUE and settings.get(setting or "") is not False
        }
        # Interest from the public pattern is published whenever there is interest, and only then.
        needed = (
            allowed & _OF_INTEREST if self.is_private and self.has_interest(settings) else set()
        )
        allowed -= _OF_INTEREST - needed
        if len(set(found)) < len(found) or not needed <= set(found) <= allowed:
            raise InvalidDocument(
                "the ledger publishes features of the rating pattern, but the settings do not"
                if not set(found) <= allowed
                else "the ledger lacks the release of interest that follows from the rating pattern"
            )

    def is_of_biases(self, ledger: Ledger) -> bool:
        """Whether the ledger is that of a training without factors: it begins with its purpose."""
        return ledger.unit is Unit.VALUE and _begins(ledger, self.ledger_of_biases)

    def _shape(self, ledger: Ledger, settings: Mapping[str, Any]) -> LedgerShape | None:
        """Shape that the ledger must have.

        Whole users are bounded only if they fold in and no size is chosen. Otherwise the ledger
        could claim that tables of published profiles do not depend on a user's number of ratings.
        """
        if self.is_of_biases(ledger):
            return self.ledger_of_biases
        is_chosen = any(settings.get(name) is not None for name in ("factors", "iterations"))
        may_bound_users = ledger.unit is Unit.RATING and settings.get("serve") == FOLD_IN
        if may_bound_users and not is_chosen and _begins(ledger, self.ledger_of_users):
            return self.ledger_of_users
        return self.ledgers[ledger.unit]

    def _is_known(self, event: Event) -> bool:
        """Whether the solver records such an event; the purpose of a noisy one is not compared."""
        if isinstance(event, PatternRelease):
            return event.purpose in self.pattern_purposes
        if isinstance(event, FoldInServing):
            return event.purpose == OWN_PROFILES
        if isinstance(event, ExactRelease):
            return event.purpose == (OBSERVED if self.is_private else EXACT)
        if not self.flaws:
            return self.is_private and event.flaw is None
        first, *others = self.flaws
        chosen = (
            " ".join([first, *each])
            for count in range(len(others) + 1)
            for each in combinations(others, count)
        )
        return event.flaw is not None and event.flaw in chosen


def learns_interest(settings: Mapping[str, Any]) -> bool:
    """Whether a training with these settings learns interest."""
    if "interest" not in settings or settings["interest"] is False:
        return False
    return settings.get("unit") != Unit.VALUE or settings.get("pattern_features") is not False


def _begins(ledger: Ledger, shape: LedgerShape | None) -> bool:
    """Whether the ledger has the first purpose of a shape, with which no other shape begins."""
    if shape is None:
        return False
    first = shape.phases[0].tables[0].purpose
    return any(
        isinstance(event, GaussianRelease) and event.purpose == first for event in ledger.events
    )
