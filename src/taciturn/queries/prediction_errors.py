"""Both gradients of the squared error in one pass: sums of prediction error × feature.

For a rating v of an item i by a user j, predicted as v̂ from public or released values only, the
prediction error is r = v̂ − v. The pass computes, in exact integers, Σ r·f_i for each user and
Σ r·f_j for each item. Under unit `value`, changing one value changes r by at most the range of
the scale, and so one row of each table by at most that range times the norm bound of the features:
given the same transcript, v̂ is the same for both neighbours (docs/proofs/gradient.md). Under unit
`rating`, `joint_errors` has the tables of such a pass.
"""

import math
from dataclasses import dataclass

from taciturn.accounting.events import Rows
from taciturn.accounting.units import Unit
from taciturn.data.pattern import ENTRIES_MAX, Axis, RatingPattern
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.query import Answer, BoundedQuery, Table
from taciturn.queries.error_pass import ErrorPass
from taciturn.queries.features import NORM, AxisFeatures
from taciturn.queries.pair_weights import PairWeights
from taciturn.queries.residuals import clipped_sensitivity
from taciturn.queries.values import GridValues

Shape = tuple[int, int]
"""Numbers of users and of items."""


def pass_axis(shape: Shape) -> Axis:
    """Axis of the rows of a pass: the longer one, since each thread has sums of the other."""
    return Axis.USERS if shape[0] >= shape[1] else Axis.ITEMS


def ratings_max(shape: Shape) -> int:
    """Maximum number of ratings for these numbers of users and items."""
    return min(ENTRIES_MAX, math.prod(shape))


@dataclass(frozen=True, eq=False, repr=False)
class ErrorTables:
    """Exact sums of a pass, all private.

    users (n_u × width), items (n_i × width): Σ r·f in steps; squares: Σ r² in squared steps.
    """

    users: Table
    items: Table
    squares: int


class Pass:
    """One pass over the ratings of users and items with these features.

    Parameters
    ----------
    errors
        Settings of prediction errors.
    users, items
        Features of both axes, with the same width.
    """

    def __init__(self, errors: ErrorPass, users: AxisFeatures, items: AxisFeatures) -> None:
        if users.width != items.width:
            raise InvalidParameter("users and items of a pass must have features of one width")
        self.shape = len(users), len(items)
        if errors.view.axis is not pass_axis(self.shape):
            raise InvalidParameter("a pass runs along the longer axis")
        self.errors, self._users, self._items = errors, users, items

    def run(
        self, values: GridValues, threads: int | None, weights: PairWeights | None = None
    ) -> ErrorTables:
        """Sums by user and by item, and the squared error. Reads private data; the result is too.

        `weights` are those of a pass along users.
        """
        if self.errors.view.axis is Axis.USERS:
            sums = self.errors.run(values, self._users, self._items, threads, weights)
            return ErrorTables(sums.rows, sums.others, int(sums.squares.sum()))
        swapped = None if weights is None else weights.swapped()
        sums = self.errors.run(values, self._items, self._users, threads, swapped)
        return ErrorTables(sums.others, sums.rows, int(sums.squares.sum()))


class PredictionErrorSums:
    """Σ r·f by user and by item under unit `value`: the tables of one pass.

    Parameters
    ----------
    purpose
        Prefix of the purposes of the tables.
    errors
        Settings of prediction errors.
    users, items
        Features of both axes, with the same width.
    pattern
        Public rating pattern.
    """

    def __init__(
        self,
        *,
        purpose: str,
        errors: ErrorPass,
        users: AxisFeatures,
        items: AxisFeatures,
        pattern: RatingPattern,
    ) -> None:
        self.view, self._pattern = errors.view, pattern
        if (len(users), len(items)) != (len(pattern.by_user), len(pattern.by_item)):
            raise InvalidParameter("the features of a pass must match the rating pattern")
        self._pass = Pass(errors, users, items)
        self.queries = error_queries(purpose, errors, pattern, columns=users.width)

    def exact(self, values: GridValues, threads: int | None = None) -> Answer:
        """Exact tables of the queries. Reads private data; the result is private too."""
        tables = self.tables(values, threads)
        return Answer((tables.users, tables.items))

    def tables(self, values: GridValues, threads: int | None = None) -> ErrorTables:
        """Sums and squared error. Reads private data; the result is private too."""
        values.check(self.view, self._pattern.along(self.view.axis))
        return self._pass.run(values, threads)


def error_queries(
    purpose: str, errors: ErrorPass, pattern: RatingPattern, *, columns: int
) -> tuple[BoundedQuery, BoundedQuery]:
    """Public facts of the tables of a pass, by user and by item, with this number of columns."""
    of_users, of_items = (
        BoundedQuery(
            purpose=f"{purpose}, sums by {axis.singular}",
            unit=Unit.VALUE,
            rows=Rows(axis.value),
            shape=(len(along.counts), columns),
            exponent=errors.grid.exponent - (NORM.bit_length() - 1),
            sensitivity=float(clipped_sensitivity(errors.threshold, errors.grid) * NORM),
            coordinates=columns,
            magnitude=max(1, int(along.counts.max(initial=0))) * errors.threshold * NORM,
            proof="gradient.md#claim",
        )
        for axis, along in ((axis, pattern.along(axis)) for axis in (Axis.USERS, Axis.ITEMS))
    )
    return of_users, of_items
