"""Compressed text files: unpacked, or only measured, within a limit on the unpacked size.

A few megabytes of compressed text can unpack to many gigabytes. The limit is checked while
unpacking piece by piece, before polars or anything else holds the text in memory.
"""

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from taciturn._internal.spelling import option
from taciturn.errors import InvalidDocument

MAX_EXPANSION = 100.0
"""Default of the maximum unpacked size of a compressed file, in multiples of its own size."""

SMALL = 2**26
"""Unpacked size in bytes that is always accepted."""

DAMAGED = (
    zipfile.BadZipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,  # the file ends too early
    RuntimeError,  # a member of a zip file is encrypted, or its compression is not supported
    UnicodeDecodeError,  # the name of a member is not valid text
)
"""Errors of the standard library, besides OSError, for a file that it cannot unpack."""

_PIECE = 2**20

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_ZLIB = (b"\x78\x01", b"\x78\x9c", b"\x78\xda")

_DEFLATE_MAX = 1032
"""Maximum ratio of unpacked to compressed size in gzip and zlib."""

_ZSTD_BLOCK_MAX = 2**17
"""Maximum unpacked size of a Zstandard block in bytes."""


class _Stream(Protocol):
    """Unpacked text, piece by piece."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class ExpansionLimit:
    """Maximum unpacked size of a compressed file.

    Parameters
    ----------
    path
        The file.
    factor
        Maximum size in multiples of the file's own size; `MAX_EXPANSION` when None. Up to `SMALL`
        bytes are always accepted.
    has_option
        True if the caller of the command can raise the limit.
    """

    path: str
    factor: float | None = None
    has_option: bool = False

    @property
    def size(self) -> int:
        """Maximum unpacked size in bytes."""
        factor = MAX_EXPANSION if self.factor is None else self.factor
        return max(SMALL, int(factor * Path(self.path).stat().st_size))

    def check(self, size: int) -> None:
        """Raise if `size` bytes are too many."""
        if size <= self.size:
            return
        advice = f"pass a larger {option('max_expansion')}, or " if self.has_option else ""
        raise InvalidDocument(
            f"{self.path} unpacks to more than {self.size:,} bytes, "
            f"{self.size / Path(self.path).stat().st_size:.0f} times its size, which is the limit "
            f"for compressed files; if you trust it, {advice}write it as plain text"
        )


def unpacked(limit: ExpansionLimit) -> bytes | None:
    """Text in a bz2, xz or zip file, by its name; None for files that polars unpacks itself.

    Of those, the unpacked size of gzip, zlib and Zstandard files is checked.
    """
    path, lower = limit.path, limit.path.lower()
    if lower.endswith(".bz2"):
        with bz2.BZ2File(path) as stream:
            content = _content(stream, limit)
    elif lower.endswith((".xz", ".lzma")):
        with lzma.LZMAFile(path) as stream:
            content = _content(stream, limit)
    elif lower.endswith(".zip"):
        content = _alone_in_zip(limit)
    else:
        _measure(limit)
        return None
    if content.startswith((_GZIP, _ZSTD, *_ZLIB)):
        raise InvalidDocument(f"{path} is compressed twice; unpack it once")
    return content


def unpacked_pieces(limit: ExpansionLimit) -> Iterator[bytes]:
    """Text in a plain or compressed file, piece by piece."""
    if (content := unpacked(limit)) is not None:
        yield content
        return
    with Path(limit.path).open("rb") as file:
        start = file.read(4)
        file.seek(0)
        if start == _ZSTD:
            raise InvalidDocument(
                f"{option('encoding')} does not apply to the Zstandard file {limit.path}; unpack "
                "it first"
            )
        stream: _Stream = file
        if start.startswith((_GZIP, *_ZLIB)):
            stream = gzip.GzipFile(fileobj=file) if start.startswith(_GZIP) else _Zlib(file)
        while piece := stream.read(_PIECE):
            yield piece


def zip_member(archive: zipfile.ZipFile, name: str, limit: ExpansionLimit) -> bytes:
    """Content of a file in a zip archive."""
    with archive.open(name) as stream:
        return _content(stream, limit)


def _alone_in_zip(limit: ExpansionLimit) -> bytes:
    with zipfile.ZipFile(limit.path) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        if len(names) != 1:
            raise InvalidDocument(
                f"{limit.path} contains {len(names)} files; unpack it and pass the one with the "
                "table"
            )
        return zip_member(archive, names[0], limit)


def _content(stream: _Stream, limit: ExpansionLimit) -> bytes:
    return b"".join(_pieces(stream, limit))


def _pieces(stream: _Stream, limit: ExpansionLimit) -> Iterator[bytes]:
    size, most = 0, limit.size
    while piece := stream.read(_PIECE):
        size += len(piece)
        if size > most:
            limit.check(size)
        yield piece


def _measure(limit: ExpansionLimit) -> None:
    """Raise if a file that polars would unpack exceeds the limit; polars looks at the first bytes.

    A gzip or zlib file that cannot exceed the limit, whatever it contains, is not unpacked.
    """
    with Path(limit.path).open("rb") as file:
        start = file.read(4)
        file.seek(0)
        if start == _ZSTD:
            limit.check(_zstd_size(file))
        elif start.startswith((_GZIP, *_ZLIB)):
            if _DEFLATE_MAX * Path(limit.path).stat().st_size <= limit.size:
                return
            is_gzip = start.startswith(_GZIP)
            for _ in _pieces(gzip.GzipFile(fileobj=file) if is_gzip else _Zlib(file), limit):
                pass


class _Zlib:
    """Text in a zlib file, piece by piece."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._unpack = file, zlib.decompressobj()

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes; none at the end."""
        while not self._unpack.eof:
            packed = self._unpack.unconsumed_tail or self._file.read(_PIECE)
            piece = self._unpack.decompress(packed, size)
            if piece or not packed:
                return piece
        return b""


def _zstd_size(file: BinaryIO) -> int:
    """Bound on the unpacked size of a Zstandard file, from the headers of its blocks (RFC 8878).

    Only blocks of stored or repeated bytes state their size; any other has at most 128 KiB.
    """
    size = 0
    while magic := file.read(4):
        if magic[1:] == b"\x2a\x4d\x18" and magic[0] >> 4 == 5:  # a frame to skip
            file.seek(_number(file, 4), io.SEEK_CUR)
            continue
        if magic != _ZSTD:
            raise OSError  # damaged
        described = _number(file, 1)
        is_single = bool(described & 0x20)
        has_size = (1 if is_single else 0, 2, 4, 8)[described >> 6]
        file.seek((not is_single) + (0, 1, 2, 4)[described & 3] + has_size, io.SEEK_CUR)
        is_last = False
        while not is_last:
            block = _number(file, 3)
            is_last, kind, length = bool(block & 1), block >> 1 & 3, block >> 3
            is_compressed, is_repeated = kind == 2, kind == 1
            size += _ZSTD_BLOCK_MAX if is_compressed else length
            file.seek(1 if is_repeated else length, io.SEEK_CUR)
        file.seek(4 if described & 4 else 0, io.SEEK_CUR)  # a checksum
    return size


def _number(file: BinaryIO, size: int) -> int:
    content = file.read(size)
    if len(content) < size:
        raise EOFError
    return int.from_bytes(content, "little")
