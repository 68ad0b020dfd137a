"""Layout of the Parquet files of a release: every byte that is not a value.

Given the number of rows, the columns and the type of the ids, all of these bytes are determined. A
writer writes them, and a reader compares. docs/release-format.md specifies the layout.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

import numpy as np

from taciturn.release import thrift
from taciturn.release.thrift import Value, int32, int64, varint

GROUP_ROWS = 2**16
"""Rows of a row group; the last one may have fewer."""

PAGE_MAX = 2**31 - 1
"""Maximum size of a page in bytes: its header states the size in 32 bits."""

MAGIC = b"PAR1"

_WRITER = "taciturn version 1.0.0"
_INT64, _FLOAT, _BYTE_ARRAY = 2, 4, 6
_REQUIRED, _REPEATED = 0, 2
_PLAIN, _RLE = 0, 3
_UTF8, _LIST, _UINT64 = 0, 3, 14
_UNCOMPRESSED = 0

Widths = Mapping[str, int | None]
"""Columns of 32-bit floats by name: length of their lists, None for a column of single numbers."""


class IdType(Enum):
    """Type of a column of ids: its physical type and its annotations."""

    SIGNED = (_INT64, None)
    UNSIGNED = (
        _INT64,
        {
            6: int32(_UINT64),
            10: thrift.struct({10: thrift.struct({1: thrift.int8(64), 2: thrift.boolean(False)})}),
        },
    )
    TEXT = (_BYTE_ARRAY, {6: int32(_UTF8), 10: thrift.struct({1: thrift.struct({})})})


@dataclass(frozen=True, kw_only=True)
class Column:
    """Column as the footer describes it; `width` is the length of its lists, None without lists."""

    path: tuple[str, ...]
    physical: int
    width: int | None

    def entries(self, rows: int) -> int:
        """Number of entries in a page, which an empty list counts as."""
        return rows if self.width is None else rows * max(self.width, 1)

    def levels(self, rows: int) -> bytes:
        """Repetition and definition levels of a page; empty without lists."""
        return b"" if self.width is None else _levels(rows, self.width)

    def page_header(self, rows: int, size: int) -> bytes:
        """Header of a page with `size` bytes of levels and values."""
        data = {1: int32(self.entries(rows)), 2: int32(_PLAIN), 3: int32(_RLE), 4: int32(_RLE)}
        _, content = thrift.struct(
            {1: int32(0), 2: int32(size), 3: int32(size), 5: thrift.struct(data)}
        )
        return content


PAGE_SIZE_AT = 3
"""Position in a page header of the size of the page, a varint of twice the size."""


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Column chunk, which is one page with its header."""

    offset: int
    size: int
    rows: int


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Columns of a file: ids, then numbers and lists of numbers."""

    id_name: str
    id_type: IdType
    widths: Widths

    @property
    def id_column(self) -> Column:
        """Column of ids."""
        return Column(path=(self.id_name,), physical=self.id_type.value[0], width=None)

    @property
    def number_columns(self) -> dict[str, Column]:
        """Other columns, by name."""
        return {
            name: Column(
                path=(name,) if width is None else (name, "list", "element"),
                physical=_FLOAT,
                width=width,
            )
            for name, width in self.widths.items()
        }

    def footer(self, groups: list[list[Chunk]], rows: int) -> bytes:
        """Footer with its length and the magic bytes, for row groups of at least one row."""
        columns = [self.id_column, *self.number_columns.values()]
        row_groups = thrift.sequence([_row_group(columns, chunks) for chunks in groups])
        metadata = self._head() | {3: int64(rows), 4: row_groups, 6: thrift.text(_WRITER)}
        _, content = thrift.struct(metadata)
        return content + len(content).to_bytes(4, "little") + MAGIC

    def footer_start(self) -> bytes:
        """First bytes of the footer: the schema, which shows the type of the ids."""
        _, content = thrift.struct(self._head())
        return content[:-1]

    def _head(self) -> dict[int, Value]:
        return {1: int32(1), 2: self._schema()}

    def _schema(self) -> Value:
        physical, annotations = self.id_type.value
        elements: list[dict[int, Value]] = [
            {4: thrift.text("schema"), 5: int32(1 + len(self.widths))},
            _leaf(physical, self.id_name) | (annotations or {}),
        ]
        for name, width in self.widths.items():
            elements += [_leaf(_FLOAT, name)] if width is None else _list_schema(name)
        return thrift.sequence([thrift.struct(element) for element in elements])


def row_groups(rows: int) -> Iterator[slice]:
    """Rows of each row group."""
    for begin in range(0, rows, GROUP_ROWS):
        yield slice(begin, min(begin + GROUP_ROWS, rows))


def _leaf(physical: int, name: str) -> dict[int, Value]:
    return {1: int32(physical), 3: int32(_REQUIRED), 4: thrift.text(name)}


def _list_schema(name: str) -> list[dict[int, Value]]:
    """Standard three levels of a required list of required numbers."""
    outer = {3: int32(_REQUIRED), 4: thrift.text(name), 5: int32(1)}
    annotations = {6: int32(_LIST), 10: thrift.struct({3: thrift.struct({})})}
    middle = {3: int32(_REPEATED), 4: thrift.text("list"), 5: int32(1)}
    return [outer | annotations, middle, _leaf(_FLOAT, "element")]


def _row_group(columns: list[Column], chunks: list[Chunk]) -> Value:
    described = []
    for column, chunk in zip(columns, chunks, strict=True):
        metadata = {
            1: int32(column.physical),
            2: thrift.sequence([int32(_PLAIN), int32(_RLE)]),
            3: thrift.sequence([thrift.text(part) for part in column.path]),
            4: int32(_UNCOMPRESSED),
            5: int64(column.entries(chunk.rows)),
            6: int64(chunk.size),
            7: int64(chunk.size),
            9: int64(chunk.offset),
        }
        described.append(thrift.struct({2: int64(0), 3: thrift.struct(metadata)}))
    size = sum(chunk.size for chunk in chunks)
    return thrift.struct({1: thrift.sequence(described), 2: int64(size), 3: int64(chunks[0].rows)})


@lru_cache(maxsize=4)
def _levels(rows: int, width: int) -> bytes:
    """Repetition levels as one bit-packed run, definition levels as one run of equal values."""
    repeats = np.ones((rows, max(width, 1)), dtype=np.uint8)
    repeats[:, 0] = 0
    packed = np.packbits(repeats, bitorder="little").tobytes()
    repetition = varint(len(packed) << 1 | 1) + packed
    definition = varint(repeats.size << 1) + bytes([width > 0])
    return b"".join(len(part).to_bytes(4, "little") + part for part in (repetition, definition))
