"""Parameter validation; each function returns the value as a plain Python type or raises."""

import contextlib
import math
import numbers
import re
from datetime import date, datetime
from enum import StrEnum
from os import PathLike, fspath
from pathlib import Path, PurePath
from typing import Any, TypeVar

from taciturn._internal.spelling import parameter
from taciturn.errors import InvalidParameter

Choice = TypeVar("Choice", bound=StrEnum)
Kind = TypeVar("Kind")

SOURCE_NAME = "[A-Za-z0-9.:_+-]{1,64}"
"""Pattern of the name of a public input in a certificate: without blanks, so never a sentence."""

COUNT_MAX = 10**12
"""Maximum count; sums with this many terms are still far from overflow."""


def shown(value: object) -> str:
    """Representation of a parameter for an error message, shortened if it is long.

    Of anything but a number or text only the type is shown: a table may hold private values.
    """
    if not isinstance(value, str | int | float | numbers.Number | PurePath | None):
        return f"an object of type {type(value).__name__}"
    if isinstance(value, int) and value.bit_length() > 256:
        return "a whole number of more than 70 digits"  # Python does not print the largest ones
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:40]}…"


def instance(name: str, value: object, kind: type[Kind], hint: str) -> Kind:
    """Validated object of a class; the hint says how to make one."""
    if isinstance(value, kind):
        return value
    raise InvalidParameter(f"{name} must be of class {kind.__name__}, got {shown(value)}; {hint}")


def _real(name: str, value: object, expected: str) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidParameter(f"{parameter(name)} must be {expected}, got {shown(value)}")
    try:
        return float(value)
    except OverflowError:
        raise InvalidParameter(
            f"{parameter(name)} must be {expected}, got a number too large for a float"
        ) from None


def finite(name: str, value: object, hint: str) -> float:
    """Validated finite number, as a float."""
    number = _real(name, value, "a finite number")
    if not math.isfinite(number):
        raise InvalidParameter(
            f"{parameter(name)} must be a finite number, got {shown(value)}; {hint}"
        )
    return number


def positive(name: str, value: object, hint: str) -> float:
    """Validated positive finite number, as a float."""
    expected = "a positive finite number"
    number = _real(name, value, expected)
    if not (math.isfinite(number) and number > 0):
        raise InvalidParameter(f"{parameter(name)} must be {expected}, got {shown(value)}; {hint}")
    return number


def probability(name: str, value: object, hint: str) -> float:
    """Validated number strictly between 0 and 1, as a float."""
    expected = "a number strictly between 0 and 1"
    number = _real(name, value, expected)
    if not 0 < number < 1:
        raise InvalidParameter(f"{parameter(name)} must be {expected}, got {shown(value)}; {hint}")
    return number


def small(name: str, value: object, hint: str) -> float:
    """Validated number of at least 0 and below 1/2, as a float."""
    expected = "a number of at least 0 and below 0.5"
    number = _real(name, value, expected)
    if not 0 <= number < 0.5:
        raise InvalidParameter(f"{parameter(name)} must be {expected}, got {shown(value)}; {hint}")
    return number


def positive_integer(name: str, value: object, hint: str) -> int:
    """Validated whole number from 1 to `COUNT_MAX`, as an int."""
    expected = f"a whole number from 1 to {COUNT_MAX:,}"
    if not isinstance(value, bool) and isinstance(value, numbers.Integral):
        number = int(value)
        if 1 <= number <= COUNT_MAX:
            return number
    raise InvalidParameter(f"{parameter(name)} must be {expected}, got {shown(value)}; {hint}")


def day(name: str, value: object) -> date:
    """Validated calendar day, given as a date or as text in the form YYYY-MM-DD."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if isinstance(value, str) and re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        with contextlib.suppress(ValueError):
            return date.fromisoformat(value)
    raise InvalidParameter(
        f"{parameter(name)} must be a day in the form YYYY-MM-DD, such as 2026-01-31, got "
        f"{shown(value)}"
    )


def text(name: str, value: object, hint: str) -> str:
    """Validated line of printable text; control characters could forge output."""
    if not (isinstance(value, str) and value.strip() and value.isprintable()):
        raise InvalidParameter(
            f"{parameter(name)} must be one line of printable text, got {shown(value)}; {hint}"
        )
    return value


def flag(name: str, value: object) -> bool:
    """Validated True or False; a text such as "no" would count as true."""
    if isinstance(value, bool):
        return value
    raise InvalidParameter(f"{name} must be True or False, got {shown(value)}")


def several(name: str, value: object, hint: str) -> tuple[Any, ...]:
    """Validated list or tuple, as a tuple."""
    if isinstance(value, list | tuple):
        return tuple(value)
    raise InvalidParameter(f"{name} must be a list, got {shown(value)}; {hint}")


def path(name: str, value: object) -> Path:
    """Validated path, given as text or as a path object."""
    if isinstance(value, str) or (isinstance(value, PathLike) and isinstance(fspath(value), str)):
        return Path(value)
    raise InvalidParameter(f"{name} must be a path, as text or as a Path, got {shown(value)}")


def choice(name: str, value: object, kind: type[Choice]) -> Choice:
    """Validated choice: the member of `kind` that `value` is or names."""
    if isinstance(value, str) and value in list(kind):
        return kind(value)
    raise InvalidParameter(
        f"{parameter(name)} must be one of {', '.join(kind)}, got {shown(value)}"
    )
