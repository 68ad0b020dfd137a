"""Ratings and their sources: readers, named sets, splits and synthetic data."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Unpack

if TYPE_CHECKING:
    from taciturn.data.options import ReadingKeywords, ReadingOptions
    from taciturn.data.ratings import Ratings
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
