"""Public item features that named sets have in their archives: genres, years and types.

Only facts that hold whoever rates are read. The average rating and the number of members in
anime.csv are statistics of users and are never read; neither are tags, which users wrote.
"""

import csv
import hashlib
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from taciturn.data.download import Progress
from taciturn.data.id_lists import with_item_features
from taciturn.data.item_features import ItemFeatures, features_from_frame, read_item_features
from taciturn.data.named import archive_member, find_archive, is_named, named_set
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidDocument, InvalidParameter

Row = dict[str, Any]
"""Item of a set: item_id, genre and other public facts."""

_GENRES_100K = (
    *("unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime"),
    *("Documentary", "Drama", "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance"),
    *("Sci-Fi", "Thriller", "War", "Western"),
)
"""Genres of the flags at the end of a line of u.item, in the order of u.genre."""

_YEAR = re.compile(r"\((\d{4})[^()]*\)\s*$")
"""Year at the end of a MovieLens title."""

_SCHEMA: dict[str, Any] = {
    "item_id": pl.Int64,
    "genre": pl.List(pl.String),
    "year": pl.Int64,
    "decade": pl.String,
    "type": pl.String,
}


BUILTIN = "builtin"
"""Stands for the item features that the set of the ratings has in its archive."""


@dataclass(frozen=True)
class GivenFeatures:
    """Item features as given on the command line, checked when built and read later.

    Attributes
    ----------
    given
        Path of a table, or `builtin`.
    ratings
        Source of the ratings; `builtin` requires a named set that has features.
    """

    given: str
    ratings: object

    def __post_init__(self) -> None:
        if self.given == BUILTIN:
            _check_named(str(self.ratings))

    def join(self, read: Callable[[], Ratings]) -> Ratings:
        """The ratings that `read` returns, with the features. Reads private data.

        A table is read first, so that a mistake in it shows before the ratings are read. The
        archive of a set is there after its ratings are read.
        """
        if self.given == BUILTIN:
            ratings = read()
            return with_item_features(ratings, named_item_features(str(self.ratings)))
        features = read_item_features(self.given)
        return with_item_features(read(), features)


def named_item_features(
    source: str,
    *,
    columns: Sequence[str] | None = None,
    fetch: bool = True,
    progress: Progress = lambda done, total: None,
) -> ItemFeatures:
    """Public item features in the archive of a named set; raises if it has none.

    A variant of a set has the features of the whole set.
    """
    name = source.partition(":")[0]
    _check_named(source)
    known = named_set(name)
    member, rows = _MEMBERS[name]
    # Reading the ratings compares the archive with its checksum, and the certificate will name the
    # digest of this file.
    archive = find_archive(known, fetch=fetch, check=False, progress=progress)
    content = archive_member(known, archive, member)
    try:
        frame = pl.DataFrame([_complete(row) for row in rows(content)], schema=_SCHEMA)
    except (ValueError, KeyError, IndexError, csv.Error, pl.exceptions.PolarsError):
        raise InvalidDocument(
            f"{member} in {archive} is damaged; delete the archive and download it again"
        ) from None
    digest = hashlib.sha256(content).hexdigest()
    return features_from_frame(frame, f"{name}:{member}", digest, columns)


def _check_named(source: str) -> None:
    """Raise unless a source is a named set that has item features."""
    if not is_named(source) or source.partition(":")[0] not in _MEMBERS:
        raise InvalidParameter(
            f"{source} has no item features of its own; pass a table of features, or use one of "
            f"{', '.join(_MEMBERS)}"
        )


def _complete(row: Row) -> Row:
    """Row with all columns; the decade follows from the year."""
    year = row.get("year")
    decade = None if year is None else f"{year // 10}0s"
    return {name: row.get(name) for name in _SCHEMA} | {"decade": decade}


def _text(content: bytes) -> str:
    """Text of a file; the older MovieLens files are in Latin-1."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _film(identifier: str, title: str, genres: list[str]) -> Row:
    year = _YEAR.search(title)
    listed = [genre for genre in genres if genre not in ("(no genres listed)", "unknown")]
    return {
        "item_id": int(identifier),
        "genre": listed or None,
        "year": int(year[1]) if year else None,
    }


def _movies_dat(content: bytes) -> Iterator[Row]:
    for line in filter(None, _text(content).split("\n")):
        identifier, *title, genres = line.removesuffix("\r").split("::")
        yield _film(identifier, "::".join(title), genres.split("|"))


def _u_item(content: bytes) -> Iterator[Row]:
    for line in filter(None, _text(content).split("\n")):
        fields = line.removesuffix("\r").split("|")
        flags = fields[-len(_GENRES_100K) :]
        pairs = zip(_GENRES_100K, flags, strict=True)
        yield _film(fields[0], fields[1], [genre for genre, flag in pairs if flag == "1"])


def _movies_csv(content: bytes) -> Iterator[Row]:
    for row in csv.DictReader(io.StringIO(_text(content))):
        yield _film(row["movieId"], row["title"], row["genres"].split("|"))


def _anime_csv(content: bytes) -> Iterator[Row]:
    for row in csv.DictReader(io.StringIO(_text(content))):
        genres = [genre.strip() for genre in row["genre"].split(",") if genre.strip()]
        yield {
            "item_id": int(row["anime_id"]),
            "genre": genres or None,
            "type": row["type"] or None,
        }


_MEMBERS: dict[str, tuple[str, Callable[[bytes], Iterator[Row]]]] = {
    "ml-100k": ("u.item", _u_item),
    "ml-1m": ("movies.dat", _movies_dat),
    "ml-10m": ("movies.dat", _movies_dat),
    "ml-20m": ("movies.csv", _movies_csv),
    "ml-25m": ("movies.csv", _movies_csv),
    "ml-latest-small": ("movies.csv", _movies_csv),
    "anime": ("anime.csv", _anime_csv),
}
"""File in the archive of each set that has item features, and its reader."""
