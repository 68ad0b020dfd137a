"""Text tables: separator, header and rows.

Only the header determines how rows are read. For a file without a header the separator must be
declared, because the first line is data.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Literal

import polars as pl

from taciturn._internal.spelling import option
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.tables.diagnosis import Layout, find_fault, line_fault, not_utf8
from taciturn.tables.fields import NULLS, bare_name, plain_name, stripped
from taciturn.tables.opening import UnreadableTable
from taciturn.tables.sources import readable

PIECE = 2**18
"""Maximum number of rows in memory at a time while reading. For columns of more rows NumPy requests
huge pages, and clearing these for every piece takes longer than the work on it."""

SEPARATORS = ("::", "\t", ",", ";", "|", " ")
"""Separators, in the order in which they are tried on the first line."""

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
    decimal_comma
        True if a comma separates the decimals of a number.
    has_options
        True if the caller can pass reading options, such as an encoding.

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
        *,
        decimal_comma: bool = False,
        has_options: bool = True,
    ) -> None:
        self.path = path
        if header is False and separator is None:
            raise InvalidParameter(
                f"pass {option('separator')} for {path}: without a header its first line is data, "
                "from which the format must not be detected"
            )
        if separator is None:
            separator = find_separator(path, source)
        if separator != "::" and len(separator.encode()) != 1:
            raise InvalidParameter(
                f"{option('separator')} must be one character or ::, got {separator!r}"
            )
        # polars reads a double colon as two separators around an empty column.
        width, self._character = (2, ":") if separator == "::" else (1, separator)
        try:
            row = _first_row(source, self._character)
        except pl.exceptions.ComputeError:
            raise InvalidDocument(not_utf8(source, path, has_options=has_options)) from None
        if not row:
            raise InvalidDocument(f"{path} is empty; check the path")
        if row == [""]:
            raise InvalidDocument(f"the first line of {path} is blank; delete it")
        self.fields = [bare_name(field) for field in row[::width]]
        self._source, self._decimal_comma = source, decimal_comma
        self._layout = Layout(
            path=path,
            separator=separator,
            fields=len(self.fields),
            has_header=header is not False,
            has_options=has_options,
        )
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
            skip_rows=1 if self._layout.has_header else 0,
            separator=self._character,
            schema={name: declared.get(name, pl.String) for name in self._names},
            null_values=NULLS,
            decimal_comma=self._decimal_comma,
            raise_if_empty=False,
            glob=False,
        )
        rows = 0
        for piece in self._batches(frame.select(chosen + checks), is_typed=bool(declared)):
            self._check_lines(piece, rows)
            rows += len(piece)
            yield piece.select(
                stripped(column) if column.dtype == pl.String else column
                for column in piece.select(list(places))
            )

    def _batches(self, frame: pl.LazyFrame, *, is_typed: bool) -> Iterator[pl.DataFrame]:
        """Rows of the file in pieces; a fault is located if all fields are read as text."""
        try:
            yield from frame.collect_batches(chunk_size=PIECE, maintain_order=True)
        except pl.exceptions.PolarsError:
            if is_typed:  # the caller may read the fields as text, to find the one that is wrong
                raise UnreadableTable(f"cannot read the numbers in {self.path}") from None
            raise InvalidDocument(find_fault(self._source, self._layout)) from None

    def line(self, row: int) -> int:
        """Number of the line that holds a row, both counted as usual: rows from 0, lines from 1."""
        return row + 1 + self._layout.has_header

    def short_line(self, row: int) -> str | None:
        """Message for a row whose line is blank or has too few fields; None for any other row."""
        return line_fault(self._source, self.line(row), self._layout)

    def _check_lines(self, piece: pl.DataFrame, rows: int) -> None:
        """Raise if a field of a piece that begins after `rows` rows spans lines or is misread."""
        if piece["\0broken"].any():
            line = self.line(rows + int(piece["\0broken"].arg_true()[0]))
            raise InvalidDocument(
                f"a field in line {line:,} of {self.path} has a line break: close or double the "
                "quote in it, or write the table as Parquet, where line breaks are allowed"
            )
        if self._between and piece["\0single"].any():
            line = self.line(rows + int(piece["\0single"].arg_true()[0]))
            raise InvalidDocument(
                f"line {line:,} of {self.path} has single colons between fields; separate all "
                "fields by ::"
            )


def find_separator(path: str, source: str | bytes, single: Collection[str] | None = None) -> str:
    """Separator in the first line of a text file, outside quotes.

    `single` holds header lines that are one column name in full. A file without a separator has one
    column if `single` is given, and is refused if it is None.
    """
    line = _first_line(source, path)
    if single is not None and plain_name(line) in single:
        return ","
    outside_quotes = re.sub('"[^"]*"', "", line)
    found = next((each for each in SEPARATORS if each in outside_quotes), None)
    if found is None and single is None:
        raise InvalidDocument(
            f"the first line of {path} has no known separator; pass {option('separator')}"
        )
    return found or ","


def _first_line(source: str | bytes, path: str) -> str:
    """First line, unsplit: parsed with a separator that text does not contain."""
    row = _first_row(source, "\x1f", quote=None, encoding="utf8-lossy")
    if not row:
        raise InvalidDocument(f"{path} is empty; check the path")
    if not row[0]:
        raise InvalidDocument(f"the first line of {path} is blank; delete it")
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
