"""Sums of value × feature under unit `value`, where the rating pattern is public."""

from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from taciturn import _core
from taciturn._internal import parallel
from taciturn.accounting.events import Rows
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis, Pattern, frozen
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import FeatureGrid, ValueGrid
from taciturn.mechanisms.query import Answer, BoundedQuery, Table
from taciturn.queries.values import GridValues, ValueView

Features = npt.NDArray[np.int32]


def grid_sums(
    pattern: Pattern,
    values: npt.NDArray[np.int32],
    ends: tuple[int, int],
    features: Features,
    threads: int | None = None,
) -> Table:
    """Σ value × feature over the entries of each row, values clipped to `ends`, in integers.

    The result is as private as the values, and does not depend on the number of threads.
    """
    sums = np.empty((len(pattern), features.shape[1]), dtype=np.int64)
    work = partial(_core.grid_sums, pattern.starts, pattern.columns, values, *ends, features, sums)
    count = parallel.thread_count(threads)
    # Several ranges per thread balance rows of different length.
    size = max(1, -(-len(sums) // (8 * count)))
    parallel.for_ranges(work, len(sums), size=size, threads=count)
    return sums


class WeightedSums:
    """For each row of an axis, Σ value × feature over its ratings, under unit `value`.

    Changing the value of one rating changes one row of the table by at most (range of the values) ×
    (norm bound of the features); see docs/proofs/grid.md.

    Parameters
    ----------
    purpose
        Purpose of the table.
    axis, pattern
        Axis of the rows, and the public rating pattern along it.
    view
        View of the ratings, in the order of `axis`.
    features
        One row for each counterpart, on `feature_grid`: public or released.
    feature_grid
        Grid of the features.
    proof
        Page and heading that prove the bound.
    """

    def __init__(
        self,
        *,
        purpose: str,
        axis: Axis,
        pattern: Pattern,
        view: ValueView,
        features: Features,
        feature_grid: FeatureGrid,
        proof: str = "grid.md#sensitivity",
    ) -> None:
        self.view, self._pattern = view, pattern
        self._features = checked_features(features, feature_grid, pattern)
        if view.axis is not axis:
            raise InvalidParameter("values must be in the order of the table's rows")
        query = sums_query(purpose, axis, pattern, view.grid, feature_grid, features.shape[1])
        self.queries = (replace(query, proof=proof),)

    def exact(self, values: GridValues, threads: int | None = None) -> Answer:
        """Exact sums. Reads private data; the result is private too."""
        values.check(self.view, self._pattern)
        ends = self.view.grid.lowest, self.view.grid.highest
        return Answer((grid_sums(self._pattern, values.steps, ends, self._features, threads),))


def sums_query(
    purpose: str,
    axis: Axis,
    pattern: Pattern,
    grid: ValueGrid,
    feature_grid: FeatureGrid,
    width: int,
) -> BoundedQuery:
    """Public facts of a table of weighted sums with `width` columns."""
    largest = max(abs(grid.lowest), abs(grid.highest))
    return BoundedQuery(
        purpose=purpose,
        unit=Unit.VALUE,
        rows=Rows(axis.value),
        shape=(len(pattern), width),
        exponent=grid.exponent - feature_grid.bits,
        sensitivity=float(grid.range * feature_grid.bound),
        coordinates=width,
        magnitude=max(1, int(pattern.counts.max(initial=0))) * largest * feature_grid.bound,
        proof="grid.md#sensitivity",
    )


def checked_features(features: Features, grid: FeatureGrid, pattern: Pattern) -> Features:
    """Read-only features: one row for each counterpart, each with a norm of at most 1."""
    fixed = frozen("features", features, np.int32)
    if not grid.fits(fixed).all():
        raise InvalidParameter("the norm of a feature row exceeds 1; quantise it with its grid")
    if len(fixed) != pattern.width:
        raise InvalidParameter("pass one row of features for each counterpart")
    return fixed


class EveryRating:
    """Every rating, under unit `value`: a table with one row for each rated pair, ordered by user.

    A changed rating changes only its own row, by at most the range of the values.
    """

    def __init__(self, *, purpose: str, pattern: Pattern, grid: ValueGrid) -> None:
        self.view, self._pattern = ValueView(grid=grid, axis=Axis.USERS), pattern
        features = FeatureGrid()
        self._bound = features.bound
        largest = max(abs(grid.lowest), abs(grid.highest))
        self.queries = (
            BoundedQuery(
                purpose=purpose,
                unit=Unit.VALUE,
                rows=Rows.RATINGS,
                shape=(pattern.entries, 1),
                exponent=grid.exponent - features.bits,
                sensitivity=float(grid.range * features.bound),
                coordinates=1,
                magnitude=largest * features.bound,
                proof="grid.md#sensitivity",
            ),
        )

    def exact(self, values: GridValues, threads: int | None = None) -> Answer:
        """Exact ratings. Reads private data; the result is private too."""
        values.check(self.view, self._pattern)
        return Answer(((values.clipped().astype(np.int64) * self._bound)[:, None],))
