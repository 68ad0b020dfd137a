"""Options for reading ratings, shared by all commands and functions that read a source."""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Literal, TypedDict

from taciturn._internal import validate
from taciturn._internal.spelling import option, parameter
from taciturn.errors import InvalidParameter
from taciturn.scale import Scale
from taciturn.tables.sources import checked_encoding

TEXT_ONLY = ("encoding", "decimal_comma", "item_id_type")
"""Options that apply to text files only; all other sources have types."""


class Duplicates(StrEnum):
    """Policy for pairs that are rated more than once."""

    ERROR = "error"
    LAST = "last"
    MEAN = "mean"


class Missing(StrEnum):
    """Policy for rows without a user, an item or a rating."""

    ERROR = "error"
    DROP = "drop"


class IdType(StrEnum):
    """Type of the item ids in a text file."""

    TEXT = "text"
    INT = "int"


class Outside(StrEnum):
    """Policy for ratings that are not on the scale."""

    ERROR = "error"
    CLIP = "clip"
    DROP = "drop"


class ReadingKeywords(TypedDict, total=False):
    """Reading options that `taciturn.load` takes by name; see `ReadingOptions`."""

    separator: str | None
    header: bool | None
    encoding: str | None
    decimal_comma: bool
    duplicates: Duplicates | Literal["error", "last", "mean"]
    missing: Missing | Literal["error", "drop"]
    outside: Outside | Literal["error", "clip", "drop"]
    item_id_type: IdType | Literal["text", "int"] | None
    max_expansion: float | None


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """Options for reading a source of ratings. Validated when built; holds nothing private.

    Attributes
    ----------
    scale
        Declared scale; never inferred from the data. None only for a named set, which has its own.
    columns
        Column names by role, {"user": …, "item": …, …}, where they are not recognised.
    separator, header
        Format of a text file. If None, both are detected from a header line. For a file without a
        header, pass `header=False` and the separator: its first line is a private rating.
    encoding
        Encoding of a text file, such as latin-1. Default: UTF-8. Never detected.
    decimal_comma
        Whether the ratings in a text file are written with a decimal comma, as in 4,5.
    duplicates
        Pairs rated more than once: `error`, `last` (by timestamp if timestamps are read, else by
        row) or `mean`.
    missing
        Rows without a user, item or rating: `error` or `drop`.
    outside
        Ratings not on the scale: `error`, `clip` or `drop`.
    timestamps
        Whether to keep timestamps, at 8 bytes per rating.
    item_id_type
        Type of the item ids in a text file: `text` (the default) or `int`. User ids in a text file
        are always text. All other sources keep their types.
    max_expansion
        Maximum unpacked size of a compressed text file or a Parquet file, in multiples of its own
        size. Default: 100. Up to 64 MiB are always accepted.
    """

    scale: Scale | None = None
    columns: dict[str, str] | None = None
    separator: str | None = None
    header: bool | None = None
    encoding: str | None = None
    decimal_comma: bool = False
    duplicates: Duplicates = Duplicates.ERROR
    missing: Missing = Missing.ERROR
    outside: Outside = Outside.ERROR
    timestamps: bool = False
    item_id_type: IdType | None = None
    max_expansion: float | None = None

    def __post_init__(self) -> None:
        checked: dict[str, object] = {
            "scale": _scale(self.scale),
            "columns": _columns(self.columns),
            "duplicates": validate.choice("duplicates", self.duplicates, Duplicates),
            "missing": validate.choice("missing", self.missing, Missing),
            "outside": validate.choice("outside", self.outside, Outside),
        }
        validate.flag("timestamps", self.timestamps)
        validate.flag("decimal_comma", self.decimal_comma)
        if self.header is not None:
            validate.flag("header", self.header)
        if self.separator is not None:
            validate.instance("separator", self.separator, str, "such as ;")
        if self.encoding is not None:
            checked["encoding"] = checked_encoding(self.encoding)
        if self.item_id_type is not None:
            checked["item_id_type"] = validate.choice("item_id_type", self.item_id_type, IdType)
        if self.max_expansion is not None:
            checked["max_expansion"] = validate.positive(
                "max_expansion", self.max_expansion, "the default is 100"
            )
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, **given: Any) -> "ReadingOptions":
        """Options from keyword arguments; the scale, columns and choices may be given as text."""
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise InvalidParameter(
                    f"there is no reading option {name!r}; choose from {', '.join(known)}"
                )
        return cls(**given)

    def check_named(self, source: str) -> None:
        """Raise if an option is set that a named set defines itself."""
        defaults = {field.name: field.default for field in fields(self)}
        for name in ("scale", "columns", "separator", "header", *TEXT_ONLY):
            if getattr(self, name) != defaults[name]:
                given = option(name, self.header) if name == "header" else option(name)
                raise InvalidParameter(
                    f"{source} defines its own {name.replace('_', ' ')}; leave out {given}"
                )


def _scale(scale: object) -> Scale | None:
    if not isinstance(scale, Scale | str | None):
        raise InvalidParameter(
            f"{parameter('scale')} must be a Scale or text such as 1:5, got {validate.shown(scale)}"
        )
    return Scale.parse(scale) if isinstance(scale, str) else scale


def _columns(columns: object) -> dict[str, str] | None:
    """Column names by role, from a dict or from text such as user=NAME,item=NAME,rating=NAME."""
    if columns is None:
        return None
    if isinstance(columns, dict) and all(isinstance(name, str) for name in columns.values()):
        return columns
    if not isinstance(columns, str):
        raise InvalidParameter("columns must map roles to column names, such as {'user': 'reader'}")
    pairs = [part.partition("=") for part in columns.split(",")]
    chosen = {role.strip(): name.strip() for role, _, name in pairs}
    if not all(name for name in chosen.values()) or len(chosen) != len(pairs):
        raise InvalidParameter(
            f"{parameter('columns')} must have the form user=NAME,item=NAME,rating=NAME, got "
            f"{columns!r}"
        )
    return chosen
