"""Ratings: immutable, compact, in compressed rows by user and by item.

This type holds private data. Only trusted code uses it; code that serves recommendations must not
import it.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn import _core
from taciturn._internal import parallel, validate
from taciturn._internal.arrays import checked
from taciturn._internal.forks import check_fork
from taciturn._internal.html import summary
from taciturn._internal.ids import id_series, match_rows
from taciturn.data.item_features import ItemFeatures, plain_source
from taciturn.data.pattern import Axis, Pattern, RatingPattern
from taciturn.errors import InvalidParameter
from taciturn.scale import Scale

IntegerRows = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Csr:
    """Ratings along one axis: row r has the entries starts[r] to starts[r + 1].

    starts (rows + 1, int64); columns (entries, int32), ascending within a row; codes (entries), the
    ratings in the compact form of their scale.
    """

    starts: IntegerRows
    columns: Indices
    codes: npt.NDArray[Any]

    def transposed(self, rows: int) -> "Csr":
        """The transpose, which has `rows` rows; its columns are sorted within each row."""
        parts = parallel.thread_count(None)
        even = np.linspace(0, self.columns.size, parts + 1)[1:-1]
        edges = [0, *np.searchsorted(self.starts, even).tolist(), self.starts.size - 1]
        inputs = self.starts, self.columns, self.codes

        def fill(part: int, *target: Any) -> None:
            _core.transpose(*inputs, edges[part], edges[part + 1], *target)

        keys = [self.columns[self.starts[a] : self.starts[b]] for a, b in pairwise(edges)]
        return _fill_parts(keys, rows, self.codes, fill)


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """Rules that turned raw rows into ratings. Public, and not covered by any guarantee.

    Attributes
    ----------
    is_merged
        Repeated rows of a (user, item) pair are merged into one rating.
    is_filtered
        Users, items or rows are dropped by their counts or contents.
    is_pattern_from_values
        Ratings are dropped by their values, so the rating pattern depends on values.
    has_user_list, has_item_list
        All ids come from a list that does not depend on the ratings.
    """

    is_merged: bool = False
    is_filtered: bool = False
    is_pattern_from_values: bool = False
    has_user_list: bool = False
    has_item_list: bool = False

    def notes(self) -> list[str]:
        """Notes for the owner on the scope of the guarantee."""
        notes = []
        if self.is_merged:
            notes.append(
                "repeated rows of a (user, item) pair are merged: the guarantee counts pairs after "
                "merging, so under unit rating adding or removing one raw row can count twice"
            )
        if self.is_filtered:
            notes.append(
                "rows are dropped before training, by counts or by contents: the guarantee covers "
                "the ratings that remain, not the selection"
            )
        return notes


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Ratings:
    """Ratings of items by users on a declared scale. Private and immutable.

    Build one with `taciturn.load`. Users and items are sorted by id. Users and items without
    ratings are allowed.

    Attributes
    ----------
    user_ids, item_ids
        Ids as given, sorted and unique.
    scale
        The declared scale.
    by_user, by_item
        The same ratings along both axes.
    timestamps
        Timestamp of each rating in the order of `by_user`, or None.
    preparation
        Rules that turned raw rows into ratings.
    item_features
        Public features of items, or None; see `with_item_features`.
    public_ratings
        Public ratings of the same items, or None; see `with_public_ratings`.
    """

    user_ids: pl.Series
    item_ids: pl.Series
    scale: Scale
    by_user: Csr
    by_item: Csr = field(init=False)
    timestamps: npt.NDArray[np.int64] | None = None
    preparation: Preparation = Preparation()
    item_features: ItemFeatures | None = None
    public_ratings: "PublicRatings | None" = None

    def __post_init__(self) -> None:
        hint = "build ratings with taciturn.load"
        for name in ("user_ids", "item_ids"):
            validate.instance(name, getattr(self, name), pl.Series, hint)
        validate.instance("scale", self.scale, Scale, hint)
        validate.instance("by_user", self.by_user, Csr, hint)
        validate.instance("preparation", self.preparation, Preparation, hint)
        if self.timestamps is not None:
            checked("timestamps", self.timestamps, "i")
        if self.item_features is not None:
            validate.instance("item_features", self.item_features, ItemFeatures, hint)
        if self.public_ratings is not None:
            validate.instance("public_ratings", self.public_ratings, PublicRatings, hint)
        if self.by_user.starts.size != len(self.user_ids) + 1:
            raise InvalidParameter("by_user must have one row for each user")
        object.__setattr__(self, "by_item", self.by_user.transposed(len(self.item_ids)))
        for array in self._arrays():
            array.flags.writeable = False

    def _arrays(self) -> list[npt.NDArray[Any]]:
        tables = (self.by_user, self.by_item)
        arrays = [array for each in tables for array in (each.starts, each.columns, each.codes)]
        return arrays if self.timestamps is None else [*arrays, self.timestamps]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of users and number of items."""
        return len(self.user_ids), len(self.item_ids)

    def __len__(self) -> int:
        return self.by_user.columns.size

    def __repr__(self) -> str:
        # Counts are private under some units, so only the scale is shown.
        return f"Ratings(scale={self.scale})"

    def _repr_html_(self) -> str:
        kinds = [
            "whole numbers" if ids.dtype.is_integer() else "text"
            for ids in (self.user_ids, self.item_ids)
        ]
        facts = [
            ("scale", str(self.scale)),
            ("user ids", kinds[0]),
            ("item ids", kinds[1]),
            ("timestamps", "not read" if self.timestamps is None else "read"),
        ]
        private = "Private. Counts are not shown, since some privacy units protect them."
        return summary("Ratings", facts, [private, *self.preparation.notes()])

    @property
    def nbytes(self) -> int:
        """Memory used by the ratings in bytes, without ids."""
        return sum(array.nbytes for array in self._arrays())

    @cached_property
    def pattern(self) -> RatingPattern:
        """The rating pattern. Public under unit `value`, private under the other units."""
        users, items = self.shape
        return RatingPattern(
            by_user=Pattern(self.by_user.starts, self.by_user.columns, items),
            by_item=Pattern(self.by_item.starts, self.by_item.columns, users),
        )

    def along(self, axis: Axis) -> Csr:
        """The ratings with one row for each user or each item."""
        validate.instance("axis", axis, Axis, "Axis.USERS or Axis.ITEMS")
        return self.by_user if axis is Axis.USERS else self.by_item

    def values(self) -> npt.NDArray[np.float32]:
        """Ratings in the order of `by_user`."""
        return self.scale.decode(self.by_user.codes)

    def rows(self) -> Indices:
        """User index of each rating, in the order of `by_user`."""
        counts = np.diff(self.by_user.starts)
        return np.repeat(np.arange(counts.size, dtype=np.int32), counts)

    def place(self, user: int, item: int) -> int:
        """Position of a rating in the order of `by_user`. Raises if the pair is not rated."""
        for name, number, count in zip(("user", "item"), (user, item), self.shape, strict=True):
            if isinstance(number, bool) or not isinstance(number, int | np.integer):
                given = validate.shown(number)
                raise InvalidParameter(f"{name} must be a row number, got {given}")
            if not 0 <= number < count:
                raise InvalidParameter(f"{name} must be the row number of a {name}")
        begin, end = self.by_user.starts[user], self.by_user.starts[user + 1]
        row = self.by_user.columns[begin:end]
        found = int(np.searchsorted(row, item))
        if found == row.size or row[found] != item:
            raise InvalidParameter("this user did not rate this item; choose a rated pair")
        return int(begin) + found

    def select(self, keep: npt.NDArray[np.bool_]) -> "Ratings":
        """Ratings selected by a boolean array in the order of `by_user`; keeps users and items."""
        if checked("keep", keep, "b").shape != (len(self),):
            raise InvalidParameter("keep must have one boolean for each rating")
        selected = np.concatenate([[0], np.cumsum(keep, dtype=np.int64)])
        by_user = Csr(
            selected[self.by_user.starts], self.by_user.columns[keep], self.by_user.codes[keep]
        )
        times = None if self.timestamps is None else self.timestamps[keep]
        return replace(self, by_user=by_user, timestamps=times)

    def replaced(self, places: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> "Ratings":
        """The same pairs with new values at some positions in the order of `by_user`."""
        checked("places", places, "i")
        if checked("values", values, "f").shape != places.shape:
            raise InvalidParameter("values must have one value for each place")
        if places.size and not (places.min() >= 0 and places.max() < len(self)):
            raise InvalidParameter("places must be positions of ratings")
        codes = self.by_user.codes.copy()
        codes[places], outside = self.scale.encode(np.asarray(values, dtype=np.float64))
        if outside.any():
            raise InvalidParameter(f"ratings must lie on the scale {self.scale}")
        return replace(self, by_user=Csr(self.by_user.starts, self.by_user.columns, codes))

    def digest(self) -> str:
        """SHA-256 digest of everything but timestamps. Private: it can confirm a guess."""
        inputs = (self.item_features, self.public_ratings)
        extra = b"".join(b"" if each is None else each.fingerprint() for each in inputs)
        return self._hashed(self.by_user.columns, self.item_ids, extra)

    def pairs_digest(self) -> str:
        """SHA-256 digest without unrated items and public inputs. Private, as `digest`.

        The same for ratings with and without item features or public ratings, whose splits are the
        same too.
        """
        is_rated = np.diff(self.by_item.starts) > 0
        places = np.cumsum(is_rated, dtype=np.int32) - np.int32(1)
        return self._hashed(places[self.by_user.columns], self.item_ids.filter(is_rated))

    def _hashed(self, columns: Indices, item_ids: pl.Series, extra: bytes = b"") -> str:
        digest = hashlib.sha256(str(self.scale).encode())
        for array in (self.by_user.starts, columns, self.by_user.codes):
            digest.update(array.tobytes())
        for ids in (self.user_ids, item_ids):
            digest.update(repr(ids.to_list()).encode())
        digest.update(extra)
        return digest.hexdigest()

    def pairs_of(self, users: pl.Series) -> pl.DataFrame:
        """Ratings of some users, with the columns user_id, item_id and rating. Private."""
        rows = match_rows(id_series(users), self.user_ids)
        rows = np.unique(rows[rows >= 0])
        starts, counts = self.by_user.starts[rows], np.diff(self.by_user.starts)[rows]
        before = np.cumsum(counts) - counts
        places = np.repeat(starts - before, counts) + np.arange(counts.sum())
        return pl.DataFrame(
            {
                "user_id": self.user_ids.gather(np.repeat(rows, counts)),
                "item_id": self.item_ids.gather(self.by_user.columns[places]),
                "rating": pl.Series(self.scale.decode(self.by_user.codes[places])),
            }
        )

    def to_frame(self) -> pl.DataFrame:
        """Table with the columns user_id, item_id, rating and, if available, timestamp."""
        check_fork()
        columns = {
            "user_id": self.user_ids.gather(self.rows()),
            "item_id": self.item_ids.gather(self.by_user.columns),
            "rating": pl.Series(self.values()),
        }
        if self.timestamps is not None:
            columns["timestamp"] = pl.Series(self.timestamps)
        return pl.DataFrame(columns)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PublicRatings:
    """Ratings that are public, of items that private ratings share; see `load_public_ratings`.

    Attributes
    ----------
    ratings
        The ratings, with ids of their own.
    source
        Name of the source for the certificate: a file name without its folder, or a named set.
    digest
        SHA-256 of the bytes of the source, before any item was matched.
    """

    ratings: Ratings
    source: str
    digest: str

    def __post_init__(self) -> None:
        check_ratings(self.ratings)
        if not (isinstance(self.digest, str) and re.fullmatch("[0-9a-f]{64}", self.digest)):
            raise InvalidParameter("digest must be 64 hexadecimal digits, such as a SHA-256")
        object.__setattr__(self, "source", plain_source(self.source))

    def __repr__(self) -> str:
        return f"PublicRatings(source={self.source!r}, ratings={len(self.ratings)})"

    def fingerprint(self) -> bytes:
        """SHA-256 of the source and of the ratings, which also depend on how they were read."""
        return hashlib.sha256((self.digest + self.ratings.digest()).encode()).digest()


def check_ratings(ratings: object, name: str = "ratings") -> None:
    """Raise unless it is `Ratings`; shows nothing of a table, which may be private."""
    hint = "load a table or a file first, such as taciturn.load(table, scale='1:5')"
    validate.instance(name, ratings, Ratings, hint)


def group(rows: Indices, columns: Indices, codes: npt.NDArray[Any], count: int) -> Csr:
    """Group triples into `count` compressed rows; entries of a row keep their order.

    The columns of the transpose are sorted within each row. A counting sort, so linear time.
    """
    edges = np.linspace(0, rows.size, parallel.thread_count(None) + 1).astype(int).tolist()
    parts = [slice(begin, end) for begin, end in pairwise(edges)]

    def fill(part: int, *target: Any) -> None:
        _core.group(rows[parts[part]], columns[parts[part]], codes[parts[part]], *target)

    return _fill_parts([rows[part] for part in parts], count, codes, fill)


def compress_sorted(rows: Indices, columns: Indices, codes: npt.NDArray[Any], count: int) -> Csr:
    """Compress triples that are already sorted by row and column into `count` rows."""
    counts = np.zeros(count, dtype=np.int64)
    _core.count_keys(rows, counts)
    return Csr(np.concatenate([[0], np.cumsum(counts)]), columns, codes)


def _fill_parts(
    keys: list[Indices], rows: int, codes: npt.NDArray[Any], fill: Callable[..., None]
) -> Csr:
    """Fill a table in parallel, one thread per part; `keys` are the row indices of each part.

    fill(part, next, columns, codes) writes the entries of a part, the first of row r at next[r].
    """
    counts = np.zeros((len(keys), rows), dtype=np.int64)
    out = np.empty(codes.size, dtype=np.int32), np.empty_like(codes)

    def each_part(work: Callable[[int], None]) -> None:
        parallel.for_ranges(lambda part, _: work(part), len(keys), size=1, threads=len(keys))

    each_part(lambda part: _core.count_keys(keys[part], counts[part]))
    starts = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    places = starts[:-1] + np.cumsum(counts, axis=0) - counts
    each_part(lambda part: fill(part, places[part], *out))
    return Csr(starts, *out)
