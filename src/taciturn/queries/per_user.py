"""Totals by user: the weight of each item, the number of users and their mean ratings.

Neighbouring datasets differ by all ratings of one user. Each of a user's n ratings has the weight
1/√n, so that together they change the table of items by no more than one rating would
(docs/proofs/user.md).
"""

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from taciturn.accounting.events import Rows
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.query import Answer, BoundedQuery
from taciturn.queries.totals import COUNT_BITS, powers_by_row, totals_query
from taciturn.queries.values import GridValues, ValueView

USERS_MAX = 2**24
"""Maximum number of users for which sums are exact."""


def for_any_change(query: BoundedQuery, unit: Unit, factor: float) -> BoundedQuery:
    """Query of users' contributions under another unit: any ratings of one user may change.

    `factor` multiplies the bound for adding or removing a user (docs/proofs/user.md).
    """
    if unit is Unit.USER:
        return query
    return replace(
        query,
        unit=unit,
        rows=Rows.CONTRIBUTIONS,
        sensitivity=query.sensitivity * factor * (1 + 2.0**-50),
        proof="user.md#one-rating",
    )


def weights(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Weight of each rating of a user, w ≤ 2^bits/√n in whole steps; 0 for users without any."""
    one = 1 << COUNT_BITS
    found = np.floor(one / np.sqrt(np.maximum(counts, 1))).astype(np.int64)
    # In exact integers, since floating point may have rounded up: n·w² must not exceed 2^(2·bits).
    found -= found * found > one * one // np.maximum(counts, 1)
    return np.where(counts > 0, found, 0)


def check_users(count: int) -> None:
    """Raise if there are too many users for exact sums."""
    if count >= USERS_MAX:
        raise InvalidParameter("unit user supports fewer than 2^24 users")


class UserTotals:
    """Weight of each item; number of users, and totals of their means: two tables.

    The second holds the number of users and the sums over users of their mean v and mean v², where
    values are divided by the largest value of their grid. Under other units than `user` the bounds
    are those for any change of one user's ratings.
    """

    def __init__(self, *, items: int, view: ValueView, unit: Unit = Unit.USER) -> None:
        check_axis(view)
        self.view, self._items = view, items
        one = 1 << COUNT_BITS
        weights = BoundedQuery(
            purpose="weights of items",
            unit=Unit.USER,
            rows=Rows.ITEMS,
            shape=(items, 1),
            exponent=-COUNT_BITS,
            sensitivity=float(one),
            coordinates=items,
            magnitude=USERS_MAX * one,
            proof="user.md#claim",
        )
        totals = totals_query("number of users, sums of their means", Unit.USER, USERS_MAX)
        self.queries = (
            for_any_change(weights, unit, math.sqrt(2)),
            # Means and mean squares lie in a region of diameter 2, up to rounding.
            for_any_change(totals, unit, 2 / math.sqrt(3) * (1 + 2.0**-20)),
        )

    def exact(self, values: GridValues, threads: int | None = None) -> Answer:
        """Exact tables of the queries. Reads private data; the result is private too."""
        values.check(self.view)
        pattern = values.pattern
        given = weights(pattern.counts).astype(np.float64)
        # Sums of whole numbers below 2^53 are exact.
        of_items = values.along(Axis.ITEMS).product(given, threads)
        totals = [
            int((pattern.counts > 0).sum()) << COUNT_BITS,
            *(int(_means(sums, pattern.counts).sum()) for sums in powers_by_row(values, threads)),
        ]
        return Answer((of_items.astype(np.int64)[:, None], np.array([totals], dtype=np.int64)))


def _means(sums: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Mean over each user's ratings, rounded towards zero; 0 for users without any."""
    means: npt.NDArray[np.int64] = np.sign(sums) * (np.abs(sums) // np.maximum(counts, 1))
    return means


def check_axis(view: ValueView) -> None:
    """Raise unless values are ordered by user, since contributions are bounded by row."""
    if view.axis is not Axis.USERS:
        raise InvalidParameter("user-level sums need values along the users")
