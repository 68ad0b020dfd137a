"""Files of tables before their rows are read: formats, compression, and errors that say the fix."""

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
    "a line has another number of fields, a field is not of its column's type, or the text is not "
    "UTF-8"
)


class UnreadableTable(InvalidDocument):
    """The file does not hold a table of the expected types."""


class Explained:
    """Turns what goes wrong with a file into an error that quotes nothing of its content."""

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
            reason = error.strerror or "it is damaged, or not compressed as its name says"
            raise InvalidDocument(f"cannot read {self.path}: {reason}") from None
        broken = (
            *(pl.exceptions.PolarsError, zipfile.BadZipFile, lzma.LZMAError, zlib.error),
            *(EOFError, RuntimeError, NotImplementedError),
        )
        # A panic in the library is no Exception.
        panic = type(error).__name__ == "PanicException"
        if isinstance(error, broken) or type(error) is ValueError or panic:
            raise UnreadableTable(f"cannot read {self.path} as a table: {_UNREADABLE}") from None


def checked_path(path: str | os.PathLike[str]) -> str:
    """Path as text; raises if no file can have it."""
    text = os.fspath(path)
    if "\0" in text:
        raise InvalidDocument("a path cannot contain a null character")
    return text


def is_parquet(path: str, header: bool | None = None) -> bool:
    """Whether a path names Parquet files, by its name or its first bytes.

    The bytes do not count for a text file that is declared to have no header: they may be a private
    id.
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
    """Rows of a Parquet file, or of all such files in a folder or glob."""
    pattern = path
    if _is_folder(path):
        if not any(Path(path).rglob("*.parquet")):
            raise InvalidDocument(f"{path} holds no Parquet files")
        pattern = os.path.join(glob.escape(path), "**", "*.parquet")  # noqa: PTH118 a glob
    return pl.scan_parquet(pattern, glob=not _is_file(pattern))


def text_source(path: str) -> str | bytes:
    """Path of a text that polars reads as it is (plain, gzip, Zstandard, URL), else its content."""
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
                    f"{path} holds {len(names)} files; unpack it and give the one with the table"
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
