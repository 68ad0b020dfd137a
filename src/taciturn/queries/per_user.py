"""User-level queries: each user's total contribution is bounded.

Neighbouring datasets differ by all ratings of one user. Each of a
user's n ratings has the weight 1/√n, so that together they change a table of items by no more than
one rating would. Ratings are multiplied by the user's own profile, which is solved from that user's
ratings and released items and does not affect the terms of other users (docs/proofs/user.md).
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from taciturn._internal.ridge import solve_rows
from taciturn.accounting.events import Rows
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis, Pattern
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.query import Answer, BoundedQuery
from taciturn.queries.error_pass import ErrorPass, square_bits
from taciturn.queries.features import NORM, AxisFeatures
from taciturn.queries.totals import COUNT_BITS, scaled_powers, totals_query
from taciturn.queries.values import GridValues, ValueView

USERS_MAX = 2**24
"""Maximum number of users for which sums are exact."""

_LARGEST = 1e29
"""Bound on the norm of a user's row, below the limit of `AxisFeatures` and far above real ones."""


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
    values are divided by the largest value of their grid.
    """

    def __init__(self, *, items: int, view: ValueView) -> None:
        _check_axis(view)
        self.view, self._items = view, items
        self.queries = (
            BoundedQuery(
                purpose="weights of items",
                unit=Unit.USER,
                rows=Rows.ITEMS,
                shape=(items, 1),
                exponent=-COUNT_BITS,
                sensitivity=float(1 << COUNT_BITS),
                coordinates=items,
                magnitude=USERS_MAX << COUNT_BITS,
                proof="user.md#claim",
            ),
            totals_query("number of users, sums of their means", Unit.USER, USERS_MAX, 3),
        )

    def exact(self, values: GridValues, threads: int | None = None) -> Answer:
        """Exact tables of the queries. Reads private data; the result is private too."""
        values.check(self.view)
        pattern = values.pattern
        by_rating = np.repeat(weights(pattern.counts), pattern.counts)
        # Sums of whole numbers below 2^53 are exact.
        of_items = np.bincount(pattern.columns, weights=by_rating, minlength=self._items)
        powers = scaled_powers(values.steps, self.view.grid)
        totals = [
            int((pattern.counts > 0).sum()) << COUNT_BITS,
            *(int(_user_means(power, pattern).sum()) for power in powers),
        ]
        return Answer((of_items.astype(np.int64)[:, None], np.array([totals], dtype=np.int64)))


def _user_means(values: npt.NDArray[np.int64], pattern: Pattern) -> npt.NDArray[np.int64]:
    """Mean over each user's ratings, rounded towards zero; 0 for users without any."""
    ends = np.concatenate([[0], np.cumsum(values)])
    sums = ends[pattern.starts[1:]] - ends[pattern.starts[:-1]]
    means: npt.NDArray[np.int64] = np.sign(sums) * (np.abs(sums) // np.maximum(pattern.counts, 1))
    return means


@dataclass(frozen=True, eq=False, kw_only=True)
class ReleasedItems:
    """Released items, from which every user's own profile is solved.

    Attributes
    ----------
    rows
        One row for each item, the bias first, then the factors, in rating units.
    regularization
        Diagonal added to a user's normal equations, one number for each coefficient.
    constant
        Constant feature, in the column of the bias. Features are divided by their norm.
    mean
        Subtracted from ratings.
    """

    rows: npt.NDArray[np.float64]
    regularization: npt.NDArray[np.float64]
    constant: float
    mean: float

    def __post_init__(self) -> None:
        # Checked here: an error while users are solved would depend on their ratings.
        added = self.regularization
        is_sound = self.rows.ndim == 2 and added.shape == self.rows.shape[1:]
        is_sound = is_sound and bool((added > 0).all() and np.isfinite(added).all())
        is_sound = is_sound and bool(np.isfinite(self.rows).all()) and math.isfinite(self.mean)
        if not (is_sound and 0 < self.constant < math.inf):
            raise InvalidParameter(
                "items, mean and regularization must be finite; the regularization positive"
            )

    @property
    def width(self) -> int:
        """Number of coefficients of a user."""
        return int(self.rows.shape[1])

    def solve_users(
        self, pattern: Pattern, targets: npt.NDArray[np.float32], threads: int | None = None
    ) -> npt.NDArray[np.float64]:
        """Bias and factors of each user, from ratings minus the mean.

        Reads private data; a row depends on the ratings of one user alone.
        """
        if len(self.rows) != pattern.width:
            raise InvalidParameter("the released items must match the items of the ratings")
        return solve_rows(
            pattern.starts,
            pattern.columns,
            targets,
            self.rows,
            by_count=np.zeros(self.width),
            fixed=self.regularization,
            threads=threads,
        )

    @cached_property
    def features(self) -> AxisFeatures:
        """Items in a pass, where only their predictions are used, without the constant feature."""
        norms = np.linalg.norm(self.rows, axis=1)
        return AxisFeatures(self.rows, 1 / np.maximum(norms, 1e-6), self.rows[:, 0])


class UserSums:
    """Sums by item of weighted, clipped prediction errors times users' features, and two totals.

    Three tables: Σ w·r·f by item, the upper triangle of the sum over users of f fᵀ, and the sum
    over users of their mean squared prediction errors.

    Parameters
    ----------
    purpose
        Prefix of the purposes of the tables.
    errors
        Settings of prediction errors; rows are users.
    items
        Released items, from which ratings are predicted.
    width
        Number of columns to record: the width planned before the first release, at least the actual
        one.
    """

    def __init__(
        self, *, purpose: str, errors: ErrorPass, items: ReleasedItems, width: int = 1
    ) -> None:
        _check_axis(errors.view)
        self.view, self._errors, self._items = errors.view, errors, items
        self._offered = items.features
        self.queries = user_queries(
            purpose,
            errors,
            items=len(items.rows),
            columns=items.width,
            width=max(width, items.width),
        )

    def exact(self, values: GridValues, threads: int | None = None) -> Answer:
        """Exact tables of the queries. Reads private data; the result is private too."""
        values.check(self.view)
        pattern, items, step = values.pattern, self._items, math.ldexp(1.0, self.view.grid.exponent)
        targets = (values.clipped() * step - items.mean).astype(np.float32)
        rows = items.solve_users(pattern, targets, threads)
        # Nothing below can raise, whatever the profiles are: an error would depend on one user's
        # ratings.
        with np.errstate(all="ignore"):
            rows[~(np.linalg.norm(rows, axis=1) < _LARGEST)] = 0
        features = rows.copy()
        features[:, 0] = items.constant
        base = np.clip(items.mean + rows[:, 0], -_LARGEST, _LARGEST)
        whole = AxisFeatures(features, 1 / np.linalg.norm(features, axis=1), base)
        packed = whole.packed[pattern.counts > 0, : items.width].astype(np.float64)
        triangle = (packed.T @ packed)[np.triu_indices(items.width)]  # exact: below 2^53
        weighted = whole.weighted(weights(pattern.counts), COUNT_BITS)
        sums = self._errors.run(values, weighted, self._offered, threads)
        squares = sums.squares << square_bits(self._errors.threshold)
        means = squares // np.maximum(pattern.counts, 1)
        return Answer((sums.others, triangle.astype(np.int64)[None, :], means.sum().reshape(1, 1)))


def user_queries(
    purpose: str, errors: ErrorPass, *, items: int, columns: int, width: int
) -> tuple[BoundedQuery, ...]:
    """Public facts of the tables of `UserSums`, which have `columns` columns by item.

    One user is recorded as changing `width` columns.
    """
    grid, threshold, bits = errors.grid, errors.threshold, square_bits(errors.threshold)
    feature_bits = NORM.bit_length() - 1
    return (
        BoundedQuery(
            purpose=f"{purpose}, sums by item",
            unit=Unit.USER,
            rows=Rows.ITEMS,
            shape=(items, columns),
            exponent=grid.exponent - feature_bits,
            sensitivity=float(threshold * NORM),
            coordinates=items * width,
            magnitude=USERS_MAX * threshold * NORM,
            proof="user.md#claim",
        ),
        BoundedQuery(
            purpose=f"{purpose}, products of features",
            unit=Unit.USER,
            rows=Rows.TOTAL,
            shape=(1, _triangle(columns)),
            exponent=-2 * feature_bits,
            sensitivity=float(NORM**2),
            coordinates=_triangle(width),
            magnitude=USERS_MAX * NORM**2,
            proof="user.md#claim",
        ),
        BoundedQuery(
            purpose=f"{purpose}, mean squares",
            unit=Unit.USER,
            rows=Rows.TOTAL,
            shape=(1, 1),
            exponent=2 * grid.exponent - bits,
            sensitivity=float(threshold**2 << bits),
            coordinates=1,
            magnitude=USERS_MAX * threshold**2 << bits,
            proof="user.md#claim",
        ),
    )


def _check_axis(view: ValueView) -> None:
    """Raise unless values are ordered by user, since weights are computed from rows."""
    if view.axis is not Axis.USERS:
        raise InvalidParameter("user-level sums need values along the users")


def _triangle(width: int) -> int:
    """Number of entries of a symmetric matrix on and above its diagonal."""
    return width * (width + 1) // 2
