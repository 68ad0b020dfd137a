"""Privacy units: the change between neighbouring datasets, and so what a guarantee protects.

A guarantee means nothing without its unit.
"""

from enum import StrEnum
from typing import Literal

from taciturn.accounting import text


class Unit(StrEnum):
    """Privacy unit: replace one `value`, or add or remove one `rating` or one `user`."""

    VALUE = "value"
    RATING = "rating"
    USER = "user"

    @property
    def facts(self) -> text.UnitFacts:
        """Neighbouring relation of this unit, and what it does and does not protect, in words."""
        return text.UNITS[self]


UnitName = Unit | Literal["value", "rating", "user"]
"""Privacy unit, or its name as callers write it."""

DEFAULT_UNIT = Unit.RATING
"""Unit of a training for which none is chosen, if the solver supports it."""
