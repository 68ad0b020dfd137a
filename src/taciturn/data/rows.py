"""Rows of a source: columns converted to numbers, and rows with problems.

Trusted code. Messages are for the owner, who has the data: they give the number of bad rows and the
line of the first, but never a value or an id.
"""

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal.spelling import option
from taciturn.data.options import Missing, Outside, ReadingOptions
from taciturn.errors import InvalidDocument
from taciturn.scale import Scale
from taciturn.tables.files import TableFile, row_place

NEEDED = ("user", "item", "rating")
"""Roles without which a row is incomplete."""


class RowLog:
    """Position in a source that is read piece by piece, and the rows with problems so far.

    Attributes
    ----------
    rows
        Number of rows in all pieces begun so far.
    """

    def __init__(self, file: TableFile | None = None) -> None:
        self._file = file
        self.rows = 0
        self._begin = 0  # number of the first row of the current piece
        self._kept: npt.NDArray[np.int64] | None = None  # its rows that are left, if some are not
        self._counts: dict[str, int] = {}
        self._first: dict[str, int] = {}

    def begin(self, length: int) -> None:
        """Begin the next piece."""
        self._begin, self._kept = self.rows, None
        self.rows += length

    def keep(self, is_kept: npt.NDArray[np.bool_]) -> None:
        """Drop all other rows of the current piece."""
        kept = np.flatnonzero(is_kept)
        self._kept = kept if self._kept is None else self._kept[kept]

    def add(self, problem: str, is_bad: npt.NDArray[np.bool_]) -> None:
        """Count rows of the current piece that have a problem."""
        if count := int(is_bad.sum()):
            self._first.setdefault(problem, self._row(int(is_bad.argmax())))
            self._counts[problem] = self._counts.get(problem, 0) + count

    def place(self, row: int) -> str:
        """Place of a row of the source, in words."""
        return self._file.place(row) if self._file else row_place(row)

    def first(self, is_bad: pl.Series) -> str:
        """Place of the first marked row of the current piece."""
        return self.place(self._row(int(is_bad.arg_true()[0])))

    def _row(self, place: int) -> int:
        """Number of a row, given its place among those of the current piece that are left."""
        return self._begin + (place if self._kept is None else int(self._kept[place]))

    def check(self, scale: Scale, options: ReadingOptions) -> None:
        """Raise if rows have problems that the options do not allow, or if no row is left."""
        lacking = [role for role in NEEDED if role in self._counts]
        if lacking and options.missing is Missing.ERROR:
            role = max(lacking, key=lambda role: self._counts[role])
            raise InvalidDocument(self._incomplete(role))
        if "outside" in self._counts and options.outside is Outside.ERROR:
            raise InvalidDocument(
                f"{self._counts['outside']:,} of {self.rows:,} ratings are not on the scale "
                f"{scale}, the first in {self.place(self._first['outside'])}; correct "
                f"{option('scale')}, or pass {option('outside', 'clip')} or "
                f"{option('outside', 'drop')}"
            )

    def check_any_left(self, count: int) -> None:
        """Raise if no ratings are left."""
        if count:
            return
        if self.rows == 0:
            raise InvalidDocument("there are no ratings: the source has no rows; check the source")
        policies = ("missing", NEEDED), ("outside", ("outside",))
        dropping = [name for name, kinds in policies if self._counts.keys() & set(kinds)]
        options = " and ".join(option(name, "drop") for name in dropping)
        raise InvalidDocument(
            f"there are no ratings: {options} dropped all {self.rows:,} rows; check the columns "
            f"and {option('scale')}"
        )

    def _incomplete(self, role: str) -> str:
        """Message for rows without a user, item or rating."""
        first, drop = self._first[role], option("missing", "drop")
        fault = self._file.short_line(first) if self._file else None
        if fault is not None:
            return f"{fault}, or drop all such lines with {drop}"
        return (
            f"rows without a {role}: {self._counts[role]:,}, the first in {self.place(first)}; "
            f"complete them, or drop them with {drop}"
        )


def numbers(column: pl.Series, log: RowLog, *, decimal_comma: bool) -> pl.Series:
    """Ratings as 64-bit floats."""
    if column.dtype == pl.Float64:
        return column
    if column.dtype == pl.Boolean or not (column.dtype.is_numeric() or column.dtype == pl.String):
        raise InvalidDocument(
            "the rating column must hold numbers; choose another with "
            f"{option('columns', 'rating=NAME')}"
        )
    if column.dtype == pl.String and decimal_comma:
        column = column.str.replace(",", ".", literal=True)
    found = column.cast(pl.Float64, strict=False)
    is_bad = found.is_null() & column.is_not_null()
    if is_bad.any():
        advice = "" if decimal_comma else f", or pass {option('decimal_comma', True)} for 4,5"
        raise InvalidDocument(
            f"the rating in {log.first(is_bad)} is not a number; correct it, choose another column "
            f"with {option('columns', 'rating=NAME')}{advice}"
        )
    return found


def whole_numbers(ids: pl.Series, log: RowLog) -> pl.Series:
    """Item ids as integers. Raises if one is not a plain decimal number."""
    found = ids.cast(pl.Int64, strict=False)
    is_odd = found.cast(pl.String).ne_missing(ids)
    if is_odd.any():
        raise InvalidDocument(
            f"the item id in {log.first(is_odd)} is not a whole number in plain decimal form, such "
            f"as 7; correct it, or leave out {option('item_id_type', 'int')}"
        )
    return found


def timestamps(column: pl.Series, log: RowLog) -> npt.NDArray[np.int64]:
    """Timestamps in seconds."""
    if column.has_nulls():
        raise InvalidDocument(
            f"there is no timestamp in {log.first(column.is_null())}; complete it, or read without "
            "timestamps"
        )
    found, is_number = column, pl.repeat(False, len(column), eager=True)
    if found.dtype == pl.String:
        found = column.cast(pl.Float64, strict=False)
        is_number = found.is_not_null()
        found = found if is_number.all() else _dates(column)
    if not (found.dtype.is_numeric() or found.dtype.is_temporal()):
        raise InvalidDocument("the timestamp column must hold numbers or dates; convert it")
    if found.dtype.is_temporal():
        found = found.dt.epoch("s")
    found = found.cast(pl.Int64, strict=False)
    if found.has_nulls():
        is_bad = found.is_null() & ~is_number
        if not is_bad.any():
            raise InvalidDocument(
                "timestamps are numbers in some rows and dates in others; use one form"
            )
        raise InvalidDocument(
            f"the timestamp in {log.first(is_bad)} is neither a number nor a date; correct it"
        )
    return found.to_numpy().copy()


def _dates(column: pl.Series) -> pl.Series:
    """Text as dates with times; null where it is none."""
    try:
        return column.str.to_datetime(strict=False)
    except pl.exceptions.PolarsError:  # no field is a date
        return pl.Series([None], dtype=pl.Datetime).new_from_index(0, len(column))
