"""Ratings and their sources: readers, named sets, splits and synthetic data."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Unpack

if TYPE_CHECKING:
    from taciturn.data.item_features import ItemFeatures
    from taciturn.data.options import ReadingKeywords, ReadingOptions
    from taciturn.data.ratings import PublicRatings, Ratings
    from taciturn.scale import Scale


def load(
    source: object,
    *,
    scale: "Scale | str | None" = None,
    columns: dict[str, str] | str | None = None,
    timestamps: bool = False,
    progress: Callable[[int, int | None], None] = lambda done, total: None,
    licence: Callable[[str], None] | None = None,
    **options: "Unpack[ReadingKeywords]",
) -> "Ratings":
    """Load ratings from a named set, a file or data in memory. Reads private data.

    Parameters
    ----------
    source
        Named set (ml-1m, netflix:paper, synthetic:100k, …), which is downloaded if necessary; a
        path; a table of pandas, polars or Arrow; a sparse matrix; or arrays of users, items and
        ratings.
    scale
        Declared scale, such as "1:5" or "0.5:5:0.5" with its step. Only a named set has its own.
    columns
        Column names by role, {"user": …, "item": …, …}, where they are not recognised.
    timestamps
        Whether to keep timestamps.
    progress
        Called with the number of bytes downloaded so far and in total.
    licence
        Called with the licence text of a named set the first time it is used.
    options
        `separator` and `header` of a text file; `duplicates`, `missing` and `outside`: what to do
        with repeated, missing and out-of-scale ratings; `item_id_type` and `max_expansion`. They
        are the options of the same names on the command line.
    """
    from taciturn.data.options import ReadingOptions

    reading = ReadingOptions.of(scale=scale, columns=columns, timestamps=timestamps, **options)
    return load_source(source, reading, progress=progress, licence=licence)


def load_source(
    source: object,
    options: "ReadingOptions",
    *,
    progress: Callable[[int, int | None], None] = lambda done, total: None,
    licence: Callable[[str], None] | None = None,
) -> "Ratings":
    """Load ratings from a named set, a file or data in memory. Reads private data.

    `progress` is called with the number of bytes downloaded so far and in total, `licence` with the
    licence text of a named set the first time it is used.
    """
    from taciturn._internal.forks import check_fork
    from taciturn.data import named
    from taciturn.data.readers import read_ratings
    from taciturn.errors import InvalidDocument

    check_fork()
    if named.is_named(source):
        return named.load_named(str(source), options, progress=progress, licence=licence)
    if isinstance(source, str) and not named.might_be_file(source):
        raise InvalidDocument(
            f"there is no file and no named set {source!r}; check the path, or run: "
            "taciturn data list"
        )
    return read_ratings(source, options)


def load_item_features(source: object, *, columns: "Sequence[str] | None" = None) -> "ItemFeatures":
    """Load public item features, for `with_item_features`. Reads no ratings.

    A feature qualifies if no rating affects it, such as genre, year or an embedding of the title.
    Averages and counts of these ratings, tags by these users, and embeddings learnt from these
    interactions are private, and no guarantee covers them here.

    Parameters
    ----------
    source
        Parquet or text file, or a table of pandas, polars or Arrow, with a column of item ids such
        as item_id and one row for each item; or a named set that has features, such as ml-1m.
        Columns hold numbers, categories, lists of categories (in text separated by |) or vectors of
        one length. A title is not a feature.
    columns
        Names of the columns to use. Default: all.
    """
    from taciturn._internal.forks import check_fork
    from taciturn.data import named
    from taciturn.data.item_features import read_item_features
    from taciturn.data.named_features import named_item_features

    check_fork()
    if isinstance(source, str) and named.is_named(source):
        return named_item_features(source, columns=columns)
    return read_item_features(source, columns=columns)


def load_public_ratings(
    source: object,
    *,
    scale: "Scale | str | None" = None,
    columns: dict[str, str] | str | None = None,
    progress: Callable[[int, int | None], None] = lambda done, total: None,
    **options: "Unpack[ReadingKeywords]",
) -> "PublicRatings":
    """Load public ratings, for `with_public_ratings`: a dataset that anyone may have.

    No guarantee covers them. A user of the private ratings whose ratings are also in the public
    dataset is not protected there.

    Parameters
    ----------
    source
        Named set, such as ml-latest-small; a Parquet or text file; or a table of pandas, polars or
        Arrow.
    scale
        Declared scale, which must nearly agree with that of the private ratings. Only a named set
        has its own.
    columns, progress, options
        As for `load`.
    """
    from taciturn.data.options import ReadingOptions
    from taciturn.data.public_ratings import read_public_ratings

    reading = ReadingOptions.of(scale=scale, columns=columns, **options)
    return read_public_ratings(source, reading, progress=progress)
