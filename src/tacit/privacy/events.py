"""Events: what left the private side, one frozen record for each release.

An event holds public facts only: a bound, a noise scale, a purpose. It never holds a value that
depends on the ratings.
"""

import math
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar

from tacit import _validate
from tacit.errors import InvalidDocument, InvalidParameter
from tacit.privacy.accounting import gaussian
from tacit.privacy.noise import sampler
from tacit.privacy.units import Unit


class Rows(StrEnum):
    """Index of a released table's rows; it decides how a group composes.

    The g ratings of one user fall on g different rows of a table by item or by rating, each moving
    its own row (√g together), but all on the same row of a table by user or in the same total
    (g together).
    """

    ITEMS = "items"
    USERS = "users"
    TOTAL = "total"
    RATINGS = "ratings"

    @property
    def is_shared(self) -> bool:
        """Whether several ratings of one user move the same row."""
        return self in (Rows.USERS, Rows.TOTAL)


class Noise(StrEnum):
    """Where the noise came from: a secure source, or one seeded for tests, which hides nothing."""

    SECURE = "secure"
    TEST = "test"


@dataclass(frozen=True, kw_only=True)
class GaussianRelease:
    """A table released once with independent Gaussian noise on every coordinate.

    For every pair of neighbouring data sets under `unit`, and any outcome of the events before,
    the exact tables differ by at most `sensitivity` in L2 norm, in at most `coordinates` of their
    entries. The noise is N(0, noise_scale²), up to the error of its sampler. With ideal noise the
    event alone is exactly μ-GDP with μ = sensitivity/noise_scale.

    Parameters
    ----------
    purpose
        What the table is for, in words.
    unit
        The unit under which `sensitivity` bounds the change.
    sensitivity, noise_scale
        In the same scale; both positive. Events add up if all their ratios were fixed in advance,
        or the sum of their squares was capped in advance.
    rows
        What the table is indexed by.
    noise
        Whether the noise was secure.
    coordinates
        Maximum number of entries that one neighbouring change can touch, known before the run.
    sampler_error, sampler_tail
        Maximum relative error of the point masses of the implemented noise, for every scale, and
        the probability of the tail where they may be anything; 0 for ideal noise.
    flaw
        Why no valid proof supports `sensitivity`; None if one does.
    """

    type: ClassVar[str] = "gaussian"

    purpose: str
    unit: Unit
    sensitivity: float
    noise_scale: float
    rows: Rows
    noise: Noise
    coordinates: int
    sampler_error: float = 0.0
    sampler_tail: float = 0.0
    flaw: str | None = None

    def __post_init__(self) -> None:
        _check_common(self)
        _set(self, "rows", _validate.choice("rows", self.rows, Rows))
        _set(self, "noise", _validate.choice("noise", self.noise, Noise))
        for name in ("sensitivity", "noise_scale"):
            value = _validate.positive(name, getattr(self, name), "derive it from a proven bound")
            _set(self, name, value)
        _validate.positive_integer("coordinates", self.coordinates, "count what one change touches")
        for name in ("sampler_error", "sampler_tail"):
            value = _validate.small(name, getattr(self, name), "0 stands for ideal noise")
            _set(self, name, value)
        gaussian.check_mu(self.mu)
        if self.sampler_error > 0 and self.mu > sampler.RATIO_MAX:
            raise InvalidParameter(
                f"the sampler's error is bounded for sensitivity/noise_scale up to "
                f"{sampler.RATIO_MAX:g}, got {self.mu:g}; add noise or spread it over releases"
            )
        if self.flaw is not None:
            _validate.text("flaw", self.flaw, "say in a sentence what the proof lacks, or omit it")

    @property
    def mu(self) -> float:
        """The Gaussian-DP parameter of this event alone."""
        return self.sensitivity / self.noise_scale

    def sampler_charge(self, group: int = 1) -> tuple[float, float]:
        """Return λ and κ, the cost of the sampler's error for `group` ratings of one user.

        κ includes the advantage of whoever could tell the cipher's keystream from uniform words.

        `sampler_error` holds for noise of up to `sampler.REACH` σ. A group can shift the same
        entries further, where the error grows with the square of the distance; λ is infinite where
        nothing is proven. See docs/proofs/sampler.md.
        """
        coordinates = group * self.coordinates
        tail = coordinates * self.sampler_tail
        if self.sampler_error == 0:
            return 0.0, tail
        tail += sampler.CIPHER
        together = self.rows.is_shared or self.unit is Unit.USER
        reach = sampler.CORE + (group if together else 1) * self.mu
        error = self.sampler_error * max(1.0, reach / sampler.REACH) ** 2
        if reach > sampler.REACH_MAX or error >= 0.5:
            return math.inf, tail
        return -coordinates * math.log1p(-error), tail


@dataclass(frozen=True, kw_only=True)
class ExactRelease:
    """A value that depends on the ratings and left without noise: no guarantee survives it."""

    type: ClassVar[str] = "exact"

    purpose: str
    unit: Unit

    def __post_init__(self) -> None:
        _check_common(self)


OBSERVED = "exact sums, to the audit that observed the run"
"""Purpose of the exact release that an audit leaves in the ledger of a run that it observed."""


@dataclass(frozen=True, kw_only=True)
class PatternRelease:
    """Something computed from who rated what, not from how they rated, that left without noise.

    Under `value` the pattern of ratings is public, and this costs nothing. Under every other unit
    it is an exact release.
    """

    type: ClassVar[str] = "pattern"

    purpose: str
    unit: Unit

    def __post_init__(self) -> None:
        _check_common(self)

    @property
    def is_free(self) -> bool:
        """Whether the unit leaves the pattern public."""
        return self.unit is Unit.VALUE


Event = GaussianRelease | ExactRelease | PatternRelease

_KINDS: tuple[type[Event], ...] = (GaussianRelease, ExactRelease, PatternRelease)


def event_to_dict(event: Event) -> dict[str, Any]:
    """Return the event as JSON types; optional facts that are absent are left out."""
    facts = {field.name: getattr(event, field.name) for field in fields(event)}
    return {"type": event.type} | {name: fact for name, fact in facts.items() if fact is not None}


def event_from_dict(document: object) -> Event:
    """Return the event that `event_to_dict` wrote, checking everything."""
    stated = document.get("type") if isinstance(document, dict) else None
    kind = next((kind for kind in _KINDS if kind.type == stated), None)
    if not isinstance(document, dict) or kind is None:
        names = ", ".join(kind.type for kind in _KINDS)
        raise InvalidDocument(f"an event must be an object whose type is one of {names}")
    facts = {name: fact for name, fact in document.items() if name != "type"}
    known = {field.name for field in fields(kind)}
    unknown = facts.keys() - known
    if unknown:
        raise InvalidDocument(f"a {kind.type} event has no field {sorted(unknown)[0]!r}")
    if any(fact is None for fact in facts.values()):
        raise InvalidDocument("an event leaves an absent field out instead of giving null")
    missing = known - facts.keys() - {"flaw"}
    if missing:
        raise InvalidDocument(f"a {kind.type} event lacks the field {sorted(missing)[0]!r}")
    try:
        return kind(**facts)
    except InvalidParameter as error:
        raise InvalidDocument(f"an event is not valid: {error}") from None


def _check_common(event: Event) -> None:
    _validate.text("purpose", event.purpose, "say what the released table is for")
    _set(event, "unit", _validate.choice("unit", event.unit, Unit))


def _set(event: Event, name: str, value: object) -> None:
    """Normalise a field of a frozen event while it is being built."""
    object.__setattr__(event, name, value)
