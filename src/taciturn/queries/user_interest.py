"""Sums over users of what they turn to: the interest queries of whole users.

Each user's interest is computed from that user's own items and released numbers. The contribution
of a user to an item is the user's feature row times the weight of the item, and the norm of all
contributions of a user together is at most 1 (docs/proofs/interest.md). Contributions can also be
weighted by the ratings themselves, so that they go to items that the user liked.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from taciturn.accounting.events import Rows
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis, Pattern
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import FeatureGrid
from taciturn.mechanisms.query import Answer, BoundedQuery
from taciturn.queries.pattern_sums import presence_sums
from taciturn.queries.per_user import USERS_MAX, check_axis, for_any_change
from taciturn.queries.values import GridValues, ValueView, every_step
from taciturn.queries.weighted_sums import grid_sums

WEIGHT_MAX = 16
"""Largest weight of an item, and of a rating; all weights are whole numbers from 1."""

BOUND_BITS = 26
"""Norm bound of a user's whole contribution, as a power of two of steps."""

_ITEM_GRID = FeatureGrid()

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class InterestItems:
    """Released items, from which every user's own feature row is computed.

    Attributes
    ----------
    rows
        Factors of the items, centred over ratings (items × factors, no factors allowed).
    weights
        Weight of each item in every contribution: whole numbers from 1 to `WEIGHT_MAX`.
    constant
        Entry of a feature row that is the same for all users, 0 to 1; the norm of the row is 1.
    by_liking
        Whether contributions are weighted by the user's ratings too. The weight grows with the
        square of a rating above the lowest.
    """

    rows: npt.NDArray[np.float64]
    weights: Integers
    constant: float
    by_liking: bool = False

    def __post_init__(self) -> None:
        # Checked here: an error while users are computed would depend on their items.
        weights = self.weights
        is_sound = self.rows.ndim == 2 and bool(np.isfinite(self.rows).all())
        is_sound = is_sound and weights.shape == (len(self.rows),) and weights.dtype == np.int64
        is_sound = is_sound and bool(((weights >= 1) & (weights <= WEIGHT_MAX)).all())
        if not (is_sound and 0 < self.constant <= 1):
            raise InvalidParameter(
                "items must be finite, weights whole numbers from 1 to 16, and the constant "
                "between 0 and 1"
            )

    @property
    def columns(self) -> int:
        """Number of entries of a feature row: the constant and the factors."""
        return 1 + int(self.rows.shape[1])


class UserInterestSums:
    """Σ weight × feature row by item, where every user's whole contribution has norm at most 1.

    A user's feature row is (κ, √(1 − κ²)·a/‖a‖), with the sum a of the factors of the user's items,
    and then divided by the root of the sum of the squared weights of these items. If liking counts,
    a weight is that of the item times that of the user's rating.

    Parameters
    ----------
    purpose
        Purpose of the table.
    view
        View of the ratings, ordered by user; their values are used only if liking counts.
    items
        Released items.
    width
        Number of columns to record: the width planned before the first release, at least the actual
        one.
    unit
        Privacy unit. Under other units than `user` the bound is that for any change of one user's
        ratings.
    """

    def __init__(
        self,
        *,
        purpose: str,
        view: ValueView,
        items: InterestItems,
        width: int = 1,
        unit: Unit = Unit.USER,
    ) -> None:
        check_axis(view)
        self.view, self._items = view, items
        query = user_interest_query(
            purpose,
            items=len(items.rows),
            columns=items.columns,
            width=max(width, items.columns),
            unit=unit,
        )
        self.queries = (query,)

    def exact(self, values: GridValues, threads: int | None = None) -> Answer:
        """Exact table of the query. Reads private data; the result is private too."""
        values.check(self.view)
        pattern, weights = values.along(Axis.USERS), self._rating_weights(values)
        features = self._features(pattern, weights, threads)
        sums = grid_sums(
            values.along(Axis.ITEMS),
            pattern.transposed(weights) if self._items.by_liking else weights,
            (0, WEIGHT_MAX),
            features,
            threads,
        )
        return Answer((sums * self._items.weights[:, None],))

    def _rating_weights(self, values: GridValues) -> npt.NDArray[np.int32]:
        """Weight of each rating, user by user: 1, or the larger the better the user liked it."""
        if not self._items.by_liking:
            return np.ones(values.pattern.entries, dtype=np.int32)
        grid = self.view.grid
        liking = (every_step(grid) - grid.lowest) / max(1, grid.highest - grid.lowest)
        found = np.clip(np.rint(WEIGHT_MAX * liking**2), 1, WEIGHT_MAX).astype(np.int32)
        return np.asarray(values.tabulated(found))

    def _features(
        self, pattern: Pattern, weights: npt.NDArray[np.int32], threads: int | None
    ) -> npt.NDArray[np.int32]:
        """Feature row of every user in steps; depends on that user's ratings alone.

        Nothing here can raise, whatever the ratings are.
        """
        items = self._items
        squares = (items.weights * items.weights).astype(np.int32)[:, None]
        totals = grid_sums(pattern, weights * weights, (0, WEIGHT_MAX**2), squares, threads)[:, 0]
        rows = np.zeros((len(pattern), items.columns))
        rows[:, 0] = 1.0
        if items.columns > 1:
            largest = max(float(np.linalg.norm(items.rows, axis=1).max(initial=0.0)), 1e-300)
            sums = presence_sums(pattern, _ITEM_GRID.quantise(items.rows / largest), threads)
            rows[:, 0] = items.constant
            rows[:, 1:] = directions(sums) * np.sqrt(1 - items.constant**2)
        return bounded_rows(rows, totals)


def directions(sums: Integers) -> npt.NDArray[np.float64]:
    """Rows divided by their norms; zero stays zero.

    Column by column, so that the bits of a row do not depend on other rows.
    """
    rows = sums.astype(np.float64)
    squares = np.zeros(len(rows))
    for column in rows.T:
        squares += column * column
    found: npt.NDArray[np.float64] = rows / np.sqrt(np.maximum(squares, 1.0))[:, None]
    return found


def bounded_rows(rows: npt.NDArray[np.float64], totals: Integers) -> npt.NDArray[np.int32]:
    """Rows of norm at most 1 as whole steps F with ‖F‖² · total ≤ 2^(2·BOUND_BITS), exactly.

    `totals` are the sums of the squared weights of the users' ratings. A user without items gets
    zeros, as does a row that rounding left too long.
    """
    one = 1 << BOUND_BITS
    scale = one * (1 - 2.0**-30) / np.sqrt(np.maximum(totals, 1))
    steps = np.trunc(rows * scale[:, None]).astype(np.int64)
    fits = (steps * steps).sum(axis=1) <= one * one // np.maximum(totals, 1)
    steps[~fits | (totals == 0)] = 0
    return steps.astype(np.int32)


def user_interest_query(
    purpose: str, *, items: int, columns: int, width: int, unit: Unit = Unit.USER
) -> BoundedQuery:
    """Public facts of the table, with `columns` columns of which `width` are recorded."""
    query = BoundedQuery(
        purpose=purpose,
        unit=Unit.USER,
        rows=Rows.ITEMS,
        shape=(items, columns),
        exponent=-BOUND_BITS,
        sensitivity=float(1 << BOUND_BITS),
        coordinates=items * width,
        magnitude=USERS_MAX << BOUND_BITS,
        proof="interest.md#whole-users",
    )
    return for_any_change(query, unit, 2.0)
