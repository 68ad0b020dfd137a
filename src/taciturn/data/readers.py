"""`read_ratings`: ratings from a file, a frame, a sparse matrix or arrays.

Trusted code. An error may give the number and the lines of bad rows, which are owner-only, but
never a value or an id.
"""

from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from polars import selectors

from taciturn._internal import memory
from taciturn._internal.spelling import option
from taciturn.data.options import (
    TEXT_ONLY,
    Duplicates,
    IdType,
    Missing,
    Outside,
    ReadingOptions,
)
from taciturn.data.ratings import Csr, Preparation, Ratings, compress_sorted, group
from taciturn.data.rows import NEEDED, RowLog, numbers, timestamps, whole_numbers
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.scale import Scale
from taciturn.tables.files import TableFile
from taciturn.tables.frames import is_path, to_frame
from taciturn.tables.ids import IdIndex
from taciturn.tables.names import ITEM, RATING, TIMESTAMP, USER
from taciturn.tables.opening import UnreadableTable
from taciturn.tables.text import PIECE, Types

ROLES = (USER, ITEM, RATING, TIMESTAMP)
"""Columns of a ratings table, in the order used by arrays and files without a header."""


_UNCHECKED = 4
"""Number of pieces of a table that are read between two checks of the memory that is left."""


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
            f"the scale must be declared: pass, for example, {option('scale', '1:5')}; inferring "
            "it from the data would reveal the smallest and the largest rating"
        )
    table = _Source(source, options)
    preparation = Preparation(
        is_merged=options.duplicates is not Duplicates.ERROR,
        is_filtered=options.missing is Missing.DROP or options.outside is Outside.DROP,
        is_pattern_from_values=options.outside is Outside.DROP
        or (hasattr(source, "tocoo") and scale.low <= 0 <= scale.high),
    )
    try:
        return _build(_collect_source(table, scale, options), scale, options, preparation)
    except _Repeated as error:
        raise InvalidDocument(
            f"ratings that repeat a (user, item) pair: {error.count:,}{table.example(error.pair)}; "
            f"pass {option('duplicates', 'last')} or {option('duplicates', 'mean')}"
        ) from None


class _Source:
    """A file, or a table in memory, read in pieces."""

    def __init__(self, source: object, options: ReadingOptions) -> None:
        self.file: TableFile | None = None
        self._roles = [*NEEDED, *(["timestamp"] if options.timestamps else [])]
        if is_path(source):
            self.file = TableFile(
                source,
                ROLES,
                options.columns,
                options.separator,
                options.header,
                encoding=options.encoding,
                decimal_comma=options.decimal_comma,
                max_expansion=options.max_expansion,
            )
        if not (self.file and self.file.is_text):
            _check_typed(options)
        if self.file is None:
            self._frame = to_frame(source, ROLES, options.columns)
        _check_timestamps(options, self.file.places if self.file else self._frame.columns)

    def pieces(self, types: Types | None = None) -> Iterable[pl.DataFrame]:
        """Columns of all roles that are read; `types` are those of a text file's numbers."""
        if self.file is None:
            return self._frame.select(self._roles).iter_slices(PIECE)
        return self.file.pieces(self._roles, types)

    def example(self, pair: tuple[object, object]) -> str:
        """Places of a repeated pair, found by reading the source once more."""
        log, found = RowLog(self.file), []
        own = [pl.col(role).cast(pl.String) for role in ("user", "item")]
        for piece in self.pieces():
            is_own = piece.select((own[0] == str(pair[0])) & (own[1] == str(pair[1]))).to_series()
            found += [log.rows + row for row in is_own.arg_true().to_list()]
            log.begin(len(piece))
            if len(found) > 1:
                return f", for example in {log.place(found[0])} and {log.place(found[1])}"
        return ""


def _collect_source(table: _Source, scale: Scale, options: ReadingOptions) -> "_Collected":
    """Collect the ratings of a file or of data in memory."""
    try:
        return _collect(table.pieces({"rating": pl.Float64}), scale, options, RowLog(table.file))
    except UnreadableTable:
        if table.file is None or not table.file.is_text:
            raise
    # A rating is not a number, or has a blank after it. Read as text, this is one field's matter.
    return _collect(table.pieces(), scale, options, RowLog(table.file))


def _check_typed(options: ReadingOptions) -> None:
    """Raise if an option for text files is given with another source."""
    for name in TEXT_ONLY:
        if getattr(options, name) not in (None, False):
            raise InvalidParameter(
                f"{option(name)} applies only to text files; Parquet files, frames and arrays keep "
                "their types: leave it out"
            )


def _check_timestamps(options: ReadingOptions, found: Collection[str]) -> None:
    if options.timestamps and "timestamp" not in found:
        raise InvalidDocument(
            f"there is no column of timestamps; name it with {option('columns', 'timestamp=NAME')}"
        )


@dataclass(frozen=True)
class _Collected:
    """Ratings in source order: id indices, codes and, if requested, timestamps."""

    users: IdIndex
    items: IdIndex
    codes: npt.NDArray[Any]
    timestamps: npt.NDArray[np.int64] | None


def _collect(
    pieces: Iterable[pl.DataFrame], scale: Scale, options: ReadingOptions, log: RowLog
) -> _Collected:
    """Collect pieces of a table in compact form, applying the policies for bad rows."""
    users, items = IdIndex("user"), IdIndex("item")
    codes: list[npt.NDArray[Any]] = [np.empty(0, dtype=scale.dtype)]
    when: list[npt.NDArray[np.int64]] = []
    for number, piece in enumerate(pieces):
        log.begin(len(piece))
        if options.item_id_type is IdType.INT:
            piece = piece.with_columns(item=whole_numbers(piece["item"], log))
        given = piece["rating"]
        rating = numbers(given, log, decimal_comma=options.decimal_comma)
        if rating is not given:
            piece = piece.with_columns(rating)
        if any(column.dtype.is_float() and column.is_nan().any() for column in piece):
            piece = piece.with_columns(selectors.float().fill_nan(None))  # counts as missing
        if any(piece[role].has_nulls() for role in NEEDED):
            for role in NEEDED:
                log.add(role, piece[role].is_null().to_numpy())
            is_whole = piece.select(pl.all_horizontal(pl.col(NEEDED).is_not_null())).to_series()
            log.keep(is_whole.to_numpy())
            piece = piece.filter(is_whole)
        coded, bad = scale.encode(piece["rating"].to_numpy())
        log.add("outside", bad)
        if options.outside is Outside.DROP and bad.any():
            log.keep(~bad)
            piece, coded = piece.filter(pl.Series(~bad)), coded[~bad]
        codes.append(coded)
        users.add(piece["user"])
        items.add(piece["item"])
        if "timestamp" in piece.columns:
            when.append(timestamps(piece["timestamp"], log))
        if number % _UNCHECKED == 0:
            memory.require(2 * _UNCHECKED * int(piece.estimated_size()), "reading the ratings")
    log.check(scale, options)
    # The codes together, and both directions of the compressed rows with their ids.
    memory.require(30 * sum(map(len, codes)), "reading the ratings")
    together = np.concatenate(codes)
    log.check_any_left(together.size)
    return _Collected(users, items, together, np.concatenate(when) if when else None)


class _Repeated(Exception):
    """Ratings repeat a pair: their number, and the first pair by indices or by ids."""

    def __init__(self, count: int, pair: tuple[Any, Any]) -> None:
        self.count, self.pair = count, pair


def _build(
    collected: _Collected, scale: Scale, options: ReadingOptions, preparation: Preparation
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
    try:
        scale, by_user, when = _each_pair_once(scale, by_user, when, options.duplicates)
    except _Repeated as error:
        user, item = error.pair
        error.pair = user_ids[user], item_ids[item]
        raise
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
        place = int(first.argmin())
        user = int(np.searchsorted(table.starts, place, side="right")) - 1
        raise _Repeated(int((~first).sum()), (user, int(table.columns[place])))
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
