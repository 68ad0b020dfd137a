"""Text tables: separator, header and rows.

Only the header determines how rows are read. For a file without a header the separator must be
declared, because the first line is data.
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
"""Separators, in the order in which they are tried on the first line."""

NULLS = ["", "NA", "N/A", "null", "NULL", "None"]
"""Field contents that count as missing."""

Types = Mapping[str, type[pl.DataType]]


class TextRows:
    """Rows of a text file with a separator.

    Parameters
    ----------
    path
        Path of the file for error messages.
    source
        Path or URL that polars reads, or the text itself.
    separator, header
        Format of the file; detected from the first line if None. Without a header the separator
        is required.

    Attributes
    ----------
    fields
        Fields of the first line: the column names, if there is a header.
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
                f"pass --separator for {path}: without a header its first line is data, from which "
                "the format must not be detected"
            )
        if separator is None:
            separator = find_separator(path, source)
        if separator != "::" and len(separator.encode()) != 1:
            raise InvalidParameter(f"--separator must be one character or ::, got {separator!r}")
        # polars reads a double colon as two separators around an empty column.
        width, self._character = (2, ":") if separator == "::" else (1, separator)
        row = _first_row(source, self._character)
        self.fields = row[::width]
        self._source = source
        self._has_header = header is not False
        # Lines with more fields are refused when read; in shorter ones, fields are missing.
        self._names = [f"column_{place}" for place in range(len(row))]
        self._columns = self._names[::width]
        self._between = [name for place, name in enumerate(self._names) if place % width]

    def pieces(
        self, places: Mapping[str, int], types: Types | None = None
    ) -> Iterator[pl.DataFrame]:
        """Columns under new names, piece by piece; `places` maps names to field indices from 0.

        Columns are text unless `types` gives another type for the new name. The type of a column
        never depends on its rows: otherwise one user's unusual id would affect all other ids.
        """
        declared = {self._columns[places[name]]: kind for name, kind in (types or {}).items()}
        chosen = [pl.col(self._columns[place]).alias(name) for name, place in places.items()]
        # Check all columns, read or not: two stray quotes would merge all rows between them.
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
                    f"a field of {self.path} has a line break: close or double the quote in it, or "
                    "write the table as Parquet, where line breaks are allowed"
                )
            if self._between and piece["\0single"].any():
                raise InvalidDocument(
                    f"{self.path} has single colons between fields; separate all fields by ::"
                )
            yield piece.select(list(places))


def readable(source: str | bytes) -> str | io.BytesIO:
    """Source in a form that polars accepts."""
    return source if isinstance(source, str) else io.BytesIO(source)


def find_separator(path: str, source: str | bytes, single: Collection[str] | None = None) -> str:
    """Separator in the first line of a text file, outside quotes.

    `single` holds header lines that are one column name in full. A file without a separator has one
    column if `single` is given, and is refused if it is None.
    """
    line = _first_line(source, path)
    if single is not None and line.strip('"').lower() in single:
        return ","
    outside_quotes = re.sub('"[^"]*"', "", line)
    found = next((each for each in SEPARATORS if each in outside_quotes), None)
    if found is None and single is None:
        raise InvalidDocument(f"the first line of {path} has no known separator; pass --separator")
    return found or ","


def _first_line(source: str | bytes, path: str) -> str:
    """First line, unsplit: parsed with a separator that text does not contain."""
    row = _first_row(source, "\x1f", quote=None, encoding="utf8-lossy")
    if not row:
        raise InvalidDocument(f"{path} is empty; check the path")
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
