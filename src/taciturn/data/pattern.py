"""The rating pattern: the set of rated (user, item) pairs, without their values.

Public under unit `value`, private under `rating` and `user`. One type serves both cases: under
`rating` and `user`, code must protect a `RatingPattern` as it protects the ratings.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from taciturn._internal.rows import row_products
from taciturn.errors import InvalidParameter

ENTRIES_MAX = 2**33
"""Maximum number of ratings whose sums are certain not to overflow, whatever the shape."""


class Axis(StrEnum):
    """The rows of a table: users or items."""

    USERS = "users"
    ITEMS = "items"

    @property
    def other(self) -> "Axis":
        """The axis of the counterparts: the items of a user, the users of an item."""
        return Axis.USERS if self is Axis.ITEMS else Axis.ITEMS

    @property
    def singular(self) -> str:
        """Name of one row."""
        return self.value.removesuffix("s")


@dataclass(frozen=True, eq=False)
class Pattern:
    """Rated pairs in compressed rows: row r has the entries starts[r] to starts[r + 1].

    starts (rows + 1, int64); columns (entries, int32), ascending within a row and below `width`,
    the number of counterparts. Checked when built; the arrays are read-only.
    """

    starts: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    width: int

    def __post_init__(self) -> None:
        for name, dtype in (("starts", np.int64), ("columns", np.int32)):
            fixed = frozen(name, getattr(self, name), dtype, is_shared=True)
            object.__setattr__(self, name, fixed)
        starts, columns = self.starts, self.columns
        is_rising = starts.size > 0 and bool((np.diff(starts) >= 0).all())
        if not is_rising or starts[0] != 0 or starts[-1] != columns.size:
            raise InvalidParameter("starts must be ascending, from 0 to the number of entries")
        if columns.size > ENTRIES_MAX:
            raise InvalidParameter("there can be at most 2^33 ratings")
        if columns.size and not 0 <= columns.min() <= columns.max() < self.width:
            raise InvalidParameter("columns must refer to rows of the counterparts")
        rises = np.diff(columns) > 0
        rises[starts[1:-1][(starts[1:-1] > 0) & (starts[1:-1] < columns.size)] - 1] = True
        if not rises.all():
            raise InvalidParameter(
                "columns must be strictly ascending within each row: a pair occurs at most once"
            )

    def __len__(self) -> int:
        return self.starts.size - 1

    @property
    def entries(self) -> int:
        """Number of rated pairs."""
        return int(self.columns.size)

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """Number of ratings of each row."""
        return np.diff(self.starts)

    def entry_rows(self) -> npt.NDArray[np.int64]:
        """Row of each entry."""
        return np.repeat(np.arange(len(self)), self.counts)

    def ranges(self, parts: int) -> list[tuple[int, int]]:
        """At most `parts` ranges of rows with about equal numbers of entries."""
        even = np.linspace(0, self.entries, parts + 1)[1:-1]
        edges = [0, *np.searchsorted(self.starts, even).tolist(), len(self)]
        return [(begin, end) for begin, end in pairwise(edges) if begin < end]

    def transposed(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Values of the entries, given row by row, in the order of the other axis."""
        shape = len(self), self.width
        table = scipy.sparse.csr_array((values, self.columns, self.starts), shape=shape)
        found: npt.NDArray[Any] = table.tocsc().data
        return found

    def product(
        self, values: npt.NDArray[np.float64], threads: int | None = None
    ) -> npt.NDArray[np.float64]:
        """Sum over the entries of each row of a number of each counterpart."""
        if values.shape != (self.width,):
            raise InvalidParameter("pass one number for each counterpart")
        return row_products(self.starts, self.columns, values, threads)

    def ones(self) -> scipy.sparse.csr_array:
        """The pattern as a sparse table of ones (rows × width)."""
        entries = np.ones(self.entries, dtype=np.float32)
        shape = len(self), self.width
        return scipy.sparse.csr_array((entries, self.columns, self.starts), shape=shape)

    def is_same(self, other: "Pattern") -> bool:
        """True if both hold the same pairs in the same order."""
        if self is other:
            return True
        return (
            self.width == other.width
            and np.array_equal(self.starts, other.starts)
            and np.array_equal(self.columns, other.columns)
        )


@dataclass(frozen=True, eq=False)
class RatingPattern:
    """The rated pairs along both axes."""

    by_user: Pattern
    by_item: Pattern

    def along(self, axis: Axis) -> Pattern:
        """The pattern with one row for each user or each item."""
        return self.by_user if axis is Axis.USERS else self.by_item

    @property
    def entries(self) -> int:
        """Number of rated pairs."""
        return self.by_user.entries


def frozen(
    name: str, array: npt.NDArray[Any], dtype: type[np.generic], *, is_shared: bool = False
) -> npt.NDArray[Any]:
    """Read-only copy, so that checks made now still hold when the array is used.

    With `is_shared`, an array that is already read-only, such as those of ratings, is not copied.
    """
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu":
        raise InvalidParameter(f"{name} must be an array of integers")
    is_safe = array.dtype == dtype and not array.flags.writeable and array.flags.c_contiguous
    if is_shared and is_safe and array.base is None:
        return array
    copy = np.array(array, dtype=dtype, order="C")
    if array.size and not np.array_equal(copy, array):
        raise InvalidParameter(f"{name} must fit {np.dtype(dtype).name}")
    copy.flags.writeable = False
    return copy
