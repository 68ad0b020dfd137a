"""Ratings: immutable, compact, in compressed rows by user and by item.

This type holds private data. It lives on the trusted side only; nothing that serves recommendations
may import it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tacit import _core, _parallel
from tacit.data.scale import Scale
from tacit.errors import InvalidParameter

IntegerRows = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Csr:
    """One direction of a table of ratings: row r has the entries starts[r] to starts[r + 1].

    starts (rows + 1, int64); columns (entries, int32), rising within a row; codes (entries), the
    ratings in the compact form of their scale.
    """

    starts: IntegerRows
    columns: Indices
    codes: npt.NDArray[Any]

    def transposed(self, rows: int) -> "Csr":
        """Return the other direction, which has `rows` rows; its columns rise."""
        out = _empty(self.columns, rows, self.codes)
        inputs = self.starts, self.columns, self.codes
        _fill(out, lambda *part: _core.transpose(*inputs, *part))
        return out


class Ratings:
    """Ratings of items by users on a declared scale. Private; cannot be changed.

    Build one with `tacit.data.readers.read_ratings`. Users and items are in the order of their ids.
    A user or item may be without ratings.

    Attributes
    ----------
    user_ids, item_ids
        Ids as given, rising, without repetition.
    scale
        The declared scale.
    by_user, by_item
        The same ratings in both directions.
    timestamps
        One for each rating in the order of `by_user`, or None.
    """

    def __init__(
        self,
        *,
        user_ids: pl.Series,
        item_ids: pl.Series,
        scale: Scale,
        by_user: Csr,
        timestamps: npt.NDArray[np.int64] | None = None,
    ) -> None:
        if by_user.starts.size != len(user_ids) + 1:
            raise InvalidParameter("by_user must have one row for each user")
        self.user_ids = user_ids
        self.item_ids = item_ids
        self.scale = scale
        self.by_user = by_user
        self.by_item = by_user.transposed(len(item_ids))
        self.timestamps = timestamps
        for direction in (self.by_user, self.by_item):
            for array in (direction.starts, direction.columns, direction.codes):
                array.flags.writeable = False
        if timestamps is not None:
            timestamps.flags.writeable = False

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of users and of items."""
        return len(self.user_ids), len(self.item_ids)

    def __len__(self) -> int:
        return self.by_user.columns.size

    def __repr__(self) -> str:
        # Counts are private under some units: nothing of the data but its scale is shown.
        return f"Ratings(scale={self.scale})"

    @property
    def nbytes(self) -> int:
        """Memory of the ratings themselves, ids not counted."""
        arrays = [
            array
            for side in (self.by_user, self.by_item)
            for array in (side.starts, side.columns, side.codes)
        ]
        if self.timestamps is not None:
            arrays.append(self.timestamps)
        return sum(array.nbytes for array in arrays)

    def values(self) -> npt.NDArray[np.float32]:
        """Return the ratings in the order of `by_user`."""
        return self.scale.decode(self.by_user.codes)

    def rows(self) -> Indices:
        """Return the user index of each rating in the order of `by_user`."""
        counts = np.diff(self.by_user.starts)
        return np.repeat(np.arange(counts.size, dtype=np.int32), counts)

    def select(self, keep: npt.NDArray[np.bool_]) -> "Ratings":
        """Return the ratings marked in the order of `by_user`, with the same users and items."""
        kept = np.concatenate([[0], np.cumsum(keep, dtype=np.int64)])
        by_user = Csr(
            kept[self.by_user.starts], self.by_user.columns[keep], self.by_user.codes[keep]
        )
        return Ratings(
            user_ids=self.user_ids,
            item_ids=self.item_ids,
            scale=self.scale,
            by_user=by_user,
            timestamps=None if self.timestamps is None else self.timestamps[keep],
        )

    def compact(self) -> "Ratings":
        """Return the same ratings without the users and items that have none."""
        has_user = np.diff(self.by_user.starts) > 0
        has_item = np.diff(self.by_item.starts) > 0
        starts = np.concatenate([self.by_user.starts[:-1][has_user], [len(self)]])
        places = np.cumsum(has_item, dtype=np.int32) - np.int32(1)
        return Ratings(
            user_ids=self.user_ids.filter(pl.Series(has_user)),
            item_ids=self.item_ids.filter(pl.Series(has_item)),
            scale=self.scale,
            by_user=Csr(
                starts.astype(np.int64), places[self.by_user.columns], self.by_user.codes.copy()
            ),
            timestamps=None if self.timestamps is None else self.timestamps.copy(),
        )

    def to_frame(self) -> pl.DataFrame:
        """Return a table with the columns user_id, item_id, rating and, if kept, timestamp."""
        columns = {
            "user_id": self.user_ids.gather(self.rows()),
            "item_id": self.item_ids.gather(self.by_user.columns),
            "rating": pl.Series(self.values()),
        }
        if self.timestamps is not None:
            columns["timestamp"] = pl.Series(self.timestamps)
        return pl.DataFrame(columns)


def group(rows: Indices, columns: Indices, codes: npt.NDArray[Any], count: int) -> Csr:
    """Return triples in `count` compressed rows; entries of a row keep their order.

    Transposing the result gives rows whose columns rise. Counting only, linear in the ratings.
    """
    out = _empty(rows, count, codes)
    _fill(out, lambda *part: _core.group(rows, columns, codes, *part))
    return out


def _empty(keys: Indices, rows: int, codes: npt.NDArray[Any]) -> Csr:
    """Return a table whose rows start where those with the given keys do, yet without entries."""
    starts = np.empty(rows + 1, dtype=np.int64)
    _core.row_starts(keys, starts)
    return Csr(starts, np.empty(codes.size, dtype=np.int32), np.empty_like(codes))


def _fill(out: Csr, write: Callable[..., None]) -> None:
    """Have threads write parts of the rows, each with about as many entries."""
    threads = _parallel.thread_count(None)
    bounds = np.searchsorted(out.starts, np.linspace(0, out.columns.size, threads + 1)[1:-1])
    edges = [0, *bounds.tolist(), out.starts.size - 1]

    def work(part: int, _: int) -> None:
        write(out.starts, out.columns, out.codes, edges[part], edges[part + 1])

    _parallel.for_ranges(work, threads, size=1, threads=threads)
