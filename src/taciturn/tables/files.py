"""Files with columns for given roles, read in pieces. Used for training data."""

import os
from collections.abc import Iterator

import polars as pl

from taciturn._internal.forks import check_fork
from taciturn._internal.spelling import option
from taciturn.errors import InvalidDocument
from taciturn.tables.abort_guard import abort_guard
from taciturn.tables.columns import Roles, find_columns, is_header
from taciturn.tables.expansion import ExpansionLimit
from taciturn.tables.opening import (
    Explained,
    checked_path,
    is_parquet,
    scan_parquet,
)
from taciturn.tables.sources import text_source
from taciturn.tables.text import PIECE, TextRows, Types


class TableFile:
    """A file with columns for given roles.

    No row of data affects how others are read: the format is detected from the header, or the
    caller declares it.

    Parameters
    ----------
    path
        A text or Parquet file, a folder or glob of Parquet files, or a URL that polars reads.
    roles
        Columns to look for; a text file without a header has them in this order.
    columns
        Column names by role, where they are not recognised.
    separator, header
        Format of a text file; detected from its header line if None.
    encoding, decimal_comma
        Encoding of a text file, UTF-8 if None, and whether its numbers have a decimal comma.
    content
        The text, if it is already unpacked.
    max_expansion
        Maximum unpacked size of a compressed text file or of a Parquet file; see `ExpansionLimit`.

    Attributes
    ----------
    places
        Column index of each role that the file has.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        roles: Roles,
        columns: dict[str, str] | None = None,
        separator: str | None = None,
        header: bool | None = None,
        *,
        encoding: str | None = None,
        decimal_comma: bool = False,
        content: bytes | None = None,
        max_expansion: float | None = None,
    ) -> None:
        check_fork()
        self.path = checked_path(path)
        self._text: TextRows | None = None
        with Explained(self.path):
            if content is None and is_parquet(self.path, header):
                self._frame = scan_parquet(self.path, max_expansion, has_option=True)
                with abort_guard(self.path):
                    self._names = self._frame.collect_schema().names()
                found = find_columns(self._names, roles, columns)
                self.places = {role: self._names.index(name) for role, name in found.items()}
            else:
                limit = ExpansionLimit(self.path, max_expansion, has_option=True)
                source = text_source(self.path, limit, encoding) if content is None else content
                self._text = TextRows(
                    self.path, source, separator, header, decimal_comma=decimal_comma
                )
                self.places = _text_places(self._text, roles, columns, header)

    @property
    def is_text(self) -> bool:
        """True for a text file, whose fields have no types of their own."""
        return self._text is not None

    def place(self, row: int) -> str:
        """Place of a row, counted from 0, in words."""
        if self._text is None:
            return row_place(row)
        return f"line {self._text.line(row):,}"

    def short_line(self, row: int) -> str | None:
        """Message for a row of a text file whose line is blank or has too few fields."""
        return self._text.short_line(row) if self._text else None

    def pieces(self, roles: list[str], types: Types | None = None) -> Iterator[pl.DataFrame]:
        """Columns of the given roles, piece by piece.

        Columns of a text file are text unless `types` gives another type for their role.
        """
        places = {role: self.places[role] for role in roles}
        with Explained(self.path):
            if self._text is not None:
                known = {role: kind for role, kind in (types or {}).items() if role in places}
                yield from self._text.pieces(places, known)
                return
            chosen = [pl.col(self._names[place]).alias(role) for role, place in places.items()]
            frame = self._frame.select(chosen)
            with abort_guard(self.path):
                yield from frame.collect_batches(chunk_size=PIECE, maintain_order=True)


def row_place(row: int) -> str:
    """Place of a row of a table without lines, in words."""
    return f"row index {row:,}"


def _text_places(
    text: TextRows, roles: Roles, columns: dict[str, str] | None, header: bool | None
) -> dict[str, int]:
    """Field index of each role, from the header or in the order of the roles."""
    fields = text.fields
    needed = [role.name for role in roles if role.is_required]
    listed = f"{', '.join(needed[:-1])} and {needed[-1]}"
    if header is not False:
        if header is None and columns is None and not is_header(fields, roles):
            raise InvalidDocument(
                f"the first line of {text.path} does not name columns for {listed}; name them with "
                f"{option('columns')}, or pass {option('header', False)} and {option('separator')}"
            )
        found = find_columns(fields, roles, columns, quote=False)
        return {role: fields.index(name) for role, name in found.items()}
    if len(fields) < len(needed):
        columns_found = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
        raise InvalidDocument(
            f"{text.path} has {columns_found}; expected {listed}; check {option('separator')}"
        )
    return {role.name: place for place, role in enumerate(roles[: len(fields)])}
