"""Tables in files: text with any separator, compressed or not, and Parquet, read in pieces."""

import bz2
import glob
import io
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.tables.columns import ROLES, find_columns, is_header

PIECE = 2**20
"""Rows in memory at a time while reading."""

SEPARATORS = ("::", "\t", ",", ";", "|", " ")
"""Tried in this order on the first line."""

NULLS = ["", "NA", "N/A", "null", "NULL", "None"]

_UNREADABLE = (
    "a line has another number of fields, a field is not of its column's type, or the text is not "
    "UTF-8"
)


class TableFile:
    """A file with columns for user, item, rating and perhaps timestamp.

    Parameters
    ----------
    path
        A text or Parquet file, a folder or glob of Parquet files, or a URL that polars reads.
    columns, separator, header
        As in `read_ratings`.
    content
        The text itself, if it was unpacked from the file already.
    """

    def __init__(
        self,
        path: str,
        columns: dict[str, str] | None = None,
        separator: str | None = None,
        header: bool | None = None,
        *,
        content: bytes | None = None,
    ) -> None:
        if "\0" in path:
            raise InvalidDocument("a path cannot contain a null character")
        self.path = path
        self.is_text = content is not None or not _is_parquet(path)
        with _Explained(path):
            if self.is_text:
                self._source = _decompressed(path) if content is None else content
                self._scan_text(columns, separator, header)
            else:
                self._scan_parquet(columns)

    def _scan_parquet(self, columns: dict[str, str] | None) -> None:
        path = self.path
        if _is_folder(path):
            if not any(Path(path).rglob("*.parquet")):
                raise InvalidDocument(f"{path} holds no Parquet files")
            path = os.path.join(glob.escape(path), "**", "*.parquet")  # noqa: PTH118 a glob
        self._frame = pl.scan_parquet(path, glob=not _is_file(path))
        found = find_columns(self._frame.collect_schema().names(), columns)
        self.places = {role: name for role, name in vars(found).items() if name is not None}

    def _scan_text(
        self, columns: dict[str, str] | None, separator: str | None, header: bool | None
    ) -> None:
        if header is False and separator is None:
            raise InvalidParameter(
                f"name the separator of {self.path}: without a header, its first line is a rating "
                "and must not decide how all others are read; --separator"
            )
        if separator is None:
            first = re.sub('"[^"]*"', "", _first_line(self._source, self.path))
            separator = next((each for each in SEPARATORS if each in first), None)
            if separator is None:
                raise InvalidDocument(
                    f"the first line of {self.path} has no known separator; name it with separator"
                )
        if separator != "::" and len(separator.encode()) != 1:
            raise InvalidParameter(f"a separator is one character or ::, got {separator!r}")
        # To polars a double colon is two separators with an empty column in between.
        width, self._separator = (2, ":") if separator == "::" else (1, separator)
        row = _first_row(self._source, self._separator)
        fields = row[::width]
        self._header = header is not False
        if self._header:
            if header is None and columns is None and not is_header(fields):
                raise InvalidDocument(
                    f"the first line of {self.path} does not name columns for user, item and "
                    "rating; name them with --columns, or give --no-header and --separator"
                )
            found = find_columns(fields, columns, quote=False)
            order = {r: fields.index(name) for r, name in vars(found).items() if name is not None}
        elif len(fields) < 3:
            raise InvalidDocument(
                f"{self.path} has {len(fields)} column(s); user, item and rating are needed"
            )
        else:
            order = {role: place for place, role in enumerate(ROLES[: len(fields)])}
        # Longer lines are refused when they are read; shorter ones lack something.
        self._names = names = [f"column_{place}" for place in range(len(row))]
        self.places = {role: names[width * place] for role, place in order.items()}
        self._between = [name for place, name in enumerate(names) if place % width]

    def pieces(
        self, roles: list[str], types: Mapping[str, type[pl.DataType]] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Yield the columns of the given roles, piece by piece.

        In a text file every column is text, except where `types` says otherwise. What a column is
        never depends on its rows: one user's odd id would change everybody's.
        """
        with _Explained(self.path):
            declared = {
                self.places[role]: kind
                for role, kind in (types or {}).items()
                if role in self.places
            }
            frame = self._text_frame(declared) if self.is_text else self._frame
            chosen = [pl.col(self.places[role]).alias(role) for role in roles]
            if self.is_text:
                # In any column, read or not: two stray quotes would swallow all rows between them.
                broken = pl.any_horizontal(pl.col(pl.String).str.contains("\n", literal=True))
                chosen.append(broken.fill_null(value=False).alias("broken"))
            if self.is_text and self._between:
                single = pl.any_horizontal(pl.col(self._between).is_not_null())
                chosen.append(single.alias("single"))
            for piece in frame.select(chosen).collect_batches(
                chunk_size=PIECE, maintain_order=True
            ):
                if "broken" in piece.columns and piece["broken"].any():
                    raise InvalidDocument(
                        f"a field of {self.path} has a line break: a quote is not closed or not "
                        "doubled; or write the table as Parquet, where fields may have line breaks"
                    )
                if "single" in piece.columns and piece["single"].any():
                    raise InvalidDocument(f"{self.path} has single colons among its double ones")
                yield piece.select(roles)

    def _text_frame(self, types: Mapping[str, type[pl.DataType]]) -> pl.LazyFrame:
        return pl.scan_csv(
            self._source if isinstance(self._source, str) else io.BytesIO(self._source),
            has_header=False,
            skip_rows=1 if self._header else 0,
            separator=self._separator,
            schema={name: types.get(name, pl.String) for name in self._names},
            null_values=NULLS,
            raise_if_empty=False,
            glob=False,
        )


class _Explained:
    """Turns what goes wrong with a file into an error that quotes nothing of its content."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FileNotFoundError):
            raise InvalidDocument(f"there is no file {self.path}; check the path") from None
        if isinstance(error, OSError):
            reason = error.strerror or "it failed"
            raise InvalidDocument(f"cannot read {self.path}: {reason}") from None
        broken = (
            *(pl.exceptions.PolarsError, zipfile.BadZipFile, lzma.LZMAError, zlib.error),
            *(EOFError, RuntimeError, NotImplementedError),
        )
        # A panic in the library is no Exception.
        panic = type(error).__name__ == "PanicException"
        if isinstance(error, broken) or type(error) is ValueError or panic:
            raise UnreadableTable(f"cannot read {self.path} as a table: {_UNREADABLE}") from None


class UnreadableTable(InvalidDocument):
    """The file does not hold a table of the expected types."""


def _is_parquet(path: str) -> bool:
    if path.lower().endswith((".parquet", ".pq")) or _is_folder(path):
        return True
    return "*" in path and not _is_file(path)


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


def _decompressed(path: str) -> str | bytes:
    """Return the path if polars can read it as it is, else the content of the archive."""
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
                    f"{path} holds {len(names)} files; unpack it and give the one with the ratings"
                )
            return archive.read(names[0])
    return path


def _first_line(source: str | bytes, path: str) -> str:
    """Return the first line, whatever its separator: read as a table with an unlikely one."""
    row = _first_row(source, "\x1f", quote=None)
    if not row:
        raise InvalidDocument(f"{path} is empty")
    return row[0]


def _first_row(source: str | bytes, separator: str, quote: str | None = '"') -> list[str]:
    """Return the fields of the first line."""
    frame = pl.read_csv(
        source if isinstance(source, str) else io.BytesIO(source),
        has_header=False,
        separator=separator,
        quote_char=quote,
        n_rows=1,
        infer_schema=False,
        raise_if_empty=False,
        truncate_ragged_lines=True,
        glob=False,
    )
    fields = frame.row(0) if len(frame) else ()
    return [str(field or "").removeprefix("\ufeff").strip() for field in fields]
