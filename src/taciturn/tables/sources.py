"""Content of a text file in a form that polars reads: a path, or text in UTF-8."""

import codecs
import io
from collections.abc import Iterator
from pathlib import Path

from taciturn._internal.spelling import option
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.tables.expansion import ExpansionLimit, unpacked, unpacked_pieces


def checked_encoding(name: object) -> str | None:
    """Name of a text encoding that Python knows; None for UTF-8, which needs no conversion."""
    try:
        found = codecs.lookup(name) if isinstance(name, str) else None
    except (LookupError, ValueError):
        found = None
    if found is None or not found._is_text_encoding:
        shown = repr(name)[:40]
        raise InvalidParameter(
            f"{option('encoding')} must be a text encoding such as latin-1, cp1252 or utf-16, got "
            f"{shown}"
        )
    return None if found.name in ("utf-8", "utf-8-sig") else found.name


def text_source(
    path: str, limit: ExpansionLimit | None = None, encoding: str | None = None
) -> str | bytes:
    """Path of a file that polars reads directly (plain, gzip, Zstandard, URL), else its content.

    polars cannot open a file whose name is not UTF-8, and reads no other encoding. The default
    limit is `ExpansionLimit(path)`. Files at a URL are not checked.
    """
    if "://" in path:
        if encoding is not None:
            raise InvalidParameter(
                f"{option('encoding')} applies to files on this machine; download {path} first"
            )
        return path
    if not Path(path).is_file():
        raise FileNotFoundError(path)
    limit = limit or ExpansionLimit(path)
    if encoding is not None:
        return b"".join(_in_utf8(unpacked_pieces(limit), path, encoding))
    content = unpacked(limit)
    if content is not None:
        return content
    return path if is_utf8(path) else Path(path).read_bytes()


def readable(source: str | bytes) -> str | io.BytesIO:
    """Path, or the content as a stream."""
    return source if isinstance(source, str) else io.BytesIO(source)


def is_utf8(path: str) -> bool:
    """False for a name that polars cannot open: Python holds its other bytes as surrogates."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _in_utf8(pieces: Iterator[bytes], path: str, encoding: str) -> Iterator[bytes]:
    """Text converted to UTF-8, piece by piece."""
    decoder = codecs.getincrementaldecoder(encoding)()
    lines = 1
    try:
        for piece in pieces:
            text = decoder.decode(piece)
            lines += text.count("\n")
            yield text.encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeDecodeError as error:
        valid = error.object[: error.start].decode(encoding, errors="replace")
        raise InvalidDocument(
            f"line {lines + valid.count(chr(10)):,} of {path} is not {encoding} text; pass another "
            f"{option('encoding')}"
        ) from None
    except UnicodeError:
        raise InvalidDocument(
            f"{path} is not {encoding} text; pass another {option('encoding')}"
        ) from None
