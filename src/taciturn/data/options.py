"""How ratings are read: one object for every command and function that reads a source."""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from taciturn._internal import validate
from taciturn.errors import InvalidParameter
from taciturn.scale import Scale


class Duplicates(StrEnum):
    """What to do when a user rated an item more than once."""

    ERROR = "error"
    LAST = "last"
    MEAN = "mean"


class Missing(StrEnum):
    """What to do with rows that lack a user, an item or a rating."""

    ERROR = "error"
    DROP = "drop"


class IdType(StrEnum):
    """Type of ids in a text file, where every field is text to begin with."""

    TEXT = "text"
    INT = "int"


class Outside(StrEnum):
    """What to do with ratings that are not on the scale."""

    ERROR = "error"
    CLIP = "clip"
    DROP = "drop"


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How to read a source of ratings. Validated when built; holds nothing private.

    Attributes
    ----------
    scale
        The declared scale. It is never read off the data. None only for a named set, which brings
        its own.
    columns
        Which column is which, where the names are not understood: {"user": …, "item": …, …}.
    separator, header
        Of a text file. Both are found from a first line with the names of columns. Without one,
        `header=False` and the separator must be given: the first line is then a private rating.
    duplicates
        Pairs rated more than once: `error`, `last` (by timestamp if kept, else by row) or `mean`.
    missing
        Rows without a user, item or rating: `error` or `drop`.
    outside
        Ratings not on the scale: `error`, `clip` or `drop`.
    timestamps
        Whether to keep them; they cost 8 bytes a rating.
    item_id_type
        Type of the item ids in a text file: `text` (the default) or `int`. User ids from a text
        file are always text; everything but text files keeps its types.
    """

    scale: Scale | None = None
    columns: dict[str, str] | None = None
    separator: str | None = None
    header: bool | None = None
    duplicates: Duplicates = Duplicates.ERROR
    missing: Missing = Missing.ERROR
    outside: Outside = Outside.ERROR
    timestamps: bool = False
    item_id_type: IdType | None = None

    def __post_init__(self) -> None:
        checked: dict[str, object] = {
            "scale": _scale(self.scale),
            "columns": _columns(self.columns),
            "duplicates": validate.choice("duplicates", self.duplicates, Duplicates),
            "missing": validate.choice("missing", self.missing, Missing),
            "outside": validate.choice("outside", self.outside, Outside),
        }
        if self.item_id_type is not None:
            checked["item_id_type"] = validate.choice("item_id_type", self.item_id_type, IdType)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, **given: Any) -> "ReadingOptions":
        """Options as a user gives them, where scale, columns and choices may be text."""
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise InvalidParameter(
                    f"there is no reading option {name!r}; there are {', '.join(known)}"
                )
        return cls(**given)

    def check_named(self, source: str) -> None:
        """Raise if an option is given that a named set decides."""
        for name in ("columns", "header", "item_id_type", "scale", "separator"):
            if getattr(self, name) is not None:
                raise InvalidParameter(f"{source} brings its own {name}; leave it out")


def _scale(scale: object) -> Scale | None:
    if not isinstance(scale, Scale | str | None):
        raise InvalidParameter(f"a scale is a Scale or text such as 1:5, got {scale!r}")
    return Scale.parse(scale) if isinstance(scale, str) else scale


def _columns(columns: object) -> dict[str, str] | None:
    """Map from roles to names, which may be written user=NAME,item=NAME,rating=NAME."""
    if isinstance(columns, dict | None):
        return columns
    if not isinstance(columns, str):
        raise InvalidParameter("columns must map roles to names, such as {'user': 'reader'}")
    pairs = [part.partition("=") for part in columns.split(",")]
    chosen = {role.strip(): name.strip() for role, _, name in pairs}
    if not all(name for name in chosen.values()) or len(chosen) != len(pairs):
        raise InvalidParameter(
            f"columns are written user=NAME,item=NAME,rating=NAME, got {columns!r}"
        )
    return chosen
