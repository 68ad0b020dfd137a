"""The Netflix Prize archive: one text file per film, in a tar inside a tar."""

import gzip
import io
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from taciturn.errors import InvalidDocument

_BATCH = 2**26
"""Number of bytes of text parsed at a time."""


def read_prize_archive(archive: Path) -> pl.DataFrame:
    """Table of all ratings with the columns user_id, item_id, rating and timestamp (a date).

    The first line of a film's file is the film's number and a colon. Every other line is
    user,rating,date.
    """
    tables = []
    text, films, counts = io.BytesIO(), [], []
    try:
        for film, lines in _films(archive):
            films.append(film)
            counts.append(lines.count(b"\n"))
            text.write(lines)
            if text.tell() > _BATCH:
                tables.append(_parse(text, films, counts))
                text, films, counts = io.BytesIO(), [], []
        if films:
            tables.append(_parse(text, films, counts))
    except (tarfile.TarError, zlib.error, OSError, EOFError, ValueError, pl.exceptions.PolarsError):
        raise InvalidDocument(f"{archive} is damaged; delete it and download it again") from None
    if not tables:
        raise InvalidDocument(f"{archive} has no training set; expected the Netflix Prize archive")
    return pl.concat(tables)


def _films(archive: Path) -> Iterator[tuple[int, bytes]]:
    """Yield each film's number and its lines."""
    with gzip.open(archive) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as outer:
        for member in outer:
            if not member.name.endswith("training_set.tar"):
                continue
            stream = outer.extractfile(member)
            if stream is None:
                continue
            with tarfile.open(fileobj=stream, mode="r|*") as inner:
                for file in inner:
                    content = inner.extractfile(file)
                    if content is None:
                        continue
                    head, _, lines = content.read().partition(b":\n")
                    if lines and not lines.endswith(b"\n"):
                        lines += b"\n"
                    yield int(head), lines


def _parse(text: io.BytesIO, films: list[int], counts: list[int]) -> pl.DataFrame:
    types = [pl.Int32, pl.UInt8, pl.Date]
    table = pl.read_csv(text.getvalue(), has_header=False, schema_overrides=types)
    table.columns = ["user_id", "rating", "timestamp"]
    items = pl.Series(np.repeat(np.array(films, dtype=np.int32), counts))
    return table.with_columns(item_id=items).select("user_id", "item_id", "rating", "timestamp")
