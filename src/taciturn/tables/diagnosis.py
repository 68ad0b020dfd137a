"""Faults in text files that polars does not read, found in a second pass.

Messages give the number of a line, which is for the owner of the file, and never its content.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import polars as pl

from taciturn._internal.spelling import option
from taciturn.tables.sources import readable

_PIECE = 2**18
"""Number of lines in memory at a time."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Layout of the lines of a text file.

    Attributes
    ----------
    path
        Path of the file for messages.
    separator
        Separator between fields.
    fields
        Number of fields in the first line.
    has_header
        True if the first line names columns.
    has_options
        True if the caller can pass reading options, such as an encoding.
    """

    path: str
    separator: str
    fields: int
    has_header: bool
    has_options: bool = True


def find_fault(source: str | bytes, layout: Layout) -> str:
    """First fault in the lines of a file that cannot be read, and how to correct it."""
    before = 0
    try:
        for lines in _lines(source, "utf8"):
            if (fault := _fault_in(lines, before, layout)) is not None:
                return fault
            before += len(lines)
    except pl.exceptions.ComputeError:
        return not_utf8(source, layout.path, has_options=layout.has_options)
    separator = f"separated by {layout.separator!r}"
    advice = f"; check {option('separator')}" if layout.has_options else ""
    return f"cannot read {layout.path} as a table {separator}{advice}"


def line_fault(source: str | bytes, number: int, layout: Layout) -> str | None:
    """Fault of one line with missing fields: it is blank or too short. None if it is neither."""
    before = 0
    for lines in _lines(source, "utf8-lossy"):
        if number <= before + len(lines):
            found = lines[number - before - 1]
            return _count_fault(_field_count(found, layout.separator), number, layout)
        before += len(lines)
    return None


def not_utf8(source: str | bytes, path: str, *, has_options: bool = True) -> str:
    """Message for a file that is not UTF-8, with the first such line."""
    before = 0
    for lines in _lines(source, "utf8-lossy"):
        found = lines.str.contains("\ufffd", literal=True).arg_true()
        if len(found):
            before += int(found[0])
            break
        before += len(lines)
    advice = f"pass its {option('encoding')}" if has_options else "save it as UTF-8"
    if has_options:
        examples = " or ".join(option("encoding", name) for name in ("latin-1", "utf-16"))
        advice = f"pass its encoding, such as {examples}"
    return f"line {before + 1:,} of {path} is not UTF-8 text; {advice}"


def _lines(source: str | bytes, encoding: Literal["utf8", "utf8-lossy"]) -> Iterator[pl.Series]:
    """Lines of a file, piece by piece: parsed with a separator that text does not contain."""
    frame = pl.scan_csv(
        readable(source),
        has_header=False,
        separator="\x1f",
        quote_char=None,
        schema={"line": pl.String},
        encoding=encoding,
        truncate_ragged_lines=True,
        raise_if_empty=False,
        glob=False,
    )
    for piece in frame.collect_batches(chunk_size=_PIECE, maintain_order=True):
        yield piece["line"]


def _fault_in(lines: pl.Series, before: int, layout: Layout) -> str | None:
    """First fault in a piece of the file that begins after `before` lines."""
    counts = lines.str.count_matches(layout.separator, literal=True) + 1
    # Later lines may lack fields, which then are missing. polars reads no shorter first line.
    is_odd = (counts > layout.fields) | lines.str.contains('"', literal=True).fill_null(value=False)
    first = int(layout.has_header)
    if before <= first < before + len(lines):
        is_odd = is_odd.scatter(first - before, True)
    for place in is_odd.fill_null(value=False).arg_true().to_list():
        number = before + place + 1
        count = _field_count(lines[place], layout.separator)
        if count is None:
            return (
                f"line {number:,} of {layout.path} has a quote that is not closed; close or double "
                "it, or write the table as Parquet"
            )
        is_first = number == first + 1
        if (count > layout.fields or is_first) and (fault := _count_fault(count, number, layout)):
            return fault
    return None


def _field_count(line: str | None, separator: str) -> int | None:
    """Number of fields in a line: 0 if it is blank, None if a quote is not closed."""
    if not line:
        return 0
    outside_quotes = re.sub('"[^"]*"', "", line)
    return None if '"' in outside_quotes else outside_quotes.count(separator) + 1


def _count_fault(count: int | None, number: int, layout: Layout) -> str | None:
    if count is None or count == layout.fields:
        return None
    if count == 0:
        return f"line {number:,} of {layout.path} is blank; delete it"
    fields = "field" if count == 1 else "fields"
    expected = "the header" if layout.has_header else "the first line"
    return (
        f"line {number:,} of {layout.path} has {count} {fields}, but {expected} has "
        f"{layout.fields}; correct the line (a field that contains {layout.separator!r} needs "
        "quotes)"
    )
