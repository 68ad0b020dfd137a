"""Sums over users of bounded contributions: the queries of `als` under unit `user`.

Each user's profile is solved from that user's ratings and released items. Prediction errors times
the profile, over all items of the user, are clipped to a norm of C as one vector. A user's profile
and errors do not affect the terms of other users (docs/proofs/user.md).
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from taciturn import _core
from taciturn._internal import parallel
from taciturn._internal.ridge import solve_rows
from taciturn.accounting.events import Rows
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Pattern
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.query import Answer, BoundedQuery
from taciturn.queries.error_pass import ErrorPass, square_bits
from taciturn.queries.features import NORM, AxisFeatures
from taciturn.queries.per_user import USERS_MAX, check_axis, for_any_change
from taciturn.queries.values import GridValues, every_step

_LARGEST = 1e29
"""Bound on the norm of a user's row, below the limit of `AxisFeatures` and far above real ones."""

_SHARE_BITS = 16
"""Resolution in bits of the factor that clips a user's contribution. With more, the check of its
square would not fit in 64 bits."""

_COVARIANCE_BITS, _FINE_BITS = 24, 4
"""Resolution in bits of posterior covariances, whose squares are checked in 64 bits, and bits by
which they are shifted so that their noise is fine enough."""

_BLOCK = 1 << 15
"""Number of users whose posterior covariances are held in memory at a time."""

_DAMPING = 8.0
"""Divisor of users' coefficients of item features in a pass, and multiplier of the item features.
The product of both is the same; a user's row of bounded norm is then hardly longer with them."""


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
    features
        Public features of the items, in further columns for which users have coefficients.
    """

    rows: npt.NDArray[np.float64]
    regularization: npt.NDArray[np.float64]
    constant: float
    mean: float
    features: npt.NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        # Checked here: an error while users are solved would depend on their ratings.
        added = self.regularization
        is_sound = self.rows.ndim == 2 and added.shape == (self.coefficients,)
        is_sound = is_sound and bool((added > 0).all() and np.isfinite(added).all())
        is_sound = is_sound and bool(np.isfinite(self.whole).all()) and math.isfinite(self.mean)
        if not (is_sound and 0 < self.constant < math.inf):
            raise InvalidParameter(
                "items, mean and regularization must be finite; the regularization positive"
            )

    @property
    def width(self) -> int:
        """Number of learnt columns: the bias and the factors."""
        return int(self.rows.shape[1])

    @property
    def coefficients(self) -> int:
        """Number of coefficients of a user."""
        return self.width + (0 if self.features is None else int(self.features.shape[1]))

    @cached_property
    def whole(self) -> npt.NDArray[np.float64]:
        """Learnt columns, then item features."""
        return self.rows if self.features is None else np.hstack([self.rows, self.features])

    def solve_users(
        self,
        pattern: Pattern,
        targets: npt.NDArray[np.float32],
        threads: int | None = None,
        *,
        users: slice = slice(None),
        inverse: npt.NDArray[np.float32] | None = None,
    ) -> npt.NDArray[np.float64]:
        """Coefficients of a range of users, from ratings minus the mean.

        Reads private data; a row depends on the ratings of one user alone. `inverse` is that of
        `solve_rows`.
        """
        if len(self.rows) != pattern.width:
            raise InvalidParameter("the released items must match the items of the ratings")
        begin, end, _ = users.indices(len(pattern))
        return solve_rows(
            pattern.starts[begin : end + 1],
            pattern.columns,
            targets,
            self.whole,
            by_count=np.zeros(self.coefficients),
            fixed=self.regularization,
            inverse=inverse,
            threads=threads,
        )

    @cached_property
    def axis_features(self) -> AxisFeatures:
        """Items in a pass, where only their predictions are used, without the constant feature."""
        rows = self.whole.copy()
        rows[:, self.width :] *= _DAMPING
        norms = np.linalg.norm(rows, axis=1)
        return AxisFeatures(rows, 1 / np.maximum(norms, 1e-6), rows[:, 0])


def clipping_shares(squares: npt.NDArray[np.int64], bound: int) -> npt.NDArray[np.int64]:
    """Factors min(1, bound/√squares) in steps of 2^-16, rounded down.

    `squares` are the squared norms of whole contributions in grid steps.
    """
    one = bound << _SHARE_BITS
    norms = np.sqrt(np.maximum(squares, bound * bound).astype(np.float64))
    found = np.minimum(np.floor(one / norms), 1 << _SHARE_BITS).astype(np.int64)
    # In exact integers, since floating point may have rounded up.
    found -= found * found > one * one // np.maximum(squares, 1)
    return found


class UserSums:
    """Sums over users of clipped contributions, and three totals that describe the users.

    Four tables, with a user's features f, clipped prediction errors r and weight w:

    - Σ min(1, C/‖r‖)·r·f by item, where ‖r‖ is over all items of the user;
    - the upper triangle of Σ f fᵀ;
    - Σ w and Σ w·P, where P are the columns of the factors in the user's posterior covariance, in
      units of the prior standard deviations;
    - the sum of the users' mean squared prediction errors.

    Parameters
    ----------
    purpose
        Prefix of the purposes of the tables.
    errors
        Settings of prediction errors, clipped to 2C; rows are users.
    items
        Released items, from which ratings are predicted.
    usual
        Number of ratings n₀ in the weight w = min(1, √(n/n₀)) of a user with n ratings.
    width
        Number of columns to record: the width planned before the first release, at least the actual
        one.
    unit
        Privacy unit. Under other units than `user` the bounds are those for any change of one
        user's ratings.
    """

    def __init__(
        self,
        *,
        purpose: str,
        errors: ErrorPass,
        items: ReleasedItems,
        usual: float = 1.0,
        width: int = 1,
        unit: Unit = Unit.USER,
    ) -> None:
        check_axis(errors.view)
        if not 0 < usual < math.inf:
            raise InvalidParameter("the usual number of ratings must be positive")
        self.view, self._errors, self._items, self._usual = errors.view, errors, items, usual
        self._offered = items.axis_features
        self.queries = user_queries(
            purpose,
            errors,
            items=len(items.rows),
            features=items.coefficients - items.width,
            columns=items.width,
            width=max(width, items.width),
            unit=unit,
        )

    def exact(self, values: GridValues, threads: int | None = None) -> Answer:
        """Exact tables of the queries. Reads private data; the result is private too."""
        values.check(self.view)
        pattern, items, step = values.pattern, self._items, math.ldexp(1.0, self.view.grid.exponent)
        each = (every_step(self.view.grid) * step - items.mean).astype(np.float32)
        targets = values.tabulated(each, threads)
        rows, covariances = self._solved(pattern, targets, threads)
        features = rows.copy()
        features[:, 0] = items.constant
        features[:, items.width :] /= _DAMPING
        base = np.clip(items.mean + rows[:, 0], -_LARGEST, _LARGEST)
        whole = AxisFeatures(features, 1 / np.linalg.norm(features, axis=1), base)
        packed = whole.packed[pattern.counts > 0, : items.width].astype(np.float64)
        triangle = (packed.T @ packed)[np.triu_indices(items.width)]  # exact: below 2^53
        squares = self._errors.run(values, whole, self._offered, threads).squares
        shares = clipping_shares(squares, contribution_bound(self._errors))
        # The same predictions and errors as in the first pass, whose squares determine the shares:
        # clipped features are additional columns, which no prediction contains.
        clipped = whole.with_weighted(shares, _SHARE_BITS, items.width)
        sums = self._errors.run(values, clipped, self._offered.with_zeros(items.width), threads)
        fine = squares << square_bits(self._errors.threshold)
        means = fine // np.maximum(pattern.counts, 1)
        return Answer(
            (
                np.ascontiguousarray(sums.others[:, -items.width :]),
                triangle.astype(np.int64)[None, :],
                covariances[None, :] << _FINE_BITS,
                means.sum().reshape(1, 1),
            )
        )

    def _solved(
        self, pattern: Pattern, targets: npt.NDArray[np.float32], threads: int | None
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Coefficients of all users, and sums of their weights and posterior covariances.

        Nothing here or later can raise, whatever the profiles are: an error would depend on one
        user's ratings.
        """
        items = self._items
        rows = np.empty((len(pattern), items.coefficients))
        total = np.zeros(1 + (items.width - 1) * items.coefficients, dtype=np.int64)
        scales = np.sqrt(items.regularization)
        squares = (scales[1 : items.width, None] * scales).ravel()
        for begin in range(0, len(pattern), _BLOCK):
            users = slice(begin, min(begin + _BLOCK, len(pattern)))
            counts = pattern.counts[users]
            inverse = np.empty((counts.size, items.width - 1, items.coefficients), dtype=np.float32)
            rows[users] = items.solve_users(pattern, targets, threads, users=users, inverse=inverse)
            weights = np.minimum(1.0, np.sqrt(counts / self._usual))
            columns = inverse.reshape(counts.size, -1)
            total += _bounded_sum(weights, columns, squares, items.width, threads)
        with np.errstate(all="ignore"):
            rows[~(np.linalg.norm(rows, axis=1) < _LARGEST)] = 0
        return rows, total


def _bounded_sum(
    weights: npt.NDArray[np.float64],
    columns: npt.NDArray[np.float32],
    scales: npt.NDArray[np.float64],
    width: int,
    threads: int | None = None,
) -> npt.NDArray[np.int64]:
    """Sum of (w, w·P) over users in steps, each with a squared norm of at most `width` units.

    P are the columns times `scales`. The bound holds for every covariance that is at most the
    prior. Floating point may exceed it by a little: covariances are shrunk slightly first, and one
    that still exceeds it becomes zero.
    """
    one = 1 << _COVARIANCE_BITS
    users, count = len(weights), parallel.thread_count(threads)
    size = max(1, -(-users // count))
    totals = np.zeros((count, 1 + scales.size), dtype=np.int64)

    def work(begin: int, end: int) -> None:
        total = totals[begin // size]
        _core.add_covariances(columns, weights, scales, one, width * one * one, total, begin, end)

    parallel.for_ranges(work, users, size=size, threads=count)
    found: npt.NDArray[np.int64] = totals.sum(axis=0)
    return found


def contribution_bound(errors: ErrorPass) -> int:
    """Norm C of a user's whole contribution, in grid steps: half the clipping threshold."""
    return (errors.threshold + 1) // 2


def user_queries(
    purpose: str,
    errors: ErrorPass,
    *,
    items: int,
    features: int,
    columns: int,
    width: int,
    unit: Unit = Unit.USER,
) -> tuple[BoundedQuery, ...]:
    """Public facts of the tables of `UserSums`, which have `columns` columns by item.

    There are `features` item features. One user is recorded as changing `width` columns.
    """
    grid, threshold, bits = errors.grid, errors.threshold, square_bits(errors.threshold)
    bound, feature_bits = contribution_bound(errors), NORM.bit_length() - 1
    one = 1 << (_COVARIANCE_BITS + _FINE_BITS)
    # Covariances have at most the norm of `columns` units, the weight included.
    norm = math.sqrt(columns) * one * (1 + 2.0**-50)
    tables = (
        (
            "sums by item",
            Rows.ITEMS,
            (items, columns),
            grid.exponent - feature_bits,
            float(bound * NORM),
            2.0,
            items * width,
        ),
        (
            "products of features",
            Rows.TOTAL,
            (1, _triangle(columns)),
            -2 * feature_bits,
            float(NORM**2),
            math.sqrt(2),
            _triangle(width),
        ),
        (
            "posterior covariances",
            Rows.TOTAL,
            (1, 1 + (columns - 1) * (columns + features)),
            -(_COVARIANCE_BITS + _FINE_BITS),
            norm,
            2.0,
            1 + (width - 1) * (width + features),
        ),
        (
            "mean squares",
            Rows.TOTAL,
            (1, 1),
            2 * grid.exponent - bits,
            float(threshold**2 << bits),
            1.0,
            1,
        ),
    )
    found = []
    for name, rows, shape, exponent, sensitivity, factor, coordinates in tables:
        query = BoundedQuery(
            purpose=f"{purpose}, {name}",
            unit=Unit.USER,
            rows=rows,
            shape=shape,
            exponent=exponent,
            sensitivity=sensitivity,
            coordinates=coordinates,
            magnitude=USERS_MAX * math.ceil(sensitivity),
            proof="user.md#claim",
        )
        found.append(for_any_change(query, unit, factor))
    return tuple(found)


def _triangle(width: int) -> int:
    """Number of entries of a symmetric matrix on and above its diagonal."""
    return width * (width + 1) // 2
