"""Sums of features over the rating pattern, under unit `rating`: who turns to what.

For each row of an axis, Σ f over its counterparts, with features f of norm at most 1 that are
public or released. Adding or removing one rating adds or removes one term in one row
(docs/proofs/interest.md).
"""

import numpy as np
import numpy.typing as npt

from taciturn.accounting.events import Rows
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis, Pattern
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import FeatureGrid
from taciturn.mechanisms.query import Answer, BoundedQuery, Table
from taciturn.queries.prediction_errors import Shape
from taciturn.queries.values import GridValues, ValueView
from taciturn.queries.weighted_sums import grid_sums

GRID = FeatureGrid(bits=24)
"""Grid of the features: as fine as possible, because the noise of a release needs enough steps."""


class PatternSums:
    """Σ f by item over the users who rated it, or by user over their items.

    Parameters
    ----------
    purpose
        Purpose of the table.
    axis
        Axis of the rows of the table.
    shape
        Numbers of users and of items.
    view
        Any view of the ratings; their values are not used.
    features
        Features of the counterparts, public or released. Longer rows are scaled to norm 1.
    width
        Number of columns to record: the width planned before the first release, at least the actual
        one.
    """

    def __init__(
        self,
        *,
        purpose: str,
        axis: Axis,
        shape: Shape,
        view: ValueView,
        features: npt.NDArray[np.float64],
        width: int = 1,
    ) -> None:
        self.view, self._axis = view, axis
        self._features = GRID.quantise(features)
        counterparts = shape[1] if axis is Axis.USERS else shape[0]
        if len(self._features) != counterparts:
            raise InvalidParameter("pass one row of features for each counterpart")
        columns = self._features.shape[1]
        query = pattern_query(purpose, axis, shape, columns=columns, width=max(width, columns))
        self.queries = (query,)

    def exact(self, values: GridValues, threads: int | None = None) -> Answer:
        """Exact table of the query. Reads private data; the result is private too."""
        values.check(self.view)
        return Answer((presence_sums(values.along(self._axis), self._features, threads),))


def presence_sums(
    pattern: Pattern, features: npt.NDArray[np.int32], threads: int | None = None
) -> Table:
    """Σ feature over the entries of each row, in integers. As private as the pattern."""
    ones = np.ones(pattern.entries, dtype=np.int32)
    return grid_sums(pattern, ones, (0, 1), features, threads)


def pattern_query(
    purpose: str, axis: Axis, shape: Shape, *, columns: int, width: int
) -> BoundedQuery:
    """Public facts of a table of sums; one change is recorded as changing `width` entries."""
    rows, counterparts = shape if axis is Axis.USERS else shape[::-1]
    return BoundedQuery(
        purpose=purpose,
        unit=Unit.RATING,
        rows=Rows(axis.value),
        shape=(rows, columns),
        exponent=-GRID.bits,
        sensitivity=float(GRID.bound),
        coordinates=width,
        magnitude=max(1, counterparts) * GRID.bound,
        proof="interest.md#claim",
    )
