"""Queries over clipped residuals, under unit `value`.

A residual is a rating minus its prediction. Predictions depend on public or released values only,
so given the same transcript they are the same for neighbouring datasets. A changed rating changes
only its own residual, by at most twice the clipping threshold, or the range of the scale if that is
less (docs/proofs/als.md).
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from taciturn._internal import validate
from taciturn.accounting.events import Rows
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis, Pattern, frozen
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import FeatureGrid, ValueGrid
from taciturn.mechanisms.query import Answer, BoundedQuery
from taciturn.queries.values import GridValues, ValueView
from taciturn.queries.weighted_sums import Features, checked_features, grid_sums, sums_query

TOTAL_BITS = {1: 20, 2: 8}
"""Resolution of totals in bits, by their power: their noise is then fine enough."""


class Residuals:
    """Predictions of ratings, and the clipping threshold of residuals.

    Parameters
    ----------
    view
        View of the ratings.
    pattern
        The public rating pattern in the order of the view.
    predictions
        Prediction of each rated pair, in grid steps: public or released.
    threshold
        Clipping threshold in steps, at most the grid's range.
    """

    def __init__(
        self,
        view: ValueView,
        pattern: Pattern,
        predictions: npt.NDArray[np.int32],
        threshold: int,
    ) -> None:
        self.view, self.pattern = view, pattern
        self.predictions = frozen("predictions", predictions, np.int32)
        self.threshold = validate.positive_integer(
            "threshold", threshold, "it counts steps of the grid"
        )
        if self.predictions.shape != pattern.columns.shape:
            raise InvalidParameter("pass one prediction for each rating")
        if self.threshold > self.grid.range:
            raise InvalidParameter("the clipping threshold must be at most the range of the values")
        ends = (self.predictions.min(initial=0), self.predictions.max(initial=0))
        largest = max(abs(int(end)) for end in (self.grid.lowest, self.grid.highest, *ends))
        if largest >= 2**30:
            raise InvalidParameter("values and predictions must fit in 30 bits")

    @property
    def grid(self) -> ValueGrid:
        """Grid of values, predictions and residuals."""
        return self.view.grid

    @property
    def sensitivity(self) -> int:
        """Maximum change of one clipped residual, in steps."""
        return clipped_sensitivity(self.threshold, self.grid)

    def of(self, values: GridValues) -> npt.NDArray[np.int32]:
        """Clipped residuals. Reads private data; the result is private too."""
        values.check(self.view, self.pattern)
        residuals = values.clipped()
        residuals -= self.predictions
        return np.clip(residuals, -self.threshold, self.threshold, out=residuals)


def clipped_sensitivity(threshold: int, grid: ValueGrid) -> int:
    """Maximum change of a clipped residual when its rating changes: min(2·threshold, range)."""
    return min(2 * threshold, grid.range)


class ClippedSums:
    """For each row of an axis, Σ clipped residual × feature over its ratings.

    Parameters
    ----------
    purpose, axis
        Purpose of the table, and axis of its rows.
    residuals
        Residuals in the order of that axis.
    features, feature_grid
        Features of the counterparts, one row each, and their grid: public or released.
    """

    def __init__(
        self,
        *,
        purpose: str,
        axis: Axis,
        residuals: Residuals,
        features: Features,
        feature_grid: FeatureGrid,
    ) -> None:
        if residuals.view.axis is not axis:
            raise InvalidParameter("residuals must be in the order of the table's rows")
        self.view, self.residuals = residuals.view, residuals
        self.features = checked_features(features, feature_grid, residuals.pattern)
        self.queries = (
            clipped_query(
                purpose,
                residuals.pattern,
                view=residuals.view,
                threshold=residuals.threshold,
                feature_grid=feature_grid,
                width=features.shape[1],
            ),
        )

    def exact(self, values: GridValues, threads: int | None = None) -> Answer:
        """Exact sums. Reads private data; the result is private too."""
        residuals, threshold = self.residuals.of(values), self.residuals.threshold
        ends = -threshold, threshold
        pattern = self.residuals.pattern
        return Answer((grid_sums(pattern, residuals, ends, self.features, threads),))


def clipped_query(
    purpose: str,
    pattern: Pattern,
    *,
    view: ValueView,
    threshold: int,
    feature_grid: FeatureGrid,
    width: int,
) -> BoundedQuery:
    """Public facts of a table of clipped sums with `width` columns."""
    grid = ValueGrid(exponent=view.grid.exponent, lowest=-threshold, highest=threshold)
    query = sums_query(purpose, view.axis, pattern, grid, feature_grid, width)
    sensitivity = clipped_sensitivity(threshold, view.grid) * feature_grid.bound
    return replace(query, sensitivity=float(sensitivity), proof="als.md#claim")


class ResidualTotal:
    """Sum of all clipped residuals or of their squares: one number.

    Parameters
    ----------
    purpose
        Purpose of the total.
    residuals
        Residuals to sum.
    power
        1 for the residuals themselves, 2 for their squares.
    proof
        Page and heading that prove the bound.
    """

    def __init__(
        self, *, purpose: str, residuals: Residuals, power: int, proof: str = "als.md#claim"
    ) -> None:
        self.view, self.residuals, self._power = residuals.view, residuals, power
        query = total_query(
            purpose,
            grid=residuals.grid,
            threshold=residuals.threshold,
            power=power,
            count=residuals.predictions.size,
        )
        self.queries = (replace(query, proof=proof),)

    def exact(self, values: GridValues, threads: int | None = None) -> Answer:
        """Exact sum. Reads private data; the result is private too."""
        residuals = self.residuals.of(values)
        total = np.sum(np.power(residuals, self._power, dtype=np.int64))
        return Answer((np.array([[total << TOTAL_BITS[self._power]]]),))


def total_query(
    purpose: str, *, grid: ValueGrid, threshold: int, power: int, count: int
) -> BoundedQuery:
    """Public facts of a total over `count` clipped residuals."""
    if power not in TOTAL_BITS:
        raise InvalidParameter("power must be 1 (residuals) or 2 (their squares)")
    bits = TOTAL_BITS[power]
    largest = threshold**power << bits
    change = largest if power == 2 else clipped_sensitivity(threshold, grid) << bits
    return BoundedQuery(
        purpose=purpose,
        unit=Unit.VALUE,
        rows=Rows.TOTAL,
        shape=(1, 1),
        exponent=power * grid.exponent - bits,
        sensitivity=float(change),
        coordinates=1,
        magnitude=max(1, count) * largest,
        proof="als.md#claim",
    )
