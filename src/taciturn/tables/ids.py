"""Mapping between ids and indices."""

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn import _core
from taciturn.errors import InvalidDocument, InvalidParameter

INDEX_MAX = 2**31 - 1

Indices = npt.NDArray[np.int32]


class IdIndex:
    """Collects ids piece by piece and assigns indices in sorted order.

    Integers stay integers and text stays text. Integers are stored in 32 bits where they fit. They
    are indexed by a dense table if their range is small; all other ids are looked up in a growing
    list of distinct ids.
    """

    def __init__(self, role: str) -> None:
        self.role = role
        self._pieces: list[npt.NDArray[np.signedinteger]] = []
        self._ends: tuple[int, int] | None = None  # smallest and largest number
        self._seen: pl.DataFrame | None = None

    def add(self, ids: pl.Series) -> None:
        """Add the next ids, without missing values."""
        ids = self._normal(ids)
        if len(ids) == 0:
            return
        if ids.dtype == pl.String or ids.dtype == pl.UInt64:
            self._pieces.append(self._look_up(ids))
            return
        low, high = int(ids.min()), int(ids.max())  # type: ignore[arg-type]
        if self._ends is not None:
            low, high = min(low, self._ends[0]), max(high, self._ends[1])
        self._ends = low, high
        narrow = low >= -(2**31) and high < 2**31
        self._pieces.append(ids.to_numpy().astype(np.int32 if narrow else np.int64))

    def finish(self) -> tuple[pl.Series, Indices]:
        """Distinct ids, sorted, and the index of each added id."""
        if self._ends is not None:
            low, high = self._ends
            if high - low < max(4 * sum(map(len, self._pieces)), 2**16):
                return self._by_table(low, high)
            pieces, self._pieces = self._pieces, []
            self._pieces = [self._look_up(pl.Series(p).cast(pl.Int64)) for p in pieces]
        if self._seen is None:
            return pl.Series([], dtype=pl.Int64), np.empty(0, dtype=np.int32)
        ids = self._seen["id"]
        order = ids.arg_sort().to_numpy()
        place = np.empty(len(ids), dtype=np.int32)
        place[order] = np.arange(len(ids), dtype=np.int32)
        return ids.gather(order), self._joined(place, 0)

    def _normal(self, ids: pl.Series) -> pl.Series:
        dtype = ids.dtype
        if dtype in (pl.Categorical, pl.Enum, pl.Int128):
            return ids.cast(pl.String)
        if dtype.is_float():
            whole = ids.cast(pl.Int64, strict=False)
            if not whole.has_nulls() and (whole.cast(pl.Float64) == ids.cast(pl.Float64)).all():
                return whole
        if dtype.is_integer() or dtype == pl.String:
            return ids
        raise InvalidDocument(f"{self.role} ids must be whole numbers or text; convert the column")

    def _look_up(self, ids: pl.Series) -> Indices:
        """Positions of ids in the list of distinct ids; new ids are appended to it."""
        ids = ids.alias("id")
        if self._seen is None:
            self._seen = pl.DataFrame({"id": ids.clear(), "place": pl.Series([], dtype=pl.Int32)})
        known = len(self._seen)
        new = ids.unique(maintain_order=True).to_frame().join(self._seen, on="id", how="anti")
        if known + len(new) > INDEX_MAX:
            raise InvalidDocument(f"there are more than {INDEX_MAX:,} {self.role}s; use fewer")
        places = pl.Series(np.arange(known, known + len(new), dtype=np.int32))
        self._seen = pl.concat([self._seen, new.with_columns(place=places)])
        found = ids.to_frame().join(self._seen, on="id", how="left", maintain_order="left")
        return found["place"].to_numpy().copy()

    def _by_table(self, low: int, high: int) -> tuple[pl.Series, Indices]:
        present = np.zeros(high - low + 1, dtype=np.bool_)
        for piece in self._pieces:
            _core.mark(piece, low, present)
        index = np.cumsum(present, dtype=np.int32) - np.int32(1)
        return pl.Series(np.flatnonzero(present) + low), self._joined(index, low)

    def _joined(self, table: Indices, low: int) -> Indices:
        """table[id − low] for all added ids, which are freed on the way."""
        indices = np.empty(sum(map(len, self._pieces)), dtype=np.int32)
        begin = 0
        for number, piece in enumerate(self._pieces):
            _core.look_up(piece, low, table, indices[begin : begin + len(piece)])
            begin += len(piece)
            self._pieces[number] = piece[:0]
        return indices


def index_of(role: str, identifier: int | str, ids: pl.Series) -> int:
    """Index of an id. Raises if it is unknown."""
    if isinstance(identifier, str) != ids.dtype.is_integer():
        try:
            place = ids.search_sorted(identifier)
        except (pl.exceptions.PolarsError, OverflowError):
            place = len(ids)
        if place < len(ids) and ids[place] == identifier:
            return place
    raise InvalidParameter(f"there is no {role} {identifier!r}")
