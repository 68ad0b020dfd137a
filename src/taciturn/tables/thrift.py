"""Decoder of Thrift's compact protocol, in which Parquet writes its footer and page headers.

Reads only the fields that a caller names and skips all others. Every length is checked against the
bytes that are left, so that damaged bytes raise `Damaged` and never cause a large allocation.
"""

from collections.abc import Mapping
from typing import Any

_TRUE, _FALSE, _INT8, _INT16, _INT32, _INT64, _DOUBLE, _BINARY = range(1, 9)
_LIST, _SET, _MAP, _STRUCT = range(9, 13)

_DEPTH = 16
"""Maximum nesting of structs and lists. Parquet's own is 7."""

Fields = Mapping[int, Any]
"""Fields to read, by number: None for an integer, which must not be negative, a `Fields` for a
struct, and a list with one `Fields` for a list of structs. All other fields are skipped."""


class Damaged(Exception):
    """Bytes that are not what they should be."""


class CutShort(Damaged):
    """Bytes that end within a value."""


class Reader:
    """Values in some bytes, from a position on."""

    def __init__(self, content: bytes) -> None:
        self.content, self.position = content, 0

    def struct(self, fields: Fields, depth: int = 0) -> dict[int, Any]:
        """Wanted fields of a struct, by number."""
        try:
            return self._struct(fields, depth)
        except IndexError:
            raise CutShort from None

    def _struct(self, fields: Fields, depth: int) -> dict[int, Any]:
        # Integers and bytes are decoded in place: a large file has very many.
        found: dict[int, Any] = {}
        content, position, number = self.content, self.position, 0
        if depth > _DEPTH:
            raise Damaged("values are nested too deeply")
        while head := content[position]:
            position += 1
            code = head & 0x0F
            if head > 0x0F:
                number += head >> 4
            else:
                raw, position = _varint(content, position)
                number = raw >> 1 ^ -(raw & 1)
            if _INT16 <= code <= _INT64:
                raw, position = _varint(content, position)
                if number in fields:
                    found[number] = _natural(raw, fields[number])
            elif number in fields:
                self.position = position
                found[number] = self._nested(code, fields[number], depth + 1)
                position = self.position
            elif code == _BINARY:
                size, position = _varint(content, position)
                position += size
            elif code not in (_TRUE, _FALSE):
                self.position = position
                self._skip(code, depth + 1)
                position = self.position
        self.position = position + 1
        return found

    def _nested(self, code: int, fields: Any, depth: int) -> Any:
        """Struct, or list of structs."""
        if code == _STRUCT and isinstance(fields, Mapping):
            return self._struct(fields, depth)
        if code == _LIST and isinstance(fields, list):
            count, kind = self._list_head()
            if count == 0 or kind == _STRUCT:
                return [self._struct(fields[0], depth) for _ in range(count)]
        raise Damaged("a field has the wrong type")

    def _list_head(self) -> tuple[int, int]:
        """Number of elements, each of which has at least one byte, and their type."""
        head, self.position = self.content[self.position], self.position + 1
        count = head >> 4
        if count == 15:
            count, self.position = _varint(self.content, self.position)
        if count > len(self.content) - self.position:
            raise CutShort
        return count, head & 0x0F

    def _skip(self, code: int, depth: int) -> None:
        """Skip a field, other than a boolean, or an element of a list."""
        if code in (_TRUE, _FALSE, _INT8):
            self.position += 1
        elif _INT16 <= code <= _INT64:
            _, self.position = _varint(self.content, self.position)
        elif code == _DOUBLE:
            self.position += 8
        elif code == _BINARY:
            size, position = _varint(self.content, self.position)
            self.position = position + size
        elif code == _STRUCT:
            self._struct({}, depth)
        elif code in (_LIST, _SET) and depth <= _DEPTH:
            count, kind = self._list_head()
            for _ in range(count):
                self._skip(kind, depth + 1)
        else:  # a map, which Parquet does not use, or no type at all
            raise Damaged("a field has an unknown type")


def _natural(raw: int, fields: Any) -> int:
    """Integer that is not negative, whose lowest bit is the sign."""
    if fields is not None:
        raise Damaged("a field has the wrong type")
    if raw & 1:
        raise Damaged("a number is negative")
    return raw >> 1


def _varint(content: bytes, position: int) -> tuple[int, int]:
    """Integer of at most 64 bits, seven to a byte, the lowest first, and the position behind it."""
    byte = content[position]
    if byte < 0x80:
        return byte, position + 1
    number = byte & 0x7F
    for shift in range(7, 64, 7):
        position += 1
        byte = content[position]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position + 1
    raise Damaged("a number has too many bytes")
