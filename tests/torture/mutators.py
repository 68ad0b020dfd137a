"""Mutations of files: of bytes, of lines and fields, and of JSON values.

Each function takes the generator that chooses, so a mutation is repeated by repeating its seed.
"""

import copy
import json
from collections.abc import Sequence
from random import Random
from typing import Any, Literal

NUMBERS = (
    *(
        "",
        "0",
        "-0",
        "1",
        "-1",
        "5",
        "6",
        "007",
        "+3",
        "3.0",
        "3,5",
        "1e0",
        "1e308",
        "1e309",
        "1e-400",
    ),
    *("nan", "NaN", "inf", "-Infinity", "null", "None", "true", "0x10", "1_000", "٣", "½"),
    *(str(2**31), str(2**53 + 1), str(2**63 - 1), str(2**63), str(-(2**63) - 1), "9" * 400),
)
"""Fields that a number may be replaced with."""

IDS = (
    *("", " ", " 7", "7 ", "007", "7.0", "-7", "a,b", "a\tb", "a::b", "a:b", '"', '""', '"a"', "'"),
    *('"a""b"', '"a', "a\rb", "\x00", "\ufeff7", "𝛼", "\u202e7", "e\u0301", "\x1f", "x" * 5000),
)
"""Fields that an id may be replaced with."""

LENGTHS = (0, 1, 2, 7, 8, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**63)
"""Numbers written over the bytes of a length."""

SIZES = (1, 1, 2, 4, 8, 40, 400)


def mutate_bytes(content: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    """Bytes changed in one to five places; `others` are files to splice with."""
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        content = _change_bytes(content or b"\0", chance.choice(others), chance)
    return content


def _change_bytes(content: bytes, other: bytes, chance: Random) -> bytes:
    place, size = _place(len(content), chance), chance.choice(SIZES)
    before, after = content[:place], content[place:]
    match chance.randrange(9):
        case 0:
            return before + bytes([after[0] ^ 1 << chance.randrange(8)]) + after[1:]
        case 1:
            return before + chance.randbytes(size) + after[size:]
        case 2:
            return before + after[size:]
        case 3:
            return before + chance.choice((chance.randbytes(size), bytes(size))) + after
        case 4:
            return before
        case 5:
            return before + other[_place(len(other), chance) :]
        case 6:
            again = _place(len(content), chance)
            block = content[again : again + size]
            return before + block * chance.choice((1, 1, 2, 50)) + after
        case 7:
            length = length_bytes(chance)
            return before + length + after[len(length) :]
        case _:
            # The last number of a Parquet file, and of a gzip file, is a length.
            end = chance.choice((4, 8))
            number = int(chance.choice((*LENGTHS[:-1], place, len(content))))
            tail = content[len(content) - end + 4 :]
            return content[:-end] + number.to_bytes(4, "little") + tail


def length_bytes(chance: Random) -> bytes:
    """A number as formats write lengths: fixed and variable, in both byte orders."""
    number = chance.choice(LENGTHS)
    if chance.randrange(2):
        return _variable(number if chance.randrange(2) else 2 * number)
    width = chance.choice((2, 4, 8))
    order: Literal["little", "big"] = "little" if chance.randrange(2) else "big"
    return int(number % 256**width).to_bytes(width, order)


def _variable(number: int) -> bytes:
    """Integer in groups of seven bits, the last of them first."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _place(size: int, chance: Random) -> int:
    """Index of a byte, more often near the ends, where formats keep their structure."""
    near = min(size, 64)
    match chance.randrange(6):
        case 0:
            return chance.randrange(near) if near else 0
        case 1:
            return size - 1 - chance.randrange(near) if near else 0
        case _:
            return chance.randrange(size) if size else 0


def mutate_lines(text: str, separator: str, chance: Random) -> str:
    """Text table with lines or fields changed, swapped, repeated, removed or made odd."""
    lines = text.split("\n")
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        one, two = chance.randrange(len(lines)), chance.randrange(len(lines))
        match chance.randrange(9):
            case 0:
                lines[one], lines[two] = lines[two], lines[one]
            case 1:
                lines.insert(one, lines[two])
            case 2 if len(lines) > 1:
                del lines[one]
            case 3:
                lines[one] = chance.choice((",", "::", "\t", ";", "", "\r", '"', "\ufeff")) * 3
            case 4:
                lines[one] += chance.choice(("\r", separator, " ", separator * 9, '"', "\x00"))
            case 5:
                lines[one] = lines[one].replace(separator, chance.choice((",", ":", "\t", "|", "")))
            case _:
                lines[one] = odd_field(lines[one], separator, chance)
    ending = "\r\n" if chance.randrange(12) == 0 else "\n"
    return ending.join(lines)


def odd_field(line: str, separator: str, chance: Random) -> str:
    """Line with one field replaced by an odd number or id, or two fields swapped."""
    fields = line.split(separator)
    one, two = chance.randrange(len(fields)), chance.randrange(len(fields))
    if chance.randrange(5):
        fields[one] = chance.choice(NUMBERS + IDS)
    else:
        fields[one], fields[two] = fields[two], fields[one]
    return separator.join(fields)


ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, "", "a\nb", "secure", "test", "proven", "value", "user", [], {}, [[]]),
    *(0, -1, 1, 2, 10**400, 0.0, -0.0, 1e-320, 1e-9, 1e9, 1e308, float("nan"), float("inf")),
)


def mutate_json(document: Any, chance: Random) -> Any:
    """Document with values changed, removed, added, repeated or swapped, anywhere within."""
    document = copy.deepcopy(document)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        holders = list(_holders(document))
        if not holders:
            break
        holder = chance.choice(holders)
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = chance.choice(keys)
        match chance.randrange(7):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.insert(key, copy.deepcopy(chance.choice(holder)))
            case 1:
                holder[chance.choice(("more", "", "mac", "flaw", "part", "status"))] = holder[key]
            case 2:
                other = chance.choice(keys)
                holder[key], holder[other] = holder[other], holder[key]
            case 3:
                source = chance.choice(holders)
                inner = source if isinstance(source, list) else list(source.values())
                holder[key] = copy.deepcopy(chance.choice(inner))
            case _:
                holder[key] = _odd_value(holder[key], chance)
    return document


def json_text(document: Any, chance: Random) -> str:
    """JSON of a document, indented as the library writes it or not; NaN and infinity as given."""
    indent = chance.choice((2, 2, None))
    return json.dumps(document, indent=indent, ensure_ascii=bool(chance.randrange(2))) + "\n"


def _odd_value(value: Any, chance: Random) -> Any:
    """Number close to a number, and otherwise any odd value."""
    if isinstance(value, float) and chance.randrange(2):
        factor = chance.choice(
            (0.5, 2, 10, 1e-6, -1, 1 + 1e-12, 1 - 1e-12, 1 + 1e-8, 1 - 1e-8, 0.9)
        )
        return value * factor
    if type(value) is int and chance.randrange(2):
        return value + chance.choice((1, -1, 2**31, 2**63))
    if isinstance(value, str) and value and chance.randrange(2):
        place = chance.randrange(len(value))
        return value[:place] + chance.choice(("", "x", "\u202e", value)) + value[place + 1 :]
    return copy.deepcopy(chance.choice(ODD_VALUES))


def _holders(document: Any) -> Any:
    """Every object and list in a document that is not empty."""
    if isinstance(document, dict | list) and document:
        yield document
        for value in document.values() if isinstance(document, dict) else document:
            yield from _holders(value)
