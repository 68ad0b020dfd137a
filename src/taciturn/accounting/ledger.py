"""Ledger of a run: every release in order, and their composed cost.

Events are appended before their noise is drawn, and are never changed or removed. All events have
the same unit, since guarantees under different neighbouring relations do not compose.
"""

import math
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from taciturn._internal import strict_json, validate
from taciturn._internal.spelling import in_document
from taciturn.accounting import gaussian, text
from taciturn.accounting.events import (
    Event,
    ExactRelease,
    FoldInServing,
    GaussianRelease,
    Noise,
    PatternRelease,
    event_from_dict,
    event_to_dict,
)
from taciturn.accounting.public_inputs import PublicInput
from taciturn.accounting.spend import Spend
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidDocument, InvalidParameter

FORMAT = "taciturn-ledger"
VERSION = 1


class Status(StrEnum):
    """Reliability of a guarantee, best first."""

    PROVEN = "proven"
    CLAIMED = "claimed"
    VOID = "void"
    NONE = "none"


class Ledger:
    """Append-only list of the events of one run.

    Parameters
    ----------
    events
        Events recorded so far.
    run
        Random name of the run, 32 hexadecimal digits. Default: a fresh one.
    public_inputs
        Public inputs of the run besides its ratings. They cost nothing.
    """

    def __init__(
        self,
        events: Iterable[Event] = (),
        *,
        run: str | None = None,
        public_inputs: Sequence[PublicInput] = (),
    ) -> None:
        self.run = secrets.token_hex(16) if run is None else run
        if not (isinstance(self.run, str) and re.fullmatch("[0-9a-f]{32}", self.run)):
            raise InvalidParameter(
                f"run must be 32 hexadecimal digits, got {validate.shown(run)}; "
                "omit it to draw a fresh name"
            )
        self.public_inputs = validate.several("public_inputs", public_inputs, "of PublicInput")
        for each in self.public_inputs:
            validate.instance("each of the public_inputs", each, PublicInput, "build one")
        if len(set(self.public_inputs)) < len(self.public_inputs):
            raise InvalidParameter("a ledger names each public input once")
        self._events: list[Event] = []
        if not isinstance(events, Iterable):
            raise InvalidParameter(f"events must be a list, got {validate.shown(events)}")
        for event in events:
            self.append(event)

    def __repr__(self) -> str:
        return f"Ledger({len(self._events)} events, run={self.run!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ledger):
            return NotImplemented
        return (self.run, self.events, self.public_inputs) == (
            other.run,
            other.events,
            other.public_inputs,
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def events(self) -> tuple[Event, ...]:
        """Events in the order in which they were recorded."""
        return tuple(self._events)

    @property
    def unit(self) -> Unit:
        """Privacy unit of all events."""
        if not self._events:
            raise InvalidParameter("the ledger is empty: nothing was released, so it has no unit")
        return self._events[0].unit

    def append(self, event: Event) -> None:
        """Record `event`; it counts from now on, whether or not its noise is ever drawn."""
        if not isinstance(event, Event):
            raise InvalidParameter(f"a ledger records events, got {validate.shown(event)}")
        if self._events and event.unit != self.unit:
            raise InvalidParameter(
                f"unit {event.unit} does not compose with unit {self.unit}; compose the releases "
                "of each unit separately"
            )
        self._events.append(event)

    @property
    def status(self) -> Status:
        """Status of the least reliable event; raises if the ledger has nothing to certify.

        A ledger that publishes the rating pattern alone, under unit `value`, is proven: nothing
        that the unit protects is released.
        """
        if all(isinstance(event, FoldInServing) for event in self._events):
            raise InvalidParameter(
                "the ledger is empty: no release depends on ratings, nothing to certify"
            )
        if any(_is_exact(event) for event in self._events):
            return Status.NONE
        if any(event.noise is Noise.TEST for event in self._gaussian()):
            return Status.VOID
        if any(event.flaw is not None for event in self._gaussian()):
            return Status.CLAIMED
        return Status.PROVEN

    @property
    def reasons(self) -> tuple[str, ...]:
        """Distinct reasons for a status other than `proven`."""
        reasons: dict[str, None] = {}
        for event in self._events:
            if _is_exact(event):
                reasons[text.REASON_EXACT.format(purpose=event.purpose)] = None
            if isinstance(event, GaussianRelease):
                if event.noise is Noise.TEST:
                    reasons[text.REASON_TEST_NOISE] = None
                if event.flaw is not None:
                    reasons[event.flaw] = None
        return tuple(reasons)

    @property
    def patterns(self) -> tuple[str, ...]:
        """Distinct purposes of the pattern releases."""
        found = (event.purpose for event in self._events if isinstance(event, PatternRelease))
        return tuple(dict.fromkeys(found))

    @property
    def is_served_by_fold_in(self) -> bool:
        """True if each user is shown an exact profile of their own, beside the release."""
        return any(isinstance(event, FoldInServing) for event in self._events)

    def ratios(self) -> list[tuple[float, int]]:
        """Distinct μ of the Gaussian events, each with its count."""
        return list(Counter(event.mu for event in self._gaussian()).items())

    def spend(self, group: int = 1, *, steps: int = 1) -> Spend:
        """Composed cost of the run for a group of ratings of one user, rounded up.

        Under unit `user` the group consists of users. `steps` counts how often the group changes:
        replacing ratings under unit `rating` is removing and adding them, in two steps. Raises if
        anything was released without noise, since no finite cost exists then.
        """
        group = validate.positive_integer("group", group, "it counts ratings or users")
        steps = validate.positive_integer("steps", steps, "it counts changes of the group")
        if self.status is Status.NONE:
            raise InvalidParameter(
                "something was released without noise, so the run has no finite mu"
            )
        events = self._gaussian()
        if not events:
            return Spend(mu=0.0, error=0.0, tail=0.0)
        scaled = [(event.mu, steps**2 * event.growth(group)) for event in events]
        errors, tails = zip(*(event.sampler_charge(group, steps) for event in events), strict=True)
        return Spend(
            mu=gaussian.round_up(gaussian.compose(scaled)),
            error=gaussian.round_up(math.fsum(errors)),
            tail=gaussian.round_up(math.fsum(tails)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Ledger as JSON types; `public_inputs` only if there are any."""
        head = {"format": FORMAT, "version": VERSION, "run": self.run}
        if self.public_inputs:
            head["public_inputs"] = [each.to_dict() for each in self.public_inputs]
        return head | {"events": [event_to_dict(event) for event in self._events]}

    @classmethod
    def from_dict(cls, document: object) -> "Ledger":
        """Ledger that `to_dict` wrote; checks everything."""
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise InvalidDocument(f"a ledger must be an object whose format is {FORMAT!r}")
        check_version("ledgers", document.get("version"), VERSION)
        if document.keys() - {"public_inputs"} != {"format", "version", "run", "events"}:
            raise InvalidDocument(
                "a ledger has exactly the fields format, version, run, events, and public_inputs "
                "if there are any"
            )
        run, events = document["run"], document["events"]
        if not isinstance(run, str) or not isinstance(events, list):
            raise InvalidDocument("a ledger's run must be a string and its events must be a list")
        inputs = document.get("public_inputs", [])
        if not isinstance(inputs, list) or ("public_inputs" in document and not inputs):
            raise InvalidDocument("a ledger's public_inputs must be a list that is not empty")
        try:
            with in_document():
                return cls(
                    [event_from_dict(event) for event in events],
                    run=run,
                    public_inputs=[PublicInput.from_dict(each) for each in inputs],
                )
        except InvalidParameter as error:
            raise InvalidDocument(f"a ledger is not valid: {error}") from None

    def save(self, path: str | Path) -> None:
        """Write the ledger as JSON to a new file."""
        strict_json.write(validate.path("path", path), self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> "Ledger":
        """Read a ledger file."""
        return cls.from_dict(strict_json.read(validate.path("path", path)))

    def _gaussian(self) -> list[GaussianRelease]:
        return [event for event in self._events if isinstance(event, GaussianRelease)]


def check_version(documents: str, version: object, known: int) -> None:
    """Raise unless the version of a document is the one that this Taciturn reads."""
    if type(version) is not int or version != known:
        raise InvalidDocument(
            f"this Taciturn reads {documents} of version {known}, got version "
            f"{validate.shown(version)}; use a version of Taciturn that supports it"
        )


def _is_exact(event: Event) -> bool:
    """True if an event released, without noise, something that its unit protects."""
    if isinstance(event, PatternRelease):
        return not event.is_free
    return isinstance(event, ExactRelease)


def check_distinct(ledgers: Sequence[Ledger]) -> None:
    """Raise if two ledgers are of the same run."""
    if len({ledger.run for ledger in ledgers}) < len(ledgers):
        raise InvalidParameter("the same run was given twice; pass each release once")


def combine(ledgers: Iterable[Ledger]) -> Ledger:
    """One ledger with the events of several runs on the same data.

    Releases of the same data compose: their μ² add. This covers a later run chosen after seeing an
    earlier one, provided that the total was capped in advance.
    """
    if not isinstance(ledgers, Iterable):
        raise InvalidParameter(f"ledgers must be a list, got {validate.shown(ledgers)}")
    ledgers = list(ledgers)
    for ledger in ledgers:
        validate.instance("each of the ledgers", ledger, Ledger, "a fit has one: fit.ledger")
    check_distinct(ledgers)
    inputs = dict.fromkeys(each for ledger in ledgers for each in ledger.public_inputs)
    events = (event for ledger in ledgers for event in ledger.events)
    return Ledger(events, public_inputs=list(inputs))
