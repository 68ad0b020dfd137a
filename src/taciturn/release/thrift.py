"""Encoder of Thrift's compact protocol, in which Parquet writes page headers and the footer.

A value is a pair of its type code and its bytes. Taciturn never decodes Thrift: a reader compares
bytes with those that it expects.
"""

from collections.abc import Mapping, Sequence

Value = tuple[int, bytes]

_TRUE, _FALSE, _INT8, _INT32, _INT64, _BINARY, _LIST, _STRUCT = 1, 2, 3, 5, 6, 8, 9, 12


def varint(number: int) -> bytes:
    """Non-negative integer, seven bits to a byte, the lowest first."""
    content = bytearray()
    while number > 0x7F:
        content.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*content, number])


def boolean(value: bool) -> Value:
    """Boolean field of a struct, which is its type code."""
    return (_TRUE if value else _FALSE), b""


def int8(number: int) -> Value:
    """Non-negative 8-bit integer."""
    return _INT8, bytes([number])


def int32(number: int) -> Value:
    """Non-negative 32-bit integer, or a member of an enumeration."""
    return _INT32, varint(number << 1)


def int64(number: int) -> Value:
    """Non-negative 64-bit integer."""
    return _INT64, varint(number << 1)


def text(value: str) -> Value:
    """Text in UTF-8."""
    content = value.encode()
    return _BINARY, varint(len(content)) + content


def sequence(values: Sequence[Value]) -> Value:
    """List of at least one value, all of one type."""
    code, count = values[0][0], len(values)
    head = bytes([count << 4 | code]) if count < 15 else bytes([0xF0 | code]) + varint(count)
    return _LIST, head + b"".join(content for _, content in values)


def struct(fields: Mapping[int, Value]) -> Value:
    """Struct of fields by number, in ascending order and at most 15 apart."""
    content, last = bytearray(), 0
    for number, (code, value) in fields.items():
        content += bytes([(number - last) << 4 | code]) + value
        last = number
    return _STRUCT, bytes(content) + b"\0"
