"""Decoder of Thrift's compact protocol, in which Parquet writes its footer and page headers.

Reads only the fields that a caller names and skips all others. Every length is checked against the
bytes that are left, so that damaged bytes raise `Damaged` and never cause a large allocation.
"""

from collections.abc import Mapping
from typing import Any

_TRUE, _FALSE, _INT8, _INT16, _INT32, _INT64, _DOUBLE, _BINARY = range(1, 9)
_LIST, _SET, _MAP, _STRUCT = range(9, 13)

_DEPTH = 16
"""Maximum nesting of structs and lists. Parquet's own has 7."""

Fields = Mapping[int, Any]
"""Fields to read, by number: None for a number, boolean or bytes, a `Fields` for a struct, and a
list with one of these for a list."""


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
        if depth > _DEPTH:
            raise Damaged("values are nested too deeply")
        found: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            code, step = head & 0x0F, head >> 4
            number = number + step if step else self._signed()
            if number in fields:
                found[number] = self._value(code, fields[number], depth)
            else:
                self._skip(code, depth)
        return found

    def _value(self, code: int, fields: Any, depth: int) -> Any:
        if isinstance(fields, list):
            return self._list(code, fields[0], depth)
        if fields is not None:
            if code != _STRUCT:
                raise Damaged("a field has the wrong type")
            return self.struct(fields, depth + 1)
        if code in (_TRUE, _FALSE):
            return code == _TRUE
        if code in (_INT16, _INT32, _INT64):
            return self._signed()
        if code == _INT8:
            return self._byte()
        if code == _BINARY:
            return self._bytes(self._unsigned())
        raise Damaged("a field has the wrong type")

    def _list(self, code: int, fields: Any, depth: int) -> list[Any]:
        if code != _LIST:
            raise Damaged("a field has the wrong type")
        count, kind = self._list_head()
        return [self._value(kind, fields, depth + 1) for _ in range(count)]

    def _list_head(self) -> tuple[int, int]:
        """Number of elements, each of which has at least one byte, and their type."""
        head = self._byte()
        count = head >> 4 if head >> 4 != 15 else self._unsigned()
        if count > len(self.content) - self.position:
            raise CutShort
        return count, head & 0x0F

    def _skip(self, code: int, depth: int, *, in_list: bool = False) -> None:
        if code in (_TRUE, _FALSE):
            self.position += in_list
        elif code == _INT8:
            self.position += 1
        elif code in (_INT16, _INT32, _INT64):
            self._unsigned()
        elif code == _DOUBLE:
            self.position += 8
        elif code == _BINARY:
            self._bytes(self._unsigned())
        elif code == _STRUCT:
            self.struct({}, depth + 1)
        elif code in (_LIST, _SET):
            if depth > _DEPTH:
                raise Damaged("values are nested too deeply")
            count, kind = self._list_head()
            for _ in range(count):
                self._skip(kind, depth + 1, in_list=True)
        else:  # a map, which Parquet has none of
            raise Damaged("a field has an unknown type")

    def _byte(self) -> int:
        if self.position >= len(self.content):
            raise CutShort
        self.position += 1
        return self.content[self.position - 1]

    def _bytes(self, size: int) -> bytes:
        begin, self.position = self.position, self.position + size
        if self.position > len(self.content):
            raise CutShort
        return self.content[begin : self.position]

    def _unsigned(self) -> int:
        """Integer of at most 64 bits, seven to a byte, the lowest first."""
        number = 0
        for shift in range(0, 64, 7):
            byte = self._byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
        raise Damaged("a number has too many bytes")

    def _signed(self) -> int:
        number = self._unsigned()
        return number >> 1 ^ -(number & 1)
