"""Both gradients under unit `rating` as one table, which divides each rating between its sides.

A rating of a busy user and a rare item says little more about the user, and much about the item. So
its prediction error counts b in the row of the user and a in the row of the item, with
a² + b² = 1: whatever the division, one rating moves both rows together by at most the clipping
threshold. The weights depend on classes of released noisy counts, never on exact counts
(docs/proofs/rating.md).
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from taciturn.accounting.events import BALANCED_SHARE, Rows
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.query import Answer, BoundedQuery
from taciturn.queries.error_pass import ErrorPass, square_bits
from taciturn.queries.features import NORM, AxisFeatures
from taciturn.queries.pair_weights import BITS, CLASSES, PairWeights
from taciturn.queries.prediction_errors import ErrorTables, Pass, Shape, ratings_max
from taciturn.queries.values import GridValues

_LEAST = 5.0
"""Count of the lowest class; smaller ones are mostly noise."""

_CLASSES_PER_DOUBLING = 2

Vector = npt.NDArray[np.float64]
Weights = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False, kw_only=True)
class Balance:
    """Classes of users and items by noisy count, which determine the weights of their ratings."""

    users: npt.NDArray[np.uint8]
    items: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, user_counts: Vector, item_counts: Vector) -> "Balance":
        """Classes for released counts."""
        return cls(users=classes_of(user_counts), items=classes_of(item_counts))

    @property
    def shape(self) -> Shape:
        """Numbers of users and of items."""
        return len(self.users), len(self.items)

    def weights(self) -> PairWeights:
        """Weights for a pass along users."""
        of_users, of_items = weights_by_class()
        return PairWeights(rows=self.users, others=self.items, of_rows=of_users, of_others=of_items)

    def moments(self, axis: Axis, counterparts: Vector) -> tuple[Vector, Vector]:
        """Mean weight and mean square of the weights in each row of an axis.

        As if every row had rated counterparts in proportion to these counts.
        """
        weights = self.weights() if axis is Axis.USERS else self.weights().swapped()
        table = weights.of_rows / float(1 << BITS)
        shares = np.zeros(CLASSES)
        np.add.at(shares, weights.others, counterparts / max(float(counterparts.sum()), 1e-300))
        return (table @ shares)[weights.rows], (table**2 @ shares)[weights.rows]


def classes_of(counts: Vector) -> npt.NDArray[np.uint8]:
    """Class of each count: equal steps of its logarithm."""
    steps = _CLASSES_PER_DOUBLING * np.log2(np.maximum(counts, _LEAST) / _LEAST)
    classes: npt.NDArray[np.uint8] = np.minimum(np.rint(steps), CLASSES - 1).astype(np.uint8)
    return classes


@cache
def weights_by_class() -> tuple[Weights, Weights]:
    """Weights of a rating in the rows of its user and of its item, by their classes.

    The side with fewer ratings has the larger weight; that of the user is bounded, because all
    ratings of a user fall into one row (docs/proofs/group-privacy.md).
    """
    roots = np.sqrt(_LEAST * 2.0 ** (np.arange(CLASSES) / _CLASSES_PER_DOUBLING))
    of_user = np.minimum(roots / (roots[:, None] + roots), BALANCED_SHARE)
    both = tuple(
        np.floor(np.ldexp(np.sqrt(square), BITS)).astype(np.int32)
        for square in (of_user, 1 - of_user)
    )
    for each in both:
        each.flags.writeable = False
    return both[0], both[1]


def joint_bound(threshold: int) -> float:
    """Bound of what one rating moves both rows together, for features of norm 1.

    Weighted errors are rounded, so that their squares may add up to a little more than the square
    of the threshold. The row of a user moves by at most √`BALANCED_SHARE` of the bound.
    """
    of_user, of_item = (
        (threshold * table.astype(np.int64) + (1 << BITS - 1)) >> BITS
        for table in weights_by_class()
    )
    both = int((of_user**2 + of_item**2).max())
    alone = math.ceil(int(of_user.max()) ** 2 / BALANCED_SHARE)
    return math.nextafter(math.sqrt(max(both, alone)), math.inf)


class JointErrorSums:
    """Σ w·r·f by user and by item as one table, and Σ r²: one pass under unit `rating`.

    There is a row for every user and item, rated or not, and no bound depends on the number of
    ratings.

    Parameters
    ----------
    purpose
        Prefix of the purposes of the tables.
    errors
        Settings of prediction errors.
    users, items
        Features of both axes, with the same width.
    balance
        Classes of users and items.
    width
        Number of columns to record: the width planned before the first release, at least the actual
        one.
    """

    def __init__(
        self,
        *,
        purpose: str,
        errors: ErrorPass,
        users: AxisFeatures,
        items: AxisFeatures,
        balance: Balance,
        width: int = 1,
    ) -> None:
        self.view, self._balance = errors.view, balance
        self._pass = Pass(errors, users, items)
        if balance.shape != self._pass.shape:
            raise InvalidParameter("the classes of a pass must match its features")
        self.queries = joint_queries(
            purpose, errors, balance.shape, columns=users.width, width=max(width, users.width)
        )

    def exact(self, values: GridValues, threads: int | None = None) -> Answer:
        """Exact tables of the queries. Reads private data; the result is private too."""
        tables = self.tables(values, threads)
        squares = tables.squares << square_bits(self._pass.errors.threshold)
        return Answer((np.concatenate([tables.users, tables.items]), np.array([[squares]])))

    def tables(self, values: GridValues, threads: int | None = None) -> ErrorTables:
        """Weighted sums, and the squared error, which is not weighted.

        Reads private data; the result is private too.
        """
        return self._pass.run(values, threads, self._balance.weights())


def joint_queries(
    purpose: str, errors: ErrorPass, shape: Shape, *, columns: int, width: int
) -> tuple[BoundedQuery, BoundedQuery]:
    """Public facts of the tables of a pass: by user and by item, and the sum of squares.

    The first has `columns` columns; one change is recorded as changing `width` of them in each of
    two rows.
    """
    threshold, bits = errors.threshold, square_bits(errors.threshold)
    sums = BoundedQuery(
        purpose=f"{purpose}, sums by user and by item",
        unit=Unit.RATING,
        rows=Rows.BALANCED,
        shape=(sum(shape), columns),
        exponent=errors.grid.exponent - (NORM.bit_length() - 1),
        sensitivity=joint_bound(threshold) * NORM,
        coordinates=2 * width,
        magnitude=max(shape) * threshold * NORM,
        proof="rating.md#claim",
    )
    squares = BoundedQuery(
        purpose=f"{purpose}, sum of squares",
        unit=Unit.RATING,
        rows=Rows.TOTAL,
        shape=(1, 1),
        exponent=2 * errors.grid.exponent - bits,
        sensitivity=float(threshold**2 << bits),
        coordinates=1,
        magnitude=max(1, ratings_max(shape)) * threshold**2 << bits,
        proof="rating.md#claim",
    )
    return sums, squares
