"""One pass over the ratings that sums clipped prediction errors × features, in exact integers."""

import math
from dataclasses import dataclass

import numpy as np

from taciturn import _core
from taciturn._internal import parallel, validate
from taciturn.accounting import sampler
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import ValueGrid
from taciturn.mechanisms.query import Table
from taciturn.queries.features import NORM, AxisFeatures
from taciturn.queries.pair_weights import PairWeights
from taciturn.queries.values import GridValues, ValueView

_SQUARE_BITS = 24
"""Minimum number of bits of the largest square; determines the resolution of squares."""


def value_levels(ratio: float, least: int) -> int:
    """Number of steps for the value grid, at least `least`.

    A release that spends `ratio` = sensitivity/noise needs noise of at least SIGMA_MIN steps; the
    larger the ratio, the finer the grid must be.
    """
    if ratio > sampler.RATIO_MAX:
        raise InvalidParameter(
            f"one release may spend at most mu = {sampler.RATIO_MAX:g}, this would be {ratio:g}; "
            "choose a smaller epsilon or more iterations"
        )
    needed = 2 * ratio * sampler.SIGMA_MIN / NORM
    return least if needed <= least else 2 ** math.ceil(math.log2(needed))


def margin_max(grid: ValueGrid) -> int:
    """Largest prediction margin of a grid, in multiples of its range."""
    beyond = min(
        _core.ERROR_MAX - grid.range,
        _core.PREDICTION_MAX - max(abs(grid.lowest), abs(grid.highest)),
    )
    return max(0, beyond // grid.range)


def square_bits(threshold: int) -> int:
    """Bits by which squares of clipped errors are shifted, so that their noise is fine enough."""
    return max(0, _SQUARE_BITS - 2 * (threshold.bit_length() - 1))


class ErrorPass:
    """Sums of clipped prediction errors × features: settings, and the pass itself.

    Parameters
    ----------
    view
        View of the ratings; rows of the pass are those of its axis.
    first
        First column that contributes to the prediction.
    margin
        Predictions are clipped to the rating range extended on each side by this multiple of its
        width.
    threshold
        Clipping threshold of prediction errors, in grid steps. Default: no clipping.
    """

    def __init__(
        self,
        view: ValueView,
        *,
        first: int = 0,
        margin: float = 0.5,
        threshold: int | None = None,
    ) -> None:
        self.view, self._first = view, first
        grid = view.grid
        beyond = math.ceil(grid.range * margin)
        self._predictions = grid.lowest - beyond, grid.highest + beyond
        self.threshold = grid.range + beyond
        if threshold is not None:
            validate.positive_integer("threshold", threshold, "it counts steps of the grid")
            self.threshold = min(threshold, self.threshold)
        if self.threshold > _core.ERROR_MAX:
            raise InvalidParameter("a prediction error could exceed 15 bits; use fewer levels")
        if max(map(abs, self._predictions)) > _core.PREDICTION_MAX:
            raise InvalidParameter(
                "the scale is too far from zero for its width; shift the ratings"
            )

    @property
    def grid(self) -> ValueGrid:
        """Grid of the ratings."""
        return self.view.grid

    def run(
        self,
        values: GridValues,
        rows: AxisFeatures,
        others: AxisFeatures,
        threads: int | None = None,
        weights: PairWeights | None = None,
    ) -> "ErrorSums":
        """Sums over the ratings of each row and of each counterpart.

        Weights apply to the errors in both tables of sums, not to the squares. Default: no weights.
        Values outside the grid are clipped to it, so that bounds hold for any input. Reads
        private data; the result is private too.
        """
        values.check(self.view)
        pattern, step = values.pattern, math.ldexp(1.0, self.grid.exponent)
        if (len(rows), len(others)) != (len(pattern), pattern.width):
            raise InvalidParameter("the features of a pass must match the ratings")
        arrays = None
        if weights is not None:
            if (len(weights.rows), len(weights.others)) != (len(rows), len(others)):
                raise InvalidParameter("the weights of a pass must match the ratings")
            arrays = weights.rows, weights.others, weights.of_rows, weights.of_others
        row_lines, column_lines = rows.lines(step, NORM * step), others.lines(step, NORM)
        parts = pattern.ranges(parallel.thread_count(threads))
        row_sums = np.empty((len(rows), rows.width), dtype=np.int64)
        column_sums = np.zeros((max(1, len(parts)), len(others), rows.width), dtype=np.int64)
        squares = np.empty(len(rows), dtype=np.int64)

        def work(part: int, _: int) -> None:
            _core.error_sums(
                pattern.starts,
                pattern.columns,
                values.steps,
                (self.grid.lowest, self.grid.highest),
                self._predictions,
                self._first,
                self.threshold,
                rows.packed,
                row_lines,
                others.packed,
                column_lines,
                row_sums,
                column_sums[part],
                squares,
                *parts[part],
                weights=arrays,
            )

        parallel.for_ranges(work, len(parts), size=1, threads=max(1, len(parts)))
        for more in column_sums[1:]:
            column_sums[0] += more
        return ErrorSums(rows=row_sums, others=column_sums[0], squares=squares)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ErrorSums:
    """Exact sums of a pass, all private.

    rows, others: Σ error × feature by row and by counterpart, in steps, with weighted errors if the
    pass has weights; squares: Σ error² by row, without weights.
    """

    rows: Table
    others: Table
    squares: Table
