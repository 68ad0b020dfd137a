"""Privacy units: what one neighbouring change is, and so what a guarantee hides.

A guarantee without its unit says nothing. Each unit names the relation between two neighbouring
data sets, and in plain sentences what a release under it hides and what it does not.
"""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, kw_only=True)
class UnitFacts:
    """What a unit means: its relation, and what it hides and does not hide."""

    relation: str
    hides: str
    not_hidden: tuple[str, ...]
    member: str


class Unit(StrEnum):
    """The unit of privacy: `value`, `rating` or `user`."""

    VALUE = "value"
    RATING = "rating"
    USER = "user"

    @property
    def facts(self) -> UnitFacts:
        """The relation and the plain sentences of this unit."""
        return _FACTS[self]


_SHARED_PATTERNS = (
    "what can be inferred about a person from patterns that hold without that person's data"
)

_FACTS = {
    Unit.VALUE: UnitFacts(
        relation="one rating's value is replaced by any other on the declared scale; "
        "who rated what stays the same and is treated as public",
        hides="how a user rated an item",
        not_hidden=(
            "that the user rated the item: the list of rated pairs is treated as public",
            "how many ratings a user or an item has",
            "several ratings of one person together, except as far as the group lines say",
            _SHARED_PATTERNS,
        ),
        member="rating",
    ),
    Unit.RATING: UnitFacts(
        relation="one rating is added or removed",
        hides="a rating and that it exists",
        not_hidden=(
            "which users and items there are: both lists are treated as public",
            "several ratings of one person together, except as far as the group lines say",
            _SHARED_PATTERNS,
        ),
        member="rating",
    ),
    Unit.USER: UnitFacts(
        relation="all ratings of one user are added or removed",
        hides="a person: all of one user's ratings together",
        not_hidden=(
            "which items there are: their list is treated as public",
            "that user's own profile, which is shown to that user only and is not released",
            _SHARED_PATTERNS,
        ),
        member="person",
    ),
}
