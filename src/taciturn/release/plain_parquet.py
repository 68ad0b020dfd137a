"""Writer and reader of the plain Parquet files of a release.

A table has exactly one representation, which any Parquet reader can read. This reader decodes
nothing but values: it builds all other bytes itself and compares. It allocates at most about ten
times the size of the file, and whatever it accepts, `encode` writes again byte for byte.
"""

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from taciturn.errors import InvalidDocument
from taciturn.release.layout import (
    GROUP_ROWS,
    MAGIC,
    PAGE_MAX,
    PAGE_SIZE_AT,
    Chunk,
    Column,
    IdType,
    Layout,
    Widths,
    row_groups,
)

Integers = npt.NDArray[np.integer[Any]]
Numbers = npt.NDArray[np.float32]

_LENGTH = struct.Struct("<I")
"""Length of a text in bytes, which stands before it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PlainTable:
    """Table of at least one row: ids, then columns of numbers (n) or of lists of numbers (n × k).

    Ids are 64-bit integers, signed or not, or text.
    """

    id_name: str
    ids: Integers | list[str]
    columns: dict[str, Numbers]


def encode(table: PlainTable) -> bytes:
    """Content of the Parquet file of a table."""
    widths = {
        name: values.shape[1] if values.ndim == 2 else None
        for name, values in table.columns.items()
    }
    layout = Layout(id_name=table.id_name, id_type=_id_type(table.ids), widths=widths)
    columns = [layout.id_column, *layout.number_columns.values()]
    parts, offset, groups = [MAGIC], len(MAGIC), []
    for rows in row_groups(len(table.ids)):
        count, chunks = rows.stop - rows.start, []
        values = [_id_bytes(table.ids[rows])]
        values += [each[rows].astype("<f4").tobytes() for each in table.columns.values()]
        for column, content in zip(columns, values, strict=True):
            levels = column.levels(count)
            size = len(levels) + len(content)
            if size > PAGE_MAX:
                raise InvalidDocument(
                    f"the column {column.path[0]} is too large for a release: {GROUP_ROWS:,} rows "
                    "of it must take less than 2 GiB"
                )
            header = column.page_header(count, size)
            parts += [header, levels, content]
            chunks.append(Chunk(offset=offset, size=len(header) + size, rows=count))
            offset += chunks[-1].size
        groups.append(chunks)
    return b"".join([*parts, layout.footer(groups, len(table.ids))])


def decode(content: bytes, name: str, id_name: str, rows: int, widths: Widths) -> PlainTable:
    """Table with `rows` rows from the content of the Parquet file `name`.

    Raises `InvalidDocument` unless `encode` writes exactly this content for the table.
    """
    reader = _Reader(content, name)
    numbers = sum(1 if width is None else width for width in widths.values())
    if rows < 1 or 4 * rows * numbers > len(content):
        # Checked before anything is allocated for the stated rows.
        raise reader.refusal(f"{len(content):,} bytes cannot hold the rows that the facts state")
    layout = Layout(id_name=id_name, id_type=reader.id_type(id_name, widths), widths=widths)
    columns = {
        each: np.empty(rows if width is None else (rows, width), dtype=np.float32)
        for each, width in widths.items()
    }
    texts: list[str] = []
    integers = np.empty(
        0 if layout.id_type is IdType.TEXT else rows,
        dtype=np.uint64 if layout.id_type is IdType.UNSIGNED else np.int64,
    )
    reader.expect(MAGIC)
    groups = []
    for group in row_groups(rows):
        count, begins = group.stop - group.start, [reader.at]
        if layout.id_type is IdType.TEXT:
            texts += reader.texts(layout.id_column, count)
        else:
            reader.fill(layout.id_column, integers[group])
        for each, column in layout.number_columns.items():
            begins.append(reader.at)
            reader.fill(column, columns[each][group])
        ends = [*begins[1:], reader.at]
        groups.append(
            [
                Chunk(offset=begin, size=end - begin, rows=count)
                for begin, end in zip(begins, ends, strict=True)
            ]
        )
    reader.expect(layout.footer(groups, rows))
    if reader.at != len(content):
        raise reader.refusal(f"{len(content) - reader.at:,} bytes follow its end")
    ids = texts if layout.id_type is IdType.TEXT else integers
    return PlainTable(id_name=id_name, ids=ids, columns=columns)


class _Reader:
    """Position in the content of a file; every step checks what it passes."""

    def __init__(self, content: bytes, name: str) -> None:
        self.at = 0
        self._content, self._name = content, name

    def refusal(self, reason: str) -> InvalidDocument:
        """Error with the reason why the file is not a table of a release."""
        return InvalidDocument(
            f"{self._name} is not a table of profiles as a release has it: {reason}"
        )

    def expect(self, expected: bytes) -> None:
        """Pass bytes that must be `expected`."""
        if not self._content.startswith(expected, self.at):
            found = self._content[self.at : self.at + len(expected)]
            differing = (place for place, byte in enumerate(found) if byte != expected[place])
            at = self.at + next(differing, len(found))
            raise self.refusal(f"byte {at:,} is not what its layout and the facts require")
        self.at += len(expected)

    def id_type(self, id_name: str, widths: Widths) -> IdType:
        """Type of the ids, from the schema in the footer."""
        size = int.from_bytes(self._content[-8:-4], "little")
        begin = max(len(self._content) - 8 - size, 0)
        for id_type in IdType:
            layout = Layout(id_name=id_name, id_type=id_type, widths=widths)
            if self._content.startswith(layout.footer_start(), begin):
                return id_type
        raise self.refusal("its footer does not have the columns that the facts require")

    def fill(self, column: Column, target: Integers | Numbers) -> None:
        """Pass a page of numbers and copy them to `target`."""
        levels = column.levels(len(target))
        end = self._enter(column, len(target), len(levels) + target.nbytes)
        self.expect(levels)
        found = np.frombuffer(
            self._content, target.dtype.newbyteorder("<"), target.size, offset=self.at
        )
        target[...] = found.reshape(target.shape)
        self.at = end

    def texts(self, column: Column, count: int) -> list[str]:
        """Pass a page of texts and return them."""
        end = self._enter(column, count, self._stated_size())
        page, at, found = self._content[self.at : end], 0, []
        try:
            for _ in range(count):
                (size,) = _LENGTH.unpack_from(page, at)
                begin = at + _LENGTH.size
                at = begin + size
                found.append(page[begin:at].decode())
        except struct.error:
            at = -1
        except UnicodeDecodeError:
            raise self.refusal("an id is not UTF-8 text") from None
        if at != len(page):
            raise self.refusal("its ids do not fill their page")
        self.at = end
        return found

    def _enter(self, column: Column, rows: int, size: int) -> int:
        """Pass the header of a page and return the position of its end."""
        if size > PAGE_MAX:
            raise self.refusal("a page is larger than the format allows")
        self.expect(column.page_header(rows, size))
        if self.at + size > len(self._content):
            raise self.refusal("it ends within a page")
        return self.at + size

    def _stated_size(self) -> int:
        """Size of the next page as its header states it; the header is compared afterwards."""
        number = 0
        begin = self.at + PAGE_SIZE_AT
        for place, byte in enumerate(self._content[begin : begin + 5]):
            number |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                break
        return number >> 1


def _id_type(ids: Integers | list[str]) -> IdType:
    if isinstance(ids, list):
        return IdType.TEXT
    return IdType.UNSIGNED if ids.dtype == np.uint64 else IdType.SIGNED


def _id_bytes(ids: Integers | list[str]) -> bytes:
    if not isinstance(ids, list):
        return ids.astype(ids.dtype.newbyteorder("<")).tobytes()
    texts = [each.encode() for each in ids]
    return b"".join([part for each in texts for part in (_LENGTH.pack(len(each)), each)])
