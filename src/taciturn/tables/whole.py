"""Small tables read whole: id lists, exclusions, titles, item profiles.

They have the same formats, compression and quoting as training data. They are not trained on, so
column types may be inferred from rows.
"""

import gzip
import os
from pathlib import Path

import polars as pl

from taciturn._internal.forks import check_fork
from taciturn.errors import InvalidDocument
from taciturn.tables.abort_guard import abort_guard
from taciturn.tables.columns import Role, column_of
from taciturn.tables.fields import NULLS, plain_name
from taciturn.tables.names import ID, ITEM, RATING, TIMESTAMP, TITLE, USER
from taciturn.tables.opening import (
    Explained,
    checked_path,
    is_parquet,
    scan_parquet,
)
from taciturn.tables.sources import readable, text_source
from taciturn.tables.text import TextRows, find_separator

_NAMES = frozenset(
    {ID, *(name for role in (USER, ITEM, RATING, TIMESTAMP, TITLE) for name in role.names)}
)


def read_table(path: str | os.PathLike[str], *, is_typed: bool = True) -> pl.DataFrame:
    """Table in a Parquet file or in a text file with a header, compressed or not.

    With `is_typed`, a text column becomes numeric if all its fields are numbers. A file separated
    by double colons may lack a header, as movies.dat of MovieLens does: its columns are then id,
    title and others.
    """
    check_fork()
    path = checked_path(path)
    with Explained(path):
        if is_parquet(path):
            with abort_guard(path):
                return scan_parquet(path).collect()
        source = text_source(path)
        separator = find_separator(path, source, single=_NAMES)
        if separator == "::":
            text = _double_colons(path, source)
        else:
            text = _frame(TextRows(path, source, separator, has_options=False))
    return text.select(_typed(column) for column in text) if is_typed else text


def id_column(frame: pl.DataFrame, role: Role, source: str) -> pl.Series:
    """Column of user or item ids, which may also be named id."""
    found = column_of(frame, role)
    if found is None:
        names = [name for name in frame.columns if plain_name(name) == ID]
        found = frame[names[0]] if names else None
    if found is None:
        raise InvalidDocument(
            f"{source} has no column of {role.name} ids; name one in its header, such as "
            f"{role.aliases[0]}"
        )
    return found


def _frame(rows: TextRows) -> pl.DataFrame:
    places: dict[str, int] = {}
    for place, name in enumerate(rows.fields):
        places.setdefault(name, place)
    empty = pl.DataFrame(schema=dict.fromkeys(places, pl.String))
    return pl.concat([empty, *rows.pieces(places)])


def _typed(column: pl.Series) -> pl.Series:
    """Text column as numbers if all its fields are numbers; 007 is not a number."""
    if column.str.contains(r"^\s*[+-]?0\d").any():
        return column
    for kind in (pl.Int64, pl.Float64):
        numbers = column.str.strip_chars().cast(kind, strict=False)
        if numbers.null_count() == column.null_count():
            return numbers
    return column


def _double_colons(path: str, source: str | bytes) -> pl.DataFrame:
    """Table separated by double colons; fields may contain single colons and quotes."""
    lines = [line for line in _lines(source) if line]
    header = [field.strip() for field in lines[0].split("::")]
    if _NAMES.isdisjoint(plain_name(name) for name in header):
        header = [ID, "title", *(f"column_{place}" for place in range(2, len(header)))]
        lines = ["", *lines]
    rows = [line.split("::") for line in lines[1:]]
    if longer := [len(row) for row in rows if len(row) > len(header)]:
        raise InvalidDocument(
            f"a line of {path} has {longer[0]} fields, but the first line has {len(header)}; "
            "correct it"
        )
    columns = {
        name: pl.Series([row[place] if place < len(row) else None for row in rows], dtype=pl.String)
        for place, name in enumerate(header)
    }
    return pl.DataFrame(columns).with_columns(
        pl.when(~pl.all().is_in(NULLS)).then(pl.all()).name.keep()
    )


def _lines(source: str | bytes) -> list[str]:
    """Lines of a text. Older MovieLens files are in Latin-1."""
    try:
        frame = pl.read_csv(
            readable(source),
            has_header=False,
            new_columns=["line"],
            separator="\x1f",
            quote_char=None,
            infer_schema=False,
            glob=False,
        )
        lines = frame["line"].drop_nulls().to_list()
    except pl.exceptions.ComputeError:
        content = source if isinstance(source, bytes) else Path(source).read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        lines = content.decode("latin-1").split("\n")
    return [line.removeprefix("\ufeff").removesuffix("\r") for line in lines]
