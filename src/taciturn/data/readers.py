"""Readers: one function that takes ratings in any common form.

Everything here is on the trusted side. An error may say how many rows have a problem, for the
owner's eyes, but never shows a value.
"""

from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from polars import selectors

from taciturn.data.options import Duplicates, IdType, Missing, Outside, ReadingOptions
from taciturn.data.ratings import Csr, Preparation, Ratings, filed, group
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.scale import Scale
from taciturn.tables.files import TableFile
from taciturn.tables.frames import is_path, to_frame
from taciturn.tables.ids import IdIndex
from taciturn.tables.names import ITEM, RATING, TIMESTAMP, USER
from taciturn.tables.opening import UnreadableTable
from taciturn.tables.text import PIECE

ROLES = (USER, ITEM, RATING, TIMESTAMP)
"""Columns of a table of ratings, in the order of files without a header and of arrays."""


def read_ratings(source: object, options: ReadingOptions) -> Ratings:
    """Return the ratings in `source`. Reads private data.

    Parameters
    ----------
    source
        A CSV, TSV or Parquet file (compressed or not), a folder or glob of Parquet files, a URL
        that polars reads; a polars or pandas frame, a pyarrow table or anything else with the Arrow
        stream interface; a SciPy sparse matrix or array; three NumPy arrays (users, items,
        ratings), or four with timestamps. None of them needs pyarrow.
    options
        How to read it; the scale must be declared.
    """
    scale = options.scale
    if scale is None:
        raise InvalidParameter(
            "the scale must be declared, for example 1:5; reading it off the data would reveal the "
            "smallest and the largest rating"
        )
    collected = _collect_source(source, scale, options)
    preparation = Preparation(
        is_merged=options.duplicates is not Duplicates.ERROR,
        is_filtered=options.missing is Missing.DROP or options.outside is Outside.DROP,
        is_pattern_from_values=options.outside is Outside.DROP
        or (hasattr(source, "tocoo") and scale.low <= 0 <= scale.high),
    )
    return _build(collected, scale, options.duplicates, preparation)


def _collect_source(source: object, scale: Scale, options: ReadingOptions) -> "_Collected":
    """Take the ratings of a file or of data in memory as they come."""
    roles = ["user", "item", "rating", *(["timestamp"] if options.timestamps else [])]
    file = None
    if is_path(source):
        file = TableFile(source, ROLES, options.columns, options.separator, options.header)
    if options.item_id_type is not None and not (file and file.is_text):
        raise InvalidParameter(
            "item_id_type is for text files; Parquet files, frames and arrays keep their types"
        )
    if file is None:
        frame = to_frame(source, ROLES, options.columns)
        _check_timestamps(options, frame.columns)
        return _collect(frame.select(roles).iter_slices(PIECE), scale, options)
    _check_timestamps(options, file.places)
    try:
        pieces = file.pieces(roles, {"rating": pl.Float64})
        return _collect(_typed(pieces, options.item_id_type), scale, options)
    except UnreadableTable:
        if not file.is_text:
            raise
        # Read as text, a rating that is no number is reported as such.
        return _collect(_typed(file.pieces(roles), options.item_id_type), scale, options)


def _check_timestamps(options: ReadingOptions, found: Collection[str]) -> None:
    if options.timestamps and "timestamp" not in found:
        raise InvalidDocument(
            "there is no column of timestamps; name it with columns: timestamp=NAME"
        )


def _typed(pieces: Iterable[pl.DataFrame], item_id_type: IdType | None) -> Iterator[pl.DataFrame]:
    """Yield pieces of a text file with item ids of the declared type."""
    for piece in pieces:
        if item_id_type is IdType.INT:
            piece = piece.with_columns(item=_whole_numbers(piece["item"]))
        yield piece


def _whole_numbers(ids: pl.Series) -> pl.Series:
    """Item ids as numbers; raises where one is not written as a plain decimal."""
    numbers = ids.cast(pl.Int64, strict=False)
    odd = int((numbers.cast(pl.String).ne_missing(ids)).sum())
    if odd:
        raise InvalidDocument(
            f"at least {odd:,} item ids are not whole numbers in plain decimals, such as 7; leave "
            "out --item-id-type int"
        )
    return numbers


@dataclass(frozen=True)
class _Collected:
    """Ratings as they came: ids with their indices, codes, and timestamps if they are kept."""

    users: IdIndex
    items: IdIndex
    codes: npt.NDArray[Any]
    timestamps: npt.NDArray[np.int64] | None


def _collect(pieces: Iterable[pl.DataFrame], scale: Scale, options: ReadingOptions) -> _Collected:
    """Take pieces of a table, apply the policies, and keep what is left in compact form."""
    users, items = IdIndex("user"), IdIndex("item")
    codes: list[npt.NDArray[Any]] = [np.empty(0, dtype=scale.dtype)]
    when: list[npt.NDArray[np.int64]] = []
    rows = outside = 0
    lacking = dict.fromkeys(("user", "item", "rating"), 0)
    for piece in pieces:
        rows += len(piece)
        piece = piece.with_columns(_numbers(piece["rating"]))
        piece = piece.with_columns(selectors.float().fill_nan(None))  # counts as missing
        for role in lacking:
            lacking[role] += piece[role].null_count()
        if any(piece[role].has_nulls() for role in lacking):
            piece = piece.drop_nulls(["user", "item", "rating"])
        coded, bad = scale.encode(piece["rating"].to_numpy())
        if bad.any():
            outside += int(bad.sum())
            if options.outside is Outside.DROP:
                piece, coded = piece.filter(pl.Series(~bad)), coded[~bad]
        codes.append(coded)
        users.add(piece["user"])
        items.add(piece["item"])
        if "timestamp" in piece.columns:
            when.append(_timestamps(piece["timestamp"]))
    if options.missing is Missing.ERROR and any(lacking.values()):
        role, count = max(lacking.items(), key=lambda pair: pair[1])
        raise InvalidDocument(
            f"{count:,} rows have no {role}; complete them, or leave them out: missing=drop"
        )
    if options.outside is Outside.ERROR and outside:
        raise InvalidDocument(
            f"{outside:,} of {rows:,} ratings are not on the scale {scale}; declare the "
            "right scale, or say what to do with them: outside clip or drop"
        )
    together = np.concatenate(codes)
    if not together.size:
        raise InvalidDocument("there are no ratings; check the source and what drops rows")
    return _Collected(users, items, together, np.concatenate(when) if when else None)


def _numbers(series: pl.Series) -> pl.Series:
    """Return ratings as doubles."""
    if series.dtype == pl.Boolean or not (series.dtype.is_numeric() or series.dtype == pl.String):
        raise InvalidDocument("the rating column must hold numbers; choose another with columns")
    try:
        return series.cast(pl.Float64, strict=True)
    except pl.exceptions.PolarsError:
        raise InvalidDocument(
            "a rating is not a number; mend it, or choose another column"
        ) from None


def _timestamps(series: pl.Series) -> npt.NDArray[np.int64]:
    if series.null_count():
        raise InvalidDocument("some rows have no timestamp; complete them, or do without")
    try:
        if series.dtype == pl.String:
            numbers = series.cast(pl.Float64, strict=False)
            series = series.str.to_datetime() if numbers.has_nulls() else numbers
        if series.dtype.is_temporal():
            series = series.dt.epoch("s")
        return series.cast(pl.Int64, strict=True).to_numpy().copy()
    except pl.exceptions.PolarsError:
        raise InvalidDocument("a timestamp is neither a number nor a date; mend it") from None


def _build(
    collected: _Collected, scale: Scale, duplicates: Duplicates, preparation: Preparation
) -> Ratings:
    """Return the ratings in compressed rows, each pair once.

    Filing by item and then by user sorts each user's items. What is not needed any more is let go.
    """
    with ThreadPoolExecutor(2) as pool:
        sides = pool.map(IdIndex.finish, (collected.users, collected.items))
        (user_ids, users), (item_ids, items) = sides
    codes, when = collected.codes, collected.timestamps
    if _is_filed(users, items):
        by_user = filed(users, items, codes, len(user_ids))
        del collected, users
    elif when is None:
        by_item = group(items, users, codes, len(item_ids))
        del collected, users, items, codes
        by_user = by_item.transposed(len(user_ids))
        del by_item
    else:
        order = np.arange(codes.size, dtype=np.uint32)
        by_user = group(items, users, order, len(item_ids)).transposed(len(user_ids))
        order = by_user.codes
        when = when[order]
        by_user = Csr(by_user.starts, by_user.columns, codes[order])
    scale, by_user, when = _each_pair_once(scale, by_user, when, duplicates)
    return Ratings(
        user_ids=user_ids,
        item_ids=item_ids,
        scale=scale,
        by_user=by_user,
        timestamps=when,
        preparation=preparation,
    )


def _is_filed(users: npt.NDArray[np.int32], items: npt.NDArray[np.int32]) -> bool:
    """Return whether the rows come by user and then by item, as those of MovieLens do."""
    for begin in range(0, users.size - 1, PIECE):
        here, then = slice(begin, begin + PIECE), slice(begin + 1, begin + PIECE + 1)
        user, item = users[here][: users[then].size], items[here][: users[then].size]
        same, later = users[then] == user, users[then] > user
        if not (later | (same & (items[then] > item))).all():
            return False
    return True


def _each_pair_once(
    scale: Scale, table: Csr, when: npt.NDArray[np.int64] | None, duplicates: Duplicates
) -> tuple[Scale, Csr, npt.NDArray[np.int64] | None]:
    """Return ratings by user with each pair of user and item once, or raise."""
    if duplicates is Duplicates.MEAN:
        # Means lie between the steps. Whether there are any must not show in the scale.
        values, scale = scale.decode(table.codes), Scale(low=scale.low, high=scale.high)
        table = Csr(table.starts, table.columns, values)
    count = table.columns.size
    first = np.ones(count, dtype=np.bool_)  # whether an entry begins a new pair
    np.not_equal(table.columns[1:], table.columns[:-1], out=first[1:])
    first[table.starts[:-1][np.diff(table.starts) > 0]] = True
    if first.all():
        return scale, table, when
    if duplicates is Duplicates.ERROR:
        raise InvalidDocument(
            f"{int((~first).sum()):,} ratings repeat a pair of user and item; say what to do with "
            "them: duplicates=last or duplicates=mean"
        )
    begins = np.flatnonzero(first)
    starts = np.concatenate([[0], np.cumsum(first, dtype=np.int64)])[table.starts]
    if duplicates is Duplicates.MEAN:
        lengths = np.diff(np.append(begins, count))
        means = np.add.reduceat(table.codes.astype(np.float64), begins) / lengths
        latest = None if when is None else np.maximum.reduceat(when, begins)
        return scale, Csr(starts, table.columns[begins], scale.encode(means)[0]), latest
    last = np.append(begins[1:], count) - 1
    if when is not None:
        pair = np.cumsum(first) - 1
        last = np.lexsort((np.arange(count), when, pair))[last]
    latest = None if when is None else when[last]
    return scale, Csr(starts, table.columns[last], table.codes[last]), latest
