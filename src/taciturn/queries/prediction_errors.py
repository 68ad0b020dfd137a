"""Both gradients of the squared error in one pass: sums of residual × feature, under unit `value`.

For a rating v of an item i by a user j, predicted as v̂ from public or released values only, the
residual is r = v̂ − v. The pass computes, in exact integers, Σ r·f_i for each user and Σ r·f_j for
each item. Changing one value moves r by at most the range of the scale and so one row of each table
by at most that range times the norm bound of the features: v̂ is the same for both neighbours along
the same released history (docs/proofs/gradient.md).
"""

import math
from copy import copy
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from taciturn import _core
from taciturn._internal import parallel, validate
from taciturn.accounting import sampler
from taciturn.accounting.events import Rows
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import WIDTH_MAX, ValueGrid
from taciturn.mechanisms.query import BoundedQuery, checked_pattern

NORM = _core.RESIDUAL_NORM
"""The norm bound of a feature row, in steps of the features' grid."""

_LARGEST = 1e30
"""Largest base, and inverse of the smallest factor, of a row."""

COUNT_BITS = 26
"""Numbers of ratings, and parts of the largest rating, are counted in steps of 2^−bits."""

_SQUARE_BITS = 24
"""Squares are counted so finely that the largest has at least so many bits."""

RATINGS_MAX = 2**33
"""Most ratings whose sums are certain not to overflow, whatever the numbers of users and items."""

LANES = 32
"""Feature rows are padded to a multiple of this."""


def value_levels(ratio: float, least: int) -> int:
    """Return a number of steps for the value grid, at least `least`.

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


def reach_max(values: ValueGrid) -> int:
    """Return how many ranges of its grid a prediction may lie beyond it, at most."""
    beyond = min(
        _core.RESIDUAL_MAX - values.range,
        _core.PREDICTION_MAX - max(abs(values.lowest), abs(values.highest)),
    )
    return max(0, beyond // values.range)


class RatedPairs:
    """Which pairs were rated, which is public under unit `value`; checked once for many passes.

    The pass runs over the rows of the longer side, and adds up sums of the shorter one for each
    thread.
    """

    def __init__(self, ratings: Ratings) -> None:
        users, items = ratings.shape
        self.shape = users, items
        self.by_user = users >= items
        side = ratings.by_user if self.by_user else ratings.by_item
        self.starts, self.columns = checked_pattern(side.starts, side.columns, min(users, items))
        if self.columns.size > RATINGS_MAX:
            raise InvalidParameter("there can be at most 2^33 ratings")
        self.user_counts = np.diff(ratings.by_user.starts)
        self.item_counts = np.diff(ratings.by_item.starts)

    @property
    def most(self) -> int:
        """How many pairs there are at most, by the numbers of users and items alone."""
        return min(RATINGS_MAX, math.prod(self.shape))

    def values(
        self,
        ratings: Ratings,
        grid: ValueGrid,
        centres: npt.NDArray[np.float64] | float = 0.0,
    ) -> npt.NDArray[np.int32]:
        """Return the ratings on the grid in the order of the pairs. Reads private data.

        `centres` is subtracted first: one number, or one for each item.
        """
        side = ratings.by_user if self.by_user else ratings.by_item
        if ratings.shape != self.shape or not (
            np.array_equal(side.starts, self.starts) and np.array_equal(side.columns, self.columns)
        ):
            raise InvalidParameter("these are ratings of other pairs")
        if isinstance(centres, np.ndarray):
            rows = np.repeat(np.arange(self.starts.size - 1), np.diff(self.starts))
            centres = centres[self.columns if self.by_user else rows]
        return grid.quantise(ratings.scale.decode(side.codes) - centres)


class Side:
    """Users or items in a pass: feature rows on the grid, and how they predict.

    A rating is predicted as base + base + ⟨row, row⟩, the sum of both sides' bases and the product
    of their rows. Features are the rows times `shrink`, which makes them no longer than 1: what
    bounds the sensitivity does not bound the prediction. Takes public or released values only.

    Parameters
    ----------
    rows
        Profiles (n × width).
    shrink
        A positive factor for each row. Rows that are longer than 1 with it are cut to norm 1, in
        features and predictions.
    base
        One number for each row.
    unit
        Factor of the product of rows in the prediction; those of both sides multiply.
    """

    def __init__(
        self,
        rows: npt.NDArray[np.float64],
        shrink: npt.NDArray[np.float64],
        base: npt.NDArray[np.float64],
        unit: float = 1.0,
    ) -> None:
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        if rows.ndim != 2 or not 1 <= rows.shape[1] <= WIDTH_MAX:
            raise InvalidParameter(f"features must have 1 to {WIDTH_MAX:,} columns")
        count, self.width = rows.shape
        if base.shape != (count,) or shrink.shape != (count,):
            raise InvalidParameter("give one base and one factor for each row of features")
        # What is not a number compares as false; what is out of bounds has no 32-bit form.
        if not ((np.abs(base) < _LARGEST).all() and (shrink > 1 / _LARGEST).all()):
            raise InvalidParameter("profiles must be finite; use a smaller step size")
        self.base, self._unit, self._shrink = base, unit, shrink
        self.packed = _aligned(count, -(-self.width // LANES) * LANES)
        try:
            _core.pack_rows(rows, shrink, self.packed, 0, count)
        except ValueError:
            raise InvalidParameter("profiles must be finite; use a smaller step size") from None
        self.packed.flags.writeable = False

    def weighted(self, weights: npt.NDArray[np.int64], bits: int) -> "Side":
        """Return the same predictions from features times weights/2^bits, cut towards zero."""
        side = copy(self)
        found = np.abs(self.packed) * weights[:, None] >> bits
        side.packed = _aligned(*found.shape)
        side.packed[:] = np.sign(self.packed) * found
        side.packed.flags.writeable = False
        side._shrink = self._shrink * np.maximum(weights, 1) / (1 << bits)
        return side

    def lines(self, base_step: float, scale_step: float) -> npt.NDArray[np.float32]:
        """Return base and scale of each row in the units of a pass."""
        lines = np.empty((len(self.base), 2), dtype=np.float32)
        lines[:, 0] = self.base / base_step
        lines[:, 1] = (self._unit / scale_step) / self._shrink
        return lines


class ResidualPass:
    """How residuals are made from ratings and predictions, and added up.

    Parameters
    ----------
    values
        Grid of the values.
    first
        Columns before it do not enter the prediction.
    reach
        Predictions are cut to the grid's ends widened by so many of its ranges.
    limit
        Residuals are cut to this, in steps of the grid; not at all when omitted.
    portable
        Use no special instructions; the result is the same.
    """

    def __init__(
        self,
        values: ValueGrid,
        *,
        first: int = 0,
        reach: float = 0.5,
        limit: int | None = None,
        portable: bool = False,
    ) -> None:
        self.grid, self._first, self._portable = values, first, portable
        beyond = math.ceil(values.range * reach)
        self._predictions = values.lowest - beyond, values.highest + beyond
        self.limit = values.range + beyond
        if limit is not None:
            validate.positive_integer("limit", limit, "it counts steps of the grid")
            self.limit = min(limit, self.limit)
        if self.limit > _core.RESIDUAL_MAX:
            raise InvalidParameter("a residual could exceed 15 bits; use fewer levels")
        if max(map(abs, self._predictions)) > _core.PREDICTION_MAX:
            raise InvalidParameter(
                "the scale is too far from zero for its width; shift the ratings"
            )

    def run(
        self,
        starts: npt.NDArray[np.int64],
        columns: npt.NDArray[np.int32],
        values: npt.NDArray[np.int32],
        rows: Side,
        others: Side,
        threads: int | None = None,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return Σ r·f by row and by column, and Σ r² by row, over compressed rows of ratings.

        Values outside the grid count as its nearer end, so that bounds hold for any input. Reads
        private data; the result is private too.
        """
        check_values(values, columns)
        step = math.ldexp(1.0, self.grid.exponent)
        row_lines, column_lines = rows.lines(step, NORM * step), others.lines(step, NORM)
        parts = _ranges(starts, columns.size, parallel.thread_count(threads))
        row_sums = np.empty((len(rows.base), rows.width), dtype=np.int64)
        shape = (max(1, len(parts)), len(others.base), rows.width)
        column_sums = np.zeros(shape, dtype=np.int64)
        squares = np.empty(len(rows.base), dtype=np.int64)

        def work(part: int, _: int) -> None:
            _core.residual_sums(
                starts,
                columns,
                values,
                (self.grid.lowest, self.grid.highest),
                self._predictions,
                self._first,
                self.limit,
                rows.packed,
                row_lines,
                others.packed,
                column_lines,
                row_sums,
                column_sums[part],
                squares,
                *parts[part],
                portable=self._portable,
            )

        parallel.for_ranges(work, len(parts), size=1, threads=max(1, len(parts)))
        for more in column_sums[1:]:
            column_sums[0] += more
        return row_sums, column_sums[0], squares


def check_values(values: npt.NDArray[np.int32], columns: npt.NDArray[np.int32]) -> None:
    """Raise unless there is one value for each rating."""
    if values.shape != columns.shape or values.dtype != np.int32:
        raise InvalidParameter("values must be one 32-bit integer for each rating")


def _ranges(starts: npt.NDArray[np.int64], entries: int, parts: int) -> list[tuple[int, int]]:
    """Return ranges of rows with about equal numbers of entries."""
    even = np.linspace(0, entries, parts + 1)[1:-1]
    edges = [0, *np.searchsorted(starts, even).tolist(), starts.size - 1]
    return [(begin, end) for begin, end in pairwise(edges) if begin < end]


@dataclass(frozen=True, eq=False)
class ResidualTables:
    """Exact sums of a pass, all private.

    users (n_u × width), items (n_i × width): Σ r·f in steps; squares: Σ r² in squared steps.
    """

    users: npt.NDArray[np.int64]
    items: npt.NDArray[np.int64]
    squares: int


class ResidualSums:
    """The sums Σ r·f by user and by item, and if asked for Σ r²: the tables of one pass.

    Under unit `rating` the pairs are private: tables have a row for every user and item, rated or
    not, and no bound depends on how many ratings there are.

    Parameters
    ----------
    purpose
        What the pass is for.
    pairs
        Which pairs were rated.
    users, items
        Features and predictions of both sides, of the same width.
    values
        The grid of the ratings.
    first
        Columns before it do not enter the prediction.
    reach
        Predictions are cut to the grid's ends widened by so many of its ranges.
    limit
        Residuals are cut to this, in steps of the grid; not at all when omitted.
    unit
        What neighbours differ by: the value of a rating, or a rating.
    has_squares
        Whether there is a third table, the sum of squared residuals.
    width
        Columns to record, at least those there are: what was planned for before the first release.
    portable
        Use no special instructions; the result is the same.
    """

    def __init__(
        self,
        *,
        purpose: str,
        pairs: RatedPairs,
        users: Side,
        items: Side,
        values: ValueGrid,
        first: int = 0,
        reach: float = 0.5,
        limit: int | None = None,
        unit: Unit = Unit.VALUE,
        has_squares: bool = False,
        width: int = 1,
        portable: bool = False,
    ) -> None:
        if users.width != items.width or (len(users.base), len(items.base)) != pairs.shape:
            raise InvalidParameter("the sides of a pass must fit the pairs and each other")
        self._pairs, self._users, self._items = pairs, users, items
        self._pass = ResidualPass(values, first=first, reach=reach, limit=limit, portable=portable)
        if unit is Unit.USER:
            raise InvalidParameter("one person is in many rows of these sums; use PersonSums")
        self._unit, self._has_squares = unit, has_squares
        self._width = max(width, users.width)
        self.queries: tuple[BoundedQuery, ...] = (
            self._query(purpose, Rows.USERS, pairs.user_counts, pairs.shape[1]),
            self._query(purpose, Rows.ITEMS, pairs.item_counts, pairs.shape[0]),
            *([self._squares_query(purpose)] if has_squares else []),
        )

    def _query(
        self, purpose: str, rows: Rows, counts: npt.NDArray[np.int64], partners: int
    ) -> BoundedQuery:
        grid, limit = self._pass.grid, self._pass.limit
        if self._unit is Unit.RATING:
            change, most = limit, partners
            proof = "rating.md#claim"
        else:
            change, most = min(2 * limit, grid.range), int(counts.max(initial=0))
            proof = "gradient.md#claim"
        return BoundedQuery(
            purpose=f"{purpose}, sums by {rows.value.removesuffix('s')}",
            unit=self._unit,
            rows=rows,
            shape=(counts.size, self._users.width),
            exponent=grid.exponent - (NORM.bit_length() - 1),
            sensitivity=float(change * NORM),
            coordinates=self._width,
            magnitude=max(1, most) * limit * NORM,
            proof=proof,
        )

    def _squares_query(self, purpose: str) -> BoundedQuery:
        limit, bits = self._pass.limit, square_bits(self._pass.limit)
        return BoundedQuery(
            purpose=f"{purpose}, sum of squares",
            unit=self._unit,
            rows=Rows.TOTAL,
            shape=(1, 1),
            exponent=2 * self._pass.grid.exponent - bits,
            sensitivity=float(limit**2 << bits),
            coordinates=1,
            magnitude=max(1, self._pairs.most) * limit**2 << bits,
            proof="rating.md#claim",
        )

    def exact(
        self, values: npt.NDArray[np.int32], threads: int | None = None
    ) -> tuple[npt.NDArray[np.int64], ...]:
        """Return the tables of the queries. Reads private data; the result is private too."""
        tables = self.tables(values, threads)
        if self._has_squares:
            return (
                tables.users,
                tables.items,
                np.array([[tables.squares << square_bits(self._pass.limit)]]),
            )
        return tables.users, tables.items

    def tables(self, values: npt.NDArray[np.int32], threads: int | None = None) -> ResidualTables:
        """Return the sums and the squared error. Reads private data; the result is private too."""
        pairs, sides = self._pairs, (self._users, self._items)
        rows, others = sides if pairs.by_user else sides[::-1]
        *both, squares = self._pass.run(pairs.starts, pairs.columns, values, rows, others, threads)
        users, items = both if pairs.by_user else both[::-1]
        return ResidualTables(users, items, int(squares.sum()))


class RatingTotals:
    """How many ratings each user and each item has, and Σ v and Σ v²: tables under unit `rating`.

    Values are divided by the largest of their grid.
    """

    def __init__(self, pairs: RatedPairs, values: ValueGrid) -> None:
        self._pairs, self._grid = pairs, values
        sums = total_query("sums of ratings and of their squares", Unit.RATING, pairs.most)
        self.queries = (
            *(
                BoundedQuery(
                    purpose=f"numbers of ratings by {rows.value.removesuffix('s')}",
                    unit=Unit.RATING,
                    rows=rows,
                    shape=(count, 1),
                    exponent=-COUNT_BITS,
                    sensitivity=float(1 << COUNT_BITS),
                    coordinates=1,
                    magnitude=partners << COUNT_BITS,
                    proof="rating.md#claim",
                )
                for rows, count, partners in (
                    (Rows.USERS, pairs.shape[0], pairs.shape[1]),
                    (Rows.ITEMS, pairs.shape[1], pairs.shape[0]),
                )
            ),
            sums,
        )

    def exact(
        self, values: npt.NDArray[np.int32], threads: int | None = None
    ) -> tuple[npt.NDArray[np.int64], ...]:
        """Return the tables of the queries. Reads private data; the result is private too."""
        check_values(values, self._pairs.columns)
        counts = self._pairs.user_counts, self._pairs.item_counts
        first, second = (each.sum() for each in scaled_powers(values, self._grid))
        totals = np.array([[first, second]], dtype=np.int64)
        return *((each << COUNT_BITS)[:, None] for each in counts), totals


def square_bits(limit: int) -> int:
    """Return by how many bits squares of residuals are shifted, so that noise is fine enough."""
    return max(0, _SQUARE_BITS - 2 * (limit.bit_length() - 1))


def scaled_powers(
    values: npt.NDArray[np.int32], grid: ValueGrid
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return v and v² in parts of the grid's largest value, each at most 2^COUNT_BITS steps."""
    largest = max(abs(grid.lowest), abs(grid.highest))
    inside = np.clip(values, grid.lowest, grid.highest).astype(np.int64)
    one = 1 << COUNT_BITS
    sizes = np.abs(inside) * one // largest
    return np.sign(inside) * sizes, sizes * sizes >> COUNT_BITS


def total_query(purpose: str, unit: Unit, most: int, numbers: int = 2) -> BoundedQuery:
    """Return the query of sums of so many numbers, none of them above 2^COUNT_BITS steps."""
    one = 1 << COUNT_BITS
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


def _aligned(rows: int, columns: int) -> npt.NDArray[np.int16]:
    """Return an array that begins at a cache line, as vector instructions like it."""
    memory = np.empty(2 * rows * columns + 64, dtype=np.uint8)
    begin = -memory.ctypes.data % 64
    return memory[begin : begin + 2 * rows * columns].view(np.int16).reshape(rows, columns)
