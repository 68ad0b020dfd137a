"""Strict JSON: what Tacit writes and the only JSON it reads."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from tacit.errors import InvalidDocument

SIZE_MAX = 256 * 1024 * 1024
"""Largest document read, in bytes; a ledger of a million events stays below it."""


def dumps(document: object) -> str:
    """Return `document` as indented JSON; floats keep every bit, NaN and infinity are refused."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def loads(text: str, source: str) -> Any:
    """Parse `text`, refusing what JSON leaves open: repeated keys, NaN, infinity."""
    try:
        return json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        reason = "it nests too deeply" if isinstance(error, RecursionError) else str(error)
        raise InvalidDocument(f"{source} is not valid JSON: {reason}") from None


def read(path: Path) -> Any:
    """Parse the JSON file at `path`."""
    try:
        if path.stat().st_size > SIZE_MAX:
            raise InvalidDocument(
                f"{path} is larger than {SIZE_MAX:,} bytes; it is no Tacit document"
            )
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidDocument(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidDocument(f"{path} is not valid JSON: it is not UTF-8 text") from None
    return loads(text, str(path))


def write(path: Path, document: object) -> None:
    """Write `document` to `path` atomically, refusing to replace an existing file."""
    text = dumps(document)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.link(name, path)
        finally:
            Path(name).unlink()
    except FileExistsError:
        raise InvalidDocument(f"{path} exists already; choose another name") from None
    except OSError as error:
        raise InvalidDocument(f"cannot write {path}: {error.strerror}") from None


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a key is repeated within one object")
    return document


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")
