"""Tables as text: separator, first line and rows.

The line with column names decides how all others are read, and nothing else does. A file without
such a line needs its separator declared, because its first line is data.
"""

import io
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Literal

import polars as pl

from taciturn.errors import InvalidDocument, InvalidParameter

PIECE = 2**20
"""Maximum number of rows in memory at a time while reading."""

SEPARATORS = ("::", "\t", ",", ";", "|", " ")
"""Tried in this order on the first line."""

NULLS = ["", "NA", "N/A", "null", "NULL", "None"]
"""Fields that count as missing."""

Types = Mapping[str, type[pl.DataType]]


class TextRows:
    """Rows of a text file with a separator.

    Parameters
    ----------
    path
        The file, as errors name it.
    source
        Where polars reads it from, or the text itself.
    separator, header
        Found from the first line if None. Without a header the separator must be given.

    Attributes
    ----------
    fields
        The fields of the first line: the names of the columns, if there is a header.
    """

    def __init__(
        self,
        path: str,
        source: str | bytes,
        separator: str | None = None,
        header: bool | None = None,
    ) -> None:
        self.path = path
        if header is False and separator is None:
            raise InvalidParameter(
                f"name the separator of {path}: without a header, its first line is data and must "
                "not decide how all others are read; --separator"
            )
        if separator is None:
            separator = find_separator(path, source)
        if separator != "::" and len(separator.encode()) != 1:
            raise InvalidParameter(f"a separator is one character or ::, got {separator!r}")
        # To polars a double colon is two separators with an empty column in between.
        width, self._character = (2, ":") if separator == "::" else (1, separator)
        row = _first_row(source, self._character)
        self.fields = row[::width]
        self._source = source
        self._has_header = header is not False
        # Longer lines are refused when they are read; shorter ones lack something.
        self._names = [f"column_{place}" for place in range(len(row))]
        self._columns = self._names[::width]
        self._between = [name for place, name in enumerate(self._names) if place % width]

    def pieces(
        self, places: Mapping[str, int], types: Types | None = None
    ) -> Iterator[pl.DataFrame]:
        """Yield columns under new names, piece by piece; `places` counts the fields from 0.

        Every column is text, except where `types` says otherwise by the new name. What a column is
        never depends on its rows: one user's odd id would change all others'.
        """
        declared = {self._columns[places[name]]: kind for name, kind in (types or {}).items()}
        chosen = [pl.col(self._columns[place]).alias(name) for name, place in places.items()]
        # In any column, read or not: two stray quotes would swallow all rows between them.
        broken = pl.any_horizontal(pl.col(pl.String).str.contains("\n", literal=True))
        checks = [broken.fill_null(value=False).alias("\0broken")]
        if self._between:
            single = pl.any_horizontal(pl.col(self._between).is_not_null())
            checks.append(single.alias("\0single"))
        frame = pl.scan_csv(
            readable(self._source),
            has_header=False,
            skip_rows=1 if self._has_header else 0,
            separator=self._character,
            schema={name: declared.get(name, pl.String) for name in self._names},
            null_values=NULLS,
            raise_if_empty=False,
            glob=False,
        )
        for piece in frame.select(chosen + checks).collect_batches(
            chunk_size=PIECE, maintain_order=True
        ):
            if piece["\0broken"].any():
                raise InvalidDocument(
                    f"a field of {self.path} has a line break: a quote is not closed or not "
                    "doubled; or write the table as Parquet, where fields may have line breaks"
                )
            if self._between and piece["\0single"].any():
                raise InvalidDocument(f"{self.path} has single colons among its double ones")
            yield piece.select(list(places))


def readable(source: str | bytes) -> str | io.BytesIO:
    """A source as polars takes it."""
    return source if isinstance(source, str) else io.BytesIO(source)


def find_separator(path: str, source: str | bytes, single: Collection[str] | None = None) -> str:
    """Separator in the first line of a text file, outside of quotes.

    `single` holds first lines that name one column as a whole. A file without a separator has one
    column if `single` is given, and is refused if it is None.
    """
    line = _first_line(source, path)
    if single is not None and line.strip('"').lower() in single:
        return ","
    outside_quotes = re.sub('"[^"]*"', "", line)
    found = next((each for each in SEPARATORS if each in outside_quotes), None)
    if found is None and single is None:
        raise InvalidDocument(
            f"the first line of {path} has no known separator; name it with separator"
        )
    return found or ","


def _first_line(source: str | bytes, path: str) -> str:
    """The first line, whatever its separator: read as a table with an unlikely one."""
    row = _first_row(source, "\x1f", quote=None, encoding="utf8-lossy")
    if not row:
        raise InvalidDocument(f"{path} is empty")
    return row[0]


def _first_row(
    source: str | bytes,
    separator: str,
    quote: str | None = '"',
    encoding: Literal["utf8", "utf8-lossy"] = "utf8",
) -> list[str]:
    """Fields of the first line."""
    frame = pl.read_csv(
        readable(source),
        has_header=False,
        separator=separator,
        quote_char=quote,
        encoding=encoding,
        n_rows=1,
        infer_schema=False,
        raise_if_empty=False,
        truncate_ragged_lines=True,
        glob=False,
    )
    fields = frame.row(0) if len(frame) else ()
    return [str(field or "").removeprefix("\ufeff").strip() for field in fields]
