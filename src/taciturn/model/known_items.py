"""Items that users know already: left out of their lists, and reasons for other items."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn.model.profiles import Rows


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class KnownItems:
    """Items that some users know, by row.

    User r knows the items columns[starts[r]:starts[r + 1]], in ascending order.

    Attributes
    ----------
    starts, columns
        Items of each user.
    values
        The users' own ratings of them, NaN where unknown; None without any.
    is_own
        False if the items do not come from the users and are only left out of lists.
    """

    starts: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64] | None = None
    is_own: bool = True

    @classmethod
    def none(cls, users: int) -> "KnownItems":
        """No item of any user."""
        return cls(starts=np.zeros(users + 1, dtype=np.int64), columns=np.empty(0, dtype=np.int32))

    @classmethod
    def of_pairs(
        cls, users: Rows, items: Rows, count: int, values: pl.Series | None = None
    ) -> "KnownItems":
        """Items of `count` users from pairs of rows; pairs with a row of −1 are ignored.

        Of repeated pairs, the last value counts.
        """
        is_known = (users >= 0) & (items >= 0)
        keys = users[is_known].astype(np.int64) << 32 | items[is_known].astype(np.int64)
        # The order is stable, so of equal pairs the last comes last. Sorted pairs take little time.
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        is_last = np.append(keys[1:] != keys[:-1], np.ones(min(1, len(keys)), dtype=bool))
        keys = keys[is_last]
        known = cls(
            starts=np.searchsorted(keys, np.arange(count + 1) << 32).astype(np.int64),
            columns=(keys & 0xFFFFFFFF).astype(np.int32),
        )
        if values is None:
            return known
        numbers = values.cast(pl.Float64, strict=False).to_numpy()  # NaN where missing
        return replace(known, values=numbers[is_known][order][is_last])

    @classmethod
    def of_everyone(cls, items: Rows, users: int) -> "KnownItems":
        """Items to leave out of the list of every user; rows of −1 are ignored."""
        columns = np.unique(items[items >= 0]).astype(np.int32)
        return cls(
            starts=np.arange(users + 1, dtype=np.int64) * len(columns),
            columns=np.tile(columns, users),
            is_own=False,
        )

    def with_excluded(self, items: Rows) -> "KnownItems":
        """The same items of one user and others, without ratings; rows of −1 are ignored."""
        columns = np.union1d(self.columns, items[items >= 0]).astype(np.int32)
        return KnownItems(starts=np.array([0, len(columns)]), columns=columns, is_own=False)

    def liked(self, user: int, middle: float) -> npt.NDArray[np.int32]:
        """Items that a user liked: rated above the `middle` of the scale and not below the median.

        The median is that of the user's own ratings. All of the user's own items if no rating is
        known.
        """
        if not self.is_own:
            return self.columns[:0]
        part = slice(self.starts[user], self.starts[user + 1])
        columns = self.columns[part]
        if self.values is None:
            return columns
        values = self.values[part]
        rated = values[~np.isnan(values)]
        if rated.size == 0:
            return columns
        return columns[(values > middle) & (values >= np.median(rated))]
