"""Opening table files: format detection, decompression and error messages."""

import glob
import os
from pathlib import Path

import polars as pl

from taciturn.errors import InvalidDocument
from taciturn.tables.expansion import DAMAGED, ExpansionLimit
from taciturn.tables.parquet_check import check_parquet
from taciturn.tables.sources import is_utf8


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
            # In a folder or glob, name the file.
            where = error.filename if isinstance(error.filename, str) else self.path
            raise InvalidDocument(f"cannot read {where}: {reason}") from None
        broken = pl.exceptions.PolarsError, *DAMAGED
        # A panic in polars is not an Exception.
        panic = type(error).__name__ == "PanicException"
        if isinstance(error, broken) or type(error) is ValueError or panic:
            raise UnreadableTable(
                f"cannot read {self.path} as a table; check its format, or write it again"
            ) from None


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


def scan_parquet(
    path: str, max_expansion: float | None = None, *, has_option: bool = False
) -> pl.LazyFrame:
    """Rows of a Parquet file, or of all Parquet files in a folder or glob.

    The structure and size of local files are checked; see `ExpansionLimit` for the arguments.
    Collect the rows inside an `abort_guard`.
    """
    if "://" in path:
        return pl.scan_parquet(path)
    files = _parquet_files(path)
    for file in files:
        check_parquet(file, ExpansionLimit(file, max_expansion, has_option))
    if all(map(is_utf8, files)):
        return pl.scan_parquet(files, glob=False)
    return pl.scan_parquet([Path(file).read_bytes() for file in files])


def _parquet_files(path: str) -> list[str]:
    """Local Parquet files that a path refers to: itself, those in a folder, or those of a glob."""
    if _is_folder(path):
        os.scandir(path).close()  # raises if it may not be read; a search would find nothing
        pattern = os.path.join(glob.escape(path), "**", "*.parquet")  # noqa: PTH118 a glob
    elif _is_file(path) or "*" not in path:
        return [path]
    else:
        pattern = path
    found = glob.glob(pattern, recursive=True, include_hidden=True)  # noqa: PTH207 a glob
    files = [file for file in found if _is_file(file)]
    if not files:
        raise InvalidDocument(f"{path} has no Parquet files; check the path")
    return sorted(files, key=lambda file: Path(file).parts)


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
