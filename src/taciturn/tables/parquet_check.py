"""Structure of a Parquet file, checked before polars reads it.

polars allocates what a file states and aborts the process if that fails. This check reads the
footer and the headers of all pages, which are small, and refuses sizes, positions and counts that
do not fit the file or each other. It does not see inside pages: damage there may still abort the
reader; see `abort_guard`.
"""

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taciturn.errors import InvalidDocument
from taciturn.tables.expansion import ExpansionLimit
from taciturn.tables.thrift import CutShort, Damaged, Reader

FOOTER_MAX = 2**26
"""Maximum size of a footer in bytes; a footer of a thousand row groups has about 1 MB."""

_GROUPS_MAX, _SCHEMA_MAX = 2**20, 2**14

_MAGIC = b"PAR1"
_HEADER_FIRST, _HEADER_MAX = 2**8, 2**24
"""Bytes of a page header to read at first and at most; statistics of text may be long."""

_TYPE, _WIDTH, _REPETITION, _CHILDREN = 1, 2, 3, 5
_SCHEMA = {_TYPE: None, _WIDTH: None, _REPETITION: None, _CHILDREN: None}
# Field 1 is the path of another file with the column, which is refused as it is no number.
_CHUNK = {1: None, 4: None, 5: None, 6: None, 7: None}
_COLUMN = {1: None, 4: None, 5: None, 6: None, 7: None, 9: None, 10: None, 11: None, 14: None}
_GROUP = {1: [_CHUNK | {3: _COLUMN}], 2: None, 3: None}
_FOOTER = {2: [_SCHEMA], 3: None, 4: [_GROUP]}
_DATA = {1: None, 2: None}
_DATA_2 = {1: None, 2: None, 3: None, 4: None, 5: None, 6: None}
_PAGE = {1: None, 2: None, 3: None, 5: _DATA, 7: _DATA, 8: _DATA_2}

_WIDTHS = {1: 4, 2: 8, 3: 12, 4: 4, 5: 8, 6: 4}
"""Bytes of a value by physical type; of a text at least those of its length."""

_FIXED, _TYPES, _CODECS = 7, range(8), range(8)
_PLAIN, _ENCODINGS = 0, {0, 2, 3, 4, 5, 6, 7, 8, 9}
_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_2 = range(4)
_REQUIRED, _OPTIONAL, _REPEATED = range(3)


@dataclass(frozen=True)
class _Leaf:
    """Column of the schema. `is_flat` is true outside lists, `is_full` without missing values."""

    kind: int
    width: int
    is_flat: bool
    is_full: bool


def check_parquet(path: str, limit: ExpansionLimit | None = None) -> None:
    """Raise unless a local Parquet file has a sound structure and unpacks within the limit."""
    limit = limit or ExpansionLimit(path)
    try:
        with Path(path).open("rb", buffering=0) as file:
            _check_file(file, limit)
    except Damaged as damage:
        reason = str(damage) or "it ends too early"
        raise InvalidDocument(
            f"cannot read {path} as a table: it is not a Parquet file or is damaged ({reason}); "
            "write it again"
        ) from None


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Damaged(otherwise)


def _check_file(file: io.FileIO, limit: ExpansionLimit) -> None:
    size = file.seek(0, os.SEEK_END)
    _require(size >= 12, "it is too short")
    end = _read(file, size - 8, 8)
    _require(_read(file, 0, 4) == end[4:] == _MAGIC, "it does not begin and end with PAR1")
    length = int.from_bytes(end[:4], "little")
    _require(length <= min(size - 12, FOOTER_MAX), "its footer is too long")
    footer = Reader(_read(file, size - 8 - length, length)).struct(_FOOTER)
    leaves = _leaves(footer.get(2, []))
    groups = footer.get(4, [])
    _require(len(groups) <= _GROUPS_MAX, "it has too many row groups")
    rows = unpacked = 0
    pages = _Pages(file, size - 8 - length)
    for group in groups:
        count = group.get(3, 0)
        rows += count
        chunks = group.get(1, [])
        _require(len(chunks) == len(leaves), "a row group lacks columns")
        for leaf, chunk in zip(leaves, chunks, strict=True):
            unpacked += pages.check(leaf, chunk, count)
            limit.check(unpacked)
    _require(rows == footer.get(3, 0), "the rows of its row groups do not add up")


def _leaves(schema: list[dict[int, Any]]) -> list[_Leaf]:
    """Columns of a schema, which lists a tree depth first."""
    _require(0 < len(schema) <= _SCHEMA_MAX, "its schema is empty or too long")
    found: list[_Leaf] = []
    open_nodes = [(schema[0].get(_CHILDREN, 0), True, True)]
    for element in schema[1:]:
        while open_nodes and open_nodes[-1][0] == 0:
            open_nodes.pop()
        _require(bool(open_nodes), "its schema is not a tree")
        left, is_flat, is_full = open_nodes[-1]
        open_nodes[-1] = (left - 1, is_flat, is_full)
        repetition = element.get(_REPETITION, 0)
        _require(repetition <= _REPEATED, "its schema has an unknown repetition")
        is_flat, is_full = is_flat and repetition != _REPEATED, is_full and repetition == _REQUIRED
        if element.get(_CHILDREN):
            open_nodes.append((element.get(_CHILDREN, 0), is_flat, is_full))
            continue
        kind = element.get(_TYPE, 0)
        _require(kind in _TYPES, "its schema has an unknown type")
        width = element.get(_WIDTH, 0) if kind == _FIXED else _WIDTHS.get(kind, 0)
        found.append(_Leaf(kind, width, is_flat, is_full))
    _require(all(left == 0 for left, _, _ in open_nodes), "its schema is not a tree")
    return found


class _Pages:
    """Pages of a file, which lie between its first bytes and its footer."""

    def __init__(self, file: io.FileIO, end: int) -> None:
        self._file, self._end = file, end

    def check(self, leaf: _Leaf, chunk: dict[int, Any], rows: int) -> int:
        """Size of a column chunk in memory, in bytes. Raises unless its pages are sound."""
        for offset, length in ((4, 5), (6, 7)):  # indexes of pages and of their statistics
            self._require_inside(chunk.get(offset, 4), chunk.get(length, 0))
        column = chunk.get(3) or {}
        _require(column.get(1, 0) == leaf.kind, "a column is not of the type in the schema")
        _require(column.get(4, 0) in _CODECS, "a column has an unknown compression")
        values, size = column.get(5, 0), column.get(7, 0)
        if leaf.is_flat:
            _require(values == rows, "a column has more or fewer values than rows")
        if size == 0 and values == 0:
            return 0
        # The first page is a dictionary, if there is one; 0 stands for none.
        first = min(filter(None, (column.get(9, 0), column.get(11, 0))), default=0)
        self._require_inside(first, size)
        for offset in (10, 14):
            self._require_inside(column.get(offset, 4), 0)
        unpacked = total = 0
        position, end = first, first + size
        while position < end:
            header, page = self._header(position, end)
            is_dictionary = header.get(1, 0) == _DICTIONARY_PAGE
            _require(not is_dictionary or position == first, "a dictionary is not the first page")
            total += _check_page(header, leaf, is_packed=column.get(4, 0) != 0)
            _require(total <= values, "pages have more values than their column")
            unpacked += header.get(2, 0)
            position = page + header.get(3, 0)
            _require(position <= end, "a page is longer than its column")
        _require(total == values, "pages have fewer values than their column")
        # Runs of equal values take almost no bytes in a page.
        return max(unpacked, int(values) * max(leaf.width, 1))

    def _require_inside(self, offset: int, size: int) -> None:
        is_inside = offset >= 4 and size >= 0 and offset + size <= self._end
        _require(is_inside, "a column lies outside the file")

    def _header(self, position: int, end: int) -> tuple[dict[int, Any], int]:
        """Header of the page at a position, and the position behind it."""
        size = _HEADER_FIRST
        while True:
            part = min(size, end - position)
            reader = Reader(_read(self._file, position, part))
            try:
                return reader.struct(_PAGE), position + reader.position
            except CutShort:
                if part < size or size >= _HEADER_MAX:
                    raise
                size *= 16


def _check_page(header: dict[int, Any], leaf: _Leaf, *, is_packed: bool) -> int:
    """Number of values in a data page, 0 for other pages. Raises unless its header is sound."""
    kind, unpacked, packed = header.get(1, 0), header.get(2, 0), header.get(3, 0)
    _require(is_packed or unpacked == packed, "the size of a page is wrong")
    if kind == _INDEX_PAGE:
        return 0
    names = {_DATA_PAGE: 5, _DICTIONARY_PAGE: 7, _DATA_PAGE_2: 8}
    _require(kind in names, "a page has an unknown type")
    data = header.get(names[kind]) or {}
    values, encoding = data.get(1, 0), data.get(4 if kind == _DATA_PAGE_2 else 2, 0)
    _require(encoding in _ENCODINGS, "a page has an unknown encoding")
    is_dictionary = kind == _DICTIONARY_PAGE
    levels = 0
    if kind == _DATA_PAGE_2:
        levels = data.get(5, 0) + data.get(6, 0)
        _require(levels <= min(unpacked, packed), "the levels of a page are too long")
        _require(data.get(2, 0) <= values, "a page has more missing values than values")
        rows = data.get(3, 0)
        _require(rows <= values and (not leaf.is_flat or rows == values), "a page has wrong rows")
    if is_dictionary or (encoding == _PLAIN and leaf.is_full):
        present = values * leaf.width if leaf.width else -(-values // 8)
        _require(present <= unpacked - levels, "a page has more values than bytes for them")
    return 0 if is_dictionary else values


def _read(file: io.FileIO, position: int, size: int) -> bytes:
    file.seek(position)
    return file.read(size)
