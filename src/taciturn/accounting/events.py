"""Events: one frozen record for each release, from which all costs are computed.

An event holds public facts only: a bound, a noise scale, a purpose. It never holds a value that
depends on the ratings.

Events may evolve, but a ledger must keep its meaning. From version 0.2.0 on, a field is never
removed and never changes its meaning. A new field is optional, and omitting it keeps the former
meaning of the event. A new kind of mechanism is a new class with its own name in `Mechanism`. A
reader refuses names and fields it does not know, so that no cost is silently ignored.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar

from taciturn._internal import validate
from taciturn.accounting import gaussian, sampler
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidDocument, InvalidParameter


class Rows(StrEnum):
    """Index of a released table's rows, which determines the sensitivity to a group of ratings.

    The g ratings of one user change g different rows of a table indexed by item or by rating, so
    its sensitivity grows by √g. They all change the same row of a table indexed by user, or the
    same total, so its sensitivity grows by g. A balanced table has rows of users and of items: one
    rating changes the row of its user by at most √`BALANCED_SHARE` of the sensitivity, and a row of
    its own otherwise. A table of contributions adds up one bounded contribution for each user; its
    sensitivity holds for any change of one user's ratings.
    """

    ITEMS = "items"
    USERS = "users"
    TOTAL = "total"
    RATINGS = "ratings"
    CONTRIBUTIONS = "contributions"
    BALANCED = "balanced"

    @property
    def is_shared(self) -> bool:
        """True if all ratings of one user change the same row."""
        return self in (Rows.USERS, Rows.TOTAL, Rows.BALANCED)


BALANCED_SHARE = 0.75
"""Maximum share of the squared sensitivity of a balanced table that a rating has in the row of its
user."""


class Mechanism(StrEnum):
    """Kind of mechanism that made a release."""

    GAUSSIAN = "gaussian"
    EXACT = "exact"
    PATTERN = "pattern"
    FOLD_IN = "fold-in"


class Noise(StrEnum):
    """Source of the noise: a secure one, or one seeded for tests, which protects nothing."""

    SECURE = "secure"
    TEST = "test"


@dataclass(frozen=True, kw_only=True)
class GaussianRelease:
    """A table released once with independent Gaussian noise on every coordinate.

    For every pair of neighbouring datasets under `unit`, and any transcript of earlier events, the
    exact tables differ by at most `sensitivity` in L2 norm and in at most `coordinates` entries.
    The noise is N(0, noise_scale²), up to the error of its sampler. With ideal noise the event
    alone is exactly μ-GDP with μ = sensitivity/noise_scale.

    Parameters
    ----------
    purpose
        Purpose of the table, in words.
    proof
        Page and heading under docs/proofs that prove the bound, such as `grid.md#sensitivity`; for
        a bound without a valid proof, where that is explained.
    unit
        Privacy unit under which `sensitivity` holds.
    sensitivity, noise_scale
        Both positive and in the same scale. Events compose if all their ratios, or a cap on the sum
        of the squared ratios, were fixed in advance.
    rows
        Index of the table's rows.
    noise
        Source of the noise: secure or test.
    coordinates
        Maximum number of entries that differ between neighbouring datasets, known before the run.
    sampler_error, sampler_tail
        Maximum relative error of the point masses of the implemented noise, for every scale, and
        the probability of the tail where that bound does not hold; 0 for ideal noise.
    flaw
        Reason why no valid proof supports `sensitivity`; None if one does.
    sensitivity_by_level
        If units have personal budgets: sensitivity for a unit of each declared level. The largest
        is `sensitivity`. A mapping or pairs; empty if all units have the same budget.
    part
        Name of the part of the data that the table was computed from; None for all of it. Parts
        with different names are disjoint, and the part of a unit depends on that unit alone.
        Accounting composes all parts, which never underestimates the cost.
    """

    mechanism: ClassVar[Mechanism] = Mechanism.GAUSSIAN

    purpose: str
    proof: str
    unit: Unit
    sensitivity: float
    noise_scale: float
    rows: Rows
    noise: Noise
    coordinates: int
    sampler_error: float = 0.0
    sampler_tail: float = 0.0
    flaw: str | None = None
    sensitivity_by_level: tuple[tuple[str, float], ...] = ()
    part: str | None = None

    def __post_init__(self) -> None:
        _check_common(self)
        if not (isinstance(self.proof, str) and _PROOF.fullmatch(self.proof)):
            raise InvalidParameter("proof must name a page and a heading; for example als.md#claim")
        _set(self, "rows", validate.choice("rows", self.rows, Rows))
        _set(self, "noise", validate.choice("noise", self.noise, Noise))
        for name in ("sensitivity", "noise_scale"):
            value = validate.positive(name, getattr(self, name), "derive it from a proven bound")
            _set(self, name, value)
        validate.positive_integer(
            "coordinates", self.coordinates, "count the entries that one change can affect"
        )
        for name in ("sampler_error", "sampler_tail"):
            value = validate.small(name, getattr(self, name), "use 0 for ideal noise")
            _set(self, name, value)
        gaussian.check_mu(self.mu)
        if self.sampler_error > 0 and self.mu > sampler.RATIO_MAX:
            raise InvalidParameter(
                f"the sampler's error is bounded for sensitivity/noise_scale up to "
                f"{sampler.RATIO_MAX:g}, got {self.mu:g}; add noise or split it into several "
                "releases"
            )
        if self.flaw is not None:
            validate.text("flaw", self.flaw, "describe the gap in the proof, or omit it")
        _set(self, "sensitivity_by_level", _checked_levels(self))
        if self.part is not None:
            validate.text("part", self.part, "name a part of the data, or omit it")

    @property
    def mu(self) -> float:
        """Gaussian-DP parameter of this event alone."""
        return self.sensitivity / self.noise_scale

    @property
    def is_bounded_by_user(self) -> bool:
        """True if the sensitivity holds for any number of ratings of one user."""
        return self.rows is Rows.CONTRIBUTIONS and self.unit is not Unit.USER

    def growth(self, group: int) -> float:
        """Squared growth of the sensitivity for `group` ratings of one user, or `group` users."""
        group = validate.positive_integer("group", group, "it counts ratings or users")
        if self.is_bounded_by_user:
            return 1
        if self.unit is not Unit.USER and self.rows is Rows.BALANCED:
            return BALANCED_SHARE * group**2 + (1 - BALANCED_SHARE) * group
        is_shared = self.rows.is_shared or self.unit is Unit.USER
        return group**2 if is_shared else group

    def sampler_charge(self, group: int = 1, steps: int = 1) -> tuple[float, float]:
        """Cost (λ, κ) of the sampler's error for `steps` changes of `group` ratings of one user.

        κ includes the advantage in telling the cipher's keystream from uniform words.

        `sampler_error` holds for noise up to `sampler.RANGE` σ. A group can shift the same entries
        further, where the error grows with the square of the distance. λ is infinite if no bound
        is proven. See docs/proofs/sampler.md.
        """
        group = validate.positive_integer("group", group, "it counts ratings or users")
        steps = validate.positive_integer("steps", steps, "it counts changes")
        changed = 1 if self.is_bounded_by_user else group
        coordinates = steps * changed * self.coordinates
        tail = coordinates * self.sampler_tail
        if self.sampler_error == 0:
            return 0.0, tail
        tail += sampler.CIPHER
        is_shared = self.rows.is_shared or self.unit is Unit.USER
        distance = sampler.CORE + steps * (changed if is_shared else 1) * self.mu
        error = self.sampler_error * max(1.0, distance / sampler.RANGE) ** 2
        if distance > sampler.RANGE_MAX or error >= 0.5:
            return math.inf, tail
        return -coordinates * math.log1p(-error), tail


@dataclass(frozen=True, kw_only=True)
class ExactRelease:
    """Release of a value that depends on the ratings, without noise: it voids every guarantee."""

    mechanism: ClassVar[Mechanism] = Mechanism.EXACT

    purpose: str
    unit: Unit

    def __post_init__(self) -> None:
        _check_common(self)


EXACT = "exact ratings, or exact sums of ratings"
"""Purpose of the exact release that a solver without privacy records."""

OBSERVED = "exact sums, shown to the audit that observed the run"
"""Purpose of the exact release in the ledger of a run that an audit observed."""


@dataclass(frozen=True, kw_only=True)
class PatternRelease:
    """Exact release of a statistic of the rating pattern (which pairs exist, not their values).

    Under unit `value` the rating pattern is public, so this costs nothing. Under every other unit
    it is an exact release.
    """

    mechanism: ClassVar[Mechanism] = Mechanism.PATTERN

    purpose: str
    unit: Unit

    def __post_init__(self) -> None:
        _check_common(self)

    @property
    def is_free(self) -> bool:
        """True if the unit treats the rating pattern as public."""
        return self.unit is Unit.VALUE


@dataclass(frozen=True, kw_only=True)
class FoldInServing:
    """Exact profiles that are not released: each is shown only to the user whose ratings it fits.

    Such a profile is a function of the release and of that user's own ratings. For neighbours that
    differ in one rating of user j, everything that the other users see together is a function of
    the release and of ratings that are not j's, so this costs nothing (docs/proofs/fold-in.md).
    Under unit `user` this is always so, and no event records it.
    """

    mechanism: ClassVar[Mechanism] = Mechanism.FOLD_IN

    purpose: str
    unit: Unit

    def __post_init__(self) -> None:
        _check_common(self)


Event = GaussianRelease | ExactRelease | PatternRelease | FoldInServing

_KINDS: tuple[type[Event], ...] = (GaussianRelease, ExactRelease, PatternRelease, FoldInServing)

_OPTIONAL = {"flaw", "sensitivity_by_level", "part"}

_PROOF = re.compile(r"[a-z0-9-]{1,40}\.md#[a-z0-9-]{1,60}")

LEVELS_MAX = 64
"""Maximum number of levels in `sensitivity_by_level`."""


def event_to_dict(event: Event) -> dict[str, Any]:
    """Event as JSON types, without absent optional fields."""
    facts = {field.name: getattr(event, field.name) for field in fields(event)}
    if levels := facts.pop("sensitivity_by_level", None):
        facts["sensitivity_by_level"] = dict(levels)
    known = {name: fact for name, fact in facts.items() if fact is not None}
    return {"mechanism": event.mechanism} | known


def event_from_dict(document: object) -> Event:
    """Event that `event_to_dict` wrote; checks everything."""
    stated = document.get("mechanism") if isinstance(document, dict) else None
    kind = next((kind for kind in _KINDS if kind.mechanism == stated), None)
    if not isinstance(document, dict) or kind is None:
        names = ", ".join(kind.mechanism for kind in _KINDS)
        raise InvalidDocument(f"an event must be an object whose mechanism is one of {names}")
    facts = {name: fact for name, fact in document.items() if name != "mechanism"}
    known = {field.name for field in fields(kind)}
    unknown = facts.keys() - known
    if unknown:
        raise InvalidDocument(f"a {kind.mechanism} event has no field {sorted(unknown)[0]!r}")
    if any(fact is None or fact == {} for fact in facts.values()):
        raise InvalidDocument("an event has a null or empty field; omit an absent field instead")
    missing = known - facts.keys() - _OPTIONAL
    if missing:
        raise InvalidDocument(f"a {kind.mechanism} event lacks the field {sorted(missing)[0]!r}")
    try:
        return kind(**facts)
    except InvalidParameter as error:
        raise InvalidDocument(f"an event is not valid: {error}") from None


def _checked_levels(event: GaussianRelease) -> tuple[tuple[str, float], ...]:
    given = event.sensitivity_by_level
    pairs = given.items() if isinstance(given, Mapping) else given
    try:
        levels = dict(pairs)
    except (TypeError, ValueError):
        raise InvalidParameter("sensitivity_by_level must map levels to numbers") from None
    if len(levels) > LEVELS_MAX:
        raise InvalidParameter(
            f"sensitivity_by_level must have at most {LEVELS_MAX} levels, got {len(levels):,}"
        )
    for level in levels:
        validate.text("level", level, "use its declared name")
    checked = tuple(
        (level, validate.positive("sensitivity_by_level", value, "pass one number for each level"))
        for level, value in levels.items()
    )
    if checked and max(value for _, value in checked) != event.sensitivity:
        raise InvalidParameter("the largest value in sensitivity_by_level must equal sensitivity")
    return checked


def _check_common(event: Event) -> None:
    validate.text("purpose", event.purpose, "describe the use of the released table")
    _set(event, "unit", validate.choice("unit", event.unit, Unit))


def _set(event: Event, name: str, value: object) -> None:
    """Normalise a field of a frozen event while it is being built."""
    object.__setattr__(event, name, value)
