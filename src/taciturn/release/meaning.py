"""Meaning of a certificate's numbers in plain words, for the card of a release.

Every number is an upper bound, rounded up. Nothing here reads private data.
"""

import math
from dataclasses import dataclass

from taciturn.accounting.certificate import Certificate, rounded_up
from taciturn.accounting.units import Unit

FALSE_POSITIVE_RATE = 0.01
"""False-positive rate at which the card states what an attacker can find: 1 in 100."""

_GRADES = (
    (0.05, "strong protection"),
    (0.2, "moderate protection"),
    (0.5, "weak protection"),
    (math.inf, "practically no protection"),
)
"""Words for a guarantee, by the true-positive rate that it stays below."""

GRADES = (
    "Protection is called strong if the attacker finds fewer than 5 of 100, moderate below 20, "
    "weak below 50, and practically none from there on. Without the release they find 1 of 100."
)

FACTOR_MAX = 1e6
"""Largest factor between probabilities that is written as a number."""

_LIKELY = {
    Unit.VALUE: "if a rating has one value as if it has another",
    Unit.RATING: "if a rating is in the data as if it is not",
    Unit.USER: "if a user is in the data as if they are not",
}
_WRONG = {
    Unit.VALUE: "ratings with another value",
    Unit.RATING: "ratings that do not exist",
    Unit.USER: "users who are not in the data",
}
"""False positives of the attacker, by privacy unit."""


@dataclass(frozen=True, kw_only=True)
class Strength:
    """Guarantee for a group of `size` ratings or users.

    `true_positive_rate` is the maximum of any attacker at `FALSE_POSITIVE_RATE`. `epsilon` is None
    if there is no bound.
    """

    size: int
    epsilon: float | None
    true_positive_rate: float

    @property
    def grade(self) -> str:
        """Guarantee in words."""
        return next(words for limit, words in _GRADES if self.true_positive_rate < limit)


def strengths(certificate: Certificate) -> list[Strength]:
    """Guarantee for each group of the certificate; empty if it has no numbers."""
    ledger = certificate.ledger
    return [
        Strength(
            size=line.size,
            epsilon=line.epsilon,
            true_positive_rate=ledger.spend(group=line.size).true_positive_rate_upper(
                FALSE_POSITIVE_RATE
            ),
        )
        for line in certificate.group
    ]


def meaning(certificate: Certificate) -> list[str]:
    """Numbers of a proven certificate in words, as Markdown lines."""
    unit, found = certificate.unit, strengths(certificate)
    epsilon = rounded_up(certificate.epsilon or 0.0)
    return [
        f"At epsilon = {epsilon}, anything that anyone concludes from these files "
        f"{_factor(certificate.epsilon or 0.0)} times as likely {_LIKELY[unit]}, apart from a "
        f"probability of delta = {certificate.delta!r}. As odds: take an attacker who knows "
        f"everything else, starts from even odds (1 : 1), and wrongly points at 1 of 100 "
        f"{_WRONG[unit]}. When this attacker points, the odds that they are right are at most "
        f"{rounded_up(100 * found[0].true_positive_rate, 2)} : 1. This is how many such cases they "
        "find at most:",
        "",
        *(f"- {_line(unit, each)}" for each in found),
        "",
        GRADES,
    ]


def _line(unit: Unit, each: Strength) -> str:
    member = unit.facts.member
    group = f"1 {member}"
    if each.size > 1:
        group = f"{each.size} {member}s {'' if unit is Unit.USER else 'of one user '}together"
    epsilon = "no bound" if each.epsilon is None else f"epsilon = {rounded_up(each.epsilon)}"
    found = f"{rounded_up(100 * each.true_positive_rate, 2)} of 100"
    return f"{group}: {epsilon}, found in {found} cases, **{each.grade}**"


def _factor(epsilon: float) -> str:
    if epsilon > math.log(FACTOR_MAX):
        return "can be more than a million"
    return f"is at most {rounded_up(math.exp(epsilon), 2)}"
