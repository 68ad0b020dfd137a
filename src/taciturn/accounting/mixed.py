"""Total cost of releases under different privacy units.

Guarantees under different neighbouring relations do not compose as they are. Some of them imply a
weaker guarantee under another relation, by the triangle inequality (docs/proofs/group-privacy.md):

- Replacing a value is removing a rating and adding another: two steps of `rating`.
- Changing any of a user's ratings is removing the user and adding them again: two steps of `user`.
- Removing all k ratings of a user is k steps of `rating` for ratings of one user.
- Under `value` nothing follows for adding or removing a rating: the rating pattern is public.

Nothing here reads private data.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from taciturn.accounting import gaussian
from taciturn.accounting.ledger import Ledger, Status
from taciturn.accounting.spend import Spend
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidParameter

_REASONS = {
    Unit.VALUE: "a release under unit value treats the rating pattern as public",
    Unit.RATING: "a release under unit rating bounds a limited number of ratings",
}
"""Reasons why a unit implies nothing about a change."""

SIZES = (10, 100)
"""Numbers of ratings of one user for which the total is stated."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """Change of the data, and its length in steps of each unit's neighbouring relation.

    `steps` maps a unit to the number of ratings in a group, which is 1 under `user`, and the number
    of times that such a group changes. A unit that is missing implies nothing about the change.
    """

    words: str
    steps: dict[Unit, tuple[int, int]]


@dataclass(frozen=True, kw_only=True)
class Total:
    """Total cost of several releases for one change.

    `reason` says why nothing can be said, and is None otherwise. `epsilon` is also None if the
    sampler's error has no proven bound.
    """

    words: str
    mu: float | None
    epsilon: float | None
    reason: str | None = None


def _changes(units: frozenset[Unit]) -> list[Change]:
    """Changes that are stated for a mixture of units."""
    changes = [
        Change(
            words="the value of one rating",
            steps={Unit.VALUE: (1, 1), Unit.RATING: (1, 2), Unit.USER: (1, 2)},
        ),
        Change(
            words="one rating and the fact that it exists",
            steps={Unit.RATING: (1, 1), Unit.USER: (1, 2)},
        ),
    ]
    for size in SIZES:
        if Unit.VALUE in units:
            steps = {Unit.VALUE: (size, 1), Unit.RATING: (size, 2), Unit.USER: (1, 2)}
            words = f"the values of {size} ratings of one user"
        else:
            steps = {Unit.RATING: (size, 1), Unit.USER: (1, 1)}
            words = f"all ratings of one user who has at most {size}"
        changes.append(Change(words=words, steps=steps))
    changes.append(Change(words="all ratings of one user, however many", steps={Unit.USER: (1, 1)}))
    return changes


def mixed_totals(ledgers: Sequence[Ledger], delta: float) -> list[Total]:
    """Total cost of runs under different units, for one rating and for one user.

    Raises if something was released without noise.
    """
    if any(ledger.status is Status.NONE for ledger in ledgers):
        raise InvalidParameter("something was released without noise, so there is no finite total")
    units = frozenset(ledger.unit for ledger in ledgers)
    return [_total(change, ledgers, delta) for change in _changes(units)]


def _total(change: Change, ledgers: Sequence[Ledger], delta: float) -> Total:
    silent = [ledger.unit for ledger in ledgers if ledger.unit not in change.steps]
    if silent:
        reason = _REASONS[Unit.VALUE if Unit.VALUE in silent else Unit.RATING]
        return Total(words=change.words, mu=None, epsilon=None, reason=reason)
    spends = [
        ledger.spend(group=size, steps=steps)
        for ledger in ledgers
        for size, steps in [change.steps[ledger.unit]]
    ]
    together = Spend(
        mu=gaussian.round_up(math.sqrt(math.fsum(spend.mu**2 for spend in spends))),
        error=gaussian.round_up(math.fsum(spend.error for spend in spends)),
        tail=gaussian.round_up(math.fsum(spend.tail for spend in spends)),
    )
    epsilon = together.epsilon_upper(delta)
    return Total(
        words=change.words,
        mu=together.mu,
        epsilon=epsilon if math.isfinite(epsilon) else None,
    )
