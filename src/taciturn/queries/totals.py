"""Counts of ratings and totals of their values, under units that protect the rating pattern."""

import math

import numpy as np
import numpy.typing as npt

from taciturn.accounting.events import Rows
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis
from taciturn.mechanisms.grid import ValueGrid
from taciturn.mechanisms.query import Answer, BoundedQuery
from taciturn.queries.prediction_errors import Shape, ratings_max
from taciturn.queries.values import GridValues, ValueView, every_step

COUNT_BITS = 26
"""Resolution in bits of numbers of ratings and of values relative to the largest rating."""


class RatingTotals:
    """Number of ratings of each user and of each item, and totals, under unit `rating`.

    The totals are Σ 1, Σ v and Σ v², where values are divided by the largest value of their grid.
    """

    def __init__(self, *, shape: Shape, view: ValueView) -> None:
        self.view, self._shape = view, shape
        one = 1 << COUNT_BITS
        self.queries = (
            *(
                BoundedQuery(
                    purpose=f"numbers of ratings by {axis.singular}",
                    unit=Unit.RATING,
                    rows=Rows(axis.value),
                    shape=(count, 1),
                    exponent=-COUNT_BITS,
                    sensitivity=float(one),
                    coordinates=1,
                    magnitude=counterparts * one,
                    proof="rating.md#claim",
                )
                for axis, count, counterparts in (
                    (Axis.USERS, shape[0], shape[1]),
                    (Axis.ITEMS, shape[1], shape[0]),
                )
            ),
            totals_query(
                "number of ratings, sums of ratings and of their squares",
                Unit.RATING,
                ratings_max(shape),
            ),
        )

    def exact(self, values: GridValues, threads: int | None = None) -> Answer:
        """Exact tables of the queries. Reads private data; the result is private too."""
        values.check(self.view)
        pattern = values.pattern
        rows, others = pattern.counts, values.other_counts()
        counts = (rows, others) if self.view.axis is Axis.USERS else (others, rows)
        powers = (each.sum() for each in powers_by_row(values, threads))
        totals = np.array([[pattern.entries << COUNT_BITS, *powers]], dtype=np.int64)
        return Answer((*((each << COUNT_BITS)[:, None] for each in counts), totals))


def scaled_powers(
    values: npt.NDArray[np.int32], grid: ValueGrid
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Values and squares relative to the largest of the grid, at most 2^COUNT_BITS steps."""
    largest = max(abs(grid.lowest), abs(grid.highest))
    inside = np.clip(values, grid.lowest, grid.highest).astype(np.int64)
    one = 1 << COUNT_BITS
    sizes = np.abs(inside) * one // largest
    return np.sign(inside) * sizes, sizes * sizes >> COUNT_BITS


def powers_by_row(
    values: GridValues, threads: int | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Sums of the `scaled_powers` of the ratings of each row. Private."""
    grid = values.view.grid
    first, second = scaled_powers(every_step(grid), grid)
    return values.row_sums(first, threads), values.row_sums(second, threads)


def totals_query(purpose: str, unit: Unit, most: int) -> BoundedQuery:
    """Public facts of three totals over at most `most` terms of at most 2^COUNT_BITS steps."""
    one, numbers = 1 << COUNT_BITS, 3
    return BoundedQuery(
        purpose=purpose,
        unit=unit,
        rows=Rows.TOTAL,
        shape=(1, numbers),
        exponent=-COUNT_BITS,
        sensitivity=math.sqrt(numbers) * one * (1 + 2.0**-50),
        coordinates=numbers,
        magnitude=max(1, most) * one,
        proof=f"{unit}.md#claim",
    )
