"""Strict JSON, the only JSON that Taciturn writes and reads."""

import json
import math
from pathlib import Path
from typing import Any

from taciturn._internal import files
from taciturn.errors import InvalidDocument

SIZE_MAX = 256 * 1024 * 1024
"""Maximum size of a document in bytes; a ledger of a million events is smaller."""


def dumps(document: object) -> str:
    """Indented JSON of a document; floats keep every bit, NaN and infinity are refused."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def loads(text: str, source: str) -> Any:
    """Parse `text`; repeated keys, NaN and infinity are refused."""
    try:
        return json.loads(
            text,
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except (ValueError, RecursionError) as error:
        reason = "it nests too deeply" if isinstance(error, RecursionError) else str(error)
        raise InvalidDocument(f"{source} is not valid JSON: {reason}") from None


def read(path: Path) -> Any:
    """Parse the JSON file at `path`."""
    try:
        if not path.is_file():
            kind = "is a folder" if path.is_dir() else "is not a regular file"
            raise InvalidDocument(
                f"cannot read {path}: it {kind if path.exists() else 'does not exist'}"
            )
        with path.open("rb") as file:
            content = file.read(SIZE_MAX + 1)
        if len(content) > SIZE_MAX:
            raise InvalidDocument(
                f"{path} is larger than {SIZE_MAX:,} bytes, so Taciturn did not write it"
            )
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidDocument(f"{path} is not valid JSON: it is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise InvalidDocument(f"cannot read {path}: {_reason(error)}") from None
    return loads(text, str(path))


def write(path: Path, document: object) -> None:
    """Write `document` to a new file."""
    files.write_file(path, dumps(document).encode())


def _reason(error: Exception) -> str:
    """The system's error message, without the path, which the caller's message names."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a key is repeated within one object")
    return document


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is too large")
    return number
