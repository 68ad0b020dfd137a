"""Opening table files: format detection, decompression and error messages."""

import bz2
import glob
import lzma
import os
import zipfile
import zlib
from pathlib import Path

import polars as pl

from taciturn.errors import InvalidDocument

_UNREADABLE = (
    "a line has the wrong number of fields, a field has the wrong type, or the text is not UTF-8"
)


class UnreadableTable(InvalidDocument):
    """The file does not hold a table of the expected types."""


class Explained:
    """Context manager that turns read errors into messages without any content of the file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FileNotFoundError):
            raise InvalidDocument(
                f"cannot read {self.path}: there is no such file; check the path"
            ) from None
        if isinstance(error, OSError):
            reason = error.strerror or "it is damaged, or its compression does not match its name"
            raise InvalidDocument(f"cannot read {self.path}: {reason}") from None
        broken = (
            *(pl.exceptions.PolarsError, zipfile.BadZipFile, lzma.LZMAError, zlib.error),
            *(EOFError, RuntimeError, NotImplementedError),
        )
        # A panic in polars is not an Exception.
        panic = type(error).__name__ == "PanicException"
        if isinstance(error, broken) or type(error) is ValueError or panic:
            raise UnreadableTable(f"cannot read {self.path} as a table: {_UNREADABLE}") from None


def checked_path(path: str | os.PathLike[str]) -> str:
    """Path as text. Raises if it is not a valid path."""
    text = os.fspath(path)
    if "\0" in text:
        raise InvalidDocument("the path contains a null character; correct it")
    return text


def is_parquet(path: str, header: bool | None = None) -> bool:
    """True if a path refers to Parquet files, by its name or its first bytes.

    The bytes are not read if the caller declares a text file without a header: they may be a
    private id.
    """
    if path.lower().endswith((".parquet", ".pq")) or _is_folder(path):
        return True
    if not _is_file(path):
        return "*" in path
    if header is False:
        return False
    with Path(path).open("rb") as stream:
        return stream.read(4) == b"PAR1"


def scan_parquet(path: str) -> pl.LazyFrame:
    """Rows of a Parquet file, or of all Parquet files in a folder or glob."""
    pattern = path
    if _is_folder(path):
        if not any(Path(path).rglob("*.parquet")):
            raise InvalidDocument(f"{path} has no Parquet files; check the path")
        pattern = os.path.join(glob.escape(path), "**", "*.parquet")  # noqa: PTH118 a glob
    return pl.scan_parquet(pattern, glob=not _is_file(pattern))


def text_source(path: str) -> str | bytes:
    """Path of a file that polars reads directly (plain, gzip, Zstandard, URL), else its content."""
    if "://" in path:
        return path
    if not Path(path).is_file():
        raise FileNotFoundError(path)
    lower = path.lower()
    if lower.endswith(".bz2"):
        return bz2.decompress(Path(path).read_bytes())
    if lower.endswith((".xz", ".lzma")):
        return lzma.decompress(Path(path).read_bytes())
    if lower.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
            if len(names) != 1:
                raise InvalidDocument(
                    f"{path} contains {len(names)} files; unpack it and pass the one with the table"
                )
            return archive.read(names[0])
    return path


def _is_file(path: str) -> bool:
    try:
        return "://" not in path and Path(path).is_file()
    except OSError:
        return False


def _is_folder(path: str) -> bool:
    try:
        return "://" not in path and Path(path).is_dir()
    except OSError:
        return False
