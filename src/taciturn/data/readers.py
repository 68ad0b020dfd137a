"""`read_ratings`: ratings from a file, a frame, a sparse matrix or arrays.

Trusted code. An error may give the number of bad rows, which is owner-only, but never a value.
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
from taciturn.data.ratings import Csr, Preparation, Ratings, compress_sorted, group
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.scale import Scale
from taciturn.tables.files import TableFile
from taciturn.tables.frames import is_path, to_frame
from taciturn.tables.ids import IdIndex
from taciturn.tables.names import ITEM, RATING, TIMESTAMP, USER
from taciturn.tables.opening import UnreadableTable
from taciturn.tables.text import PIECE

ROLES = (USER, ITEM, RATING, TIMESTAMP)
"""Columns of a ratings table, in the order used by arrays and files without a header."""


def read_ratings(source: object, options: ReadingOptions) -> Ratings:
    """Read the ratings in `source`. Reads private data.

    Parameters
    ----------
    source
        A CSV, TSV or Parquet file (compressed or not), a folder or glob of Parquet files, a URL
        that polars reads; a polars or pandas frame, a pyarrow table or anything else with the Arrow
        stream interface; a SciPy sparse matrix or array; three NumPy arrays (users, items,
        ratings), or four with timestamps. None of them needs pyarrow.
    options
        Reading options; the scale is required.
    """
    scale = options.scale
    if scale is None:
        raise InvalidParameter(
            "the scale must be declared: pass --scale, for example --scale 1:5; inferring it from "
            "the data would reveal the smallest and the largest rating"
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
    """Collect the ratings of a file or of data in memory."""
    roles = ["user", "item", "rating", *(["timestamp"] if options.timestamps else [])]
    file = None
    if is_path(source):
        file = TableFile(
            source,
            ROLES,
            options.columns,
            options.separator,
            options.header,
            max_expansion=options.max_expansion,
        )
    if options.item_id_type is not None and not (file and file.is_text):
        raise InvalidParameter(
            "item_id_type applies only to text files; Parquet files, frames and arrays keep their "
            "types: leave out --item-id-type"
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
        # Read as text to report a rating that is not a number.
        return _collect(_typed(file.pieces(roles), options.item_id_type), scale, options)


def _check_timestamps(options: ReadingOptions, found: Collection[str]) -> None:
    if options.timestamps and "timestamp" not in found:
        raise InvalidDocument(
            "there is no column of timestamps; name it with --columns timestamp=NAME"
        )


def _typed(pieces: Iterable[pl.DataFrame], item_id_type: IdType | None) -> Iterator[pl.DataFrame]:
    """Pieces of a text file, with the item ids converted to the declared type."""
    for piece in pieces:
        if item_id_type is IdType.INT:
            piece = piece.with_columns(item=_whole_numbers(piece["item"]))
        yield piece


def _whole_numbers(ids: pl.Series) -> pl.Series:
    """Item ids as integers. Raises if one is not a plain decimal number."""
    numbers = ids.cast(pl.Int64, strict=False)
    odd = int((numbers.cast(pl.String).ne_missing(ids)).sum())
    if odd:
        raise InvalidDocument(
            f"at least {odd:,} item ids are not whole numbers in plain decimal form, such as 7; "
            "leave out --item-id-type int"
        )
    return numbers


@dataclass(frozen=True)
class _Collected:
    """Ratings in source order: id indices, codes and, if requested, timestamps."""

    users: IdIndex
    items: IdIndex
    codes: npt.NDArray[Any]
    timestamps: npt.NDArray[np.int64] | None


def _collect(pieces: Iterable[pl.DataFrame], scale: Scale, options: ReadingOptions) -> _Collected:
    """Collect pieces of a table in compact form, applying the policies for bad rows."""
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
            f"rows without a {role}: {count:,}; complete them, or drop them with --missing drop"
        )
    if options.outside is Outside.ERROR and outside:
        raise InvalidDocument(
            f"{outside:,} of {rows:,} ratings are not on the scale {scale}; correct --scale, or "
            "pass --outside clip or --outside drop"
        )
    together = np.concatenate(codes)
    if not together.size:
        raise InvalidDocument(
            "there are no ratings; check the source, and --missing and --outside if they drop rows"
        )
    return _Collected(users, items, together, np.concatenate(when) if when else None)


def _numbers(series: pl.Series) -> pl.Series:
    """Ratings as 64-bit floats."""
    if series.dtype == pl.Boolean or not (series.dtype.is_numeric() or series.dtype == pl.String):
        raise InvalidDocument(
            "the rating column must hold numbers; choose another with --columns rating=NAME"
        )
    try:
        return series.cast(pl.Float64, strict=True)
    except pl.exceptions.PolarsError:
        raise InvalidDocument(
            "a rating is not a number; correct it, or choose another column with --columns "
            "rating=NAME"
        ) from None


def _timestamps(series: pl.Series) -> npt.NDArray[np.int64]:
    if series.null_count():
        raise InvalidDocument(
            "some rows have no timestamp; complete them, or read without timestamps"
        )
    try:
        if series.dtype == pl.String:
            numbers = series.cast(pl.Float64, strict=False)
            series = series.str.to_datetime() if numbers.has_nulls() else numbers
        if series.dtype.is_temporal():
            series = series.dt.epoch("s")
        return series.cast(pl.Int64, strict=True).to_numpy().copy()
    except pl.exceptions.PolarsError:
        raise InvalidDocument("a timestamp is neither a number nor a date; correct it") from None


def _build(
    collected: _Collected, scale: Scale, duplicates: Duplicates, preparation: Preparation
) -> Ratings:
    """Ratings in compressed rows, with each pair once.

    Grouping by item and then by user sorts each user's items. Arrays are freed as soon as they are
    no longer needed.
    """
    with ThreadPoolExecutor(2) as pool:
        indexed = pool.map(IdIndex.finish, (collected.users, collected.items))
        (user_ids, users), (item_ids, items) = indexed
    codes, when = collected.codes, collected.timestamps
    if _is_sorted(users, items):
        by_user = compress_sorted(users, items, codes, len(user_ids))
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


def _is_sorted(users: npt.NDArray[np.int32], items: npt.NDArray[np.int32]) -> bool:
    """True if the rows are sorted by user and then by item, as in MovieLens."""
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
    """Ratings by user with each pair once, duplicates handled by the policy."""
    if duplicates is Duplicates.MEAN:
        # Means lie between the steps of the scale. The scale must not reveal duplicates.
        values, scale = scale.decode(table.codes), Scale(low=scale.low, high=scale.high)
        table = Csr(table.starts, table.columns, values)
    count = table.columns.size
    first = np.ones(count, dtype=np.bool_)  # True where an entry begins a new pair
    np.not_equal(table.columns[1:], table.columns[:-1], out=first[1:])
    first[table.starts[:-1][np.diff(table.starts) > 0]] = True
    if first.all():
        return scale, table, when
    if duplicates is Duplicates.ERROR:
        raise InvalidDocument(
            f"ratings that repeat a (user, item) pair: {int((~first).sum()):,}; pass --duplicates "
            "last or --duplicates mean"
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
