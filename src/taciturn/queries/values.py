"""Ratings as inputs of queries: decoded, centred and rounded to a grid, in a known order."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from taciturn._internal.rows import tabulated, tabulated_sums
from taciturn.data.pattern import Axis, Pattern
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import ValueGrid


class Centre(StrEnum):
    """Exact statistic that is subtracted from the ratings; not covered by any proof."""

    NONE = "none"
    ITEM_MEAN = "item-mean"


@dataclass(frozen=True, kw_only=True)
class ValueView:
    """View of the ratings that a query reads. Public.

    Attributes
    ----------
    grid
        Grid that values are rounded to.
    axis
        Order of the values: row by row along this axis.
    offset
        Public number that is subtracted before rounding.
    centre
        Exact statistic that is subtracted after the offset; only the published algorithm uses one.
    """

    grid: ValueGrid
    axis: Axis
    offset: float = 0.0
    centre: Centre = Centre.NONE


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class GridValues:
    """Ratings on a grid in the order of a view. Private.

    Attributes
    ----------
    view
        Grid, order and centre.
    pattern
        Rated pairs along the view's axis.
    steps
        One value for each entry of the pattern, in steps of the grid.
    item_means
        Exact item means, where the view subtracts them.
    transposed
        Rated pairs along the other axis, for queries of the pattern.
    """

    view: ValueView
    pattern: Pattern
    steps: npt.NDArray[np.int32]
    item_means: npt.NDArray[np.float64] | None = None
    transposed: Pattern | None = None

    def __post_init__(self) -> None:
        if self.steps.shape != self.pattern.columns.shape or self.steps.dtype != np.int32:
            raise InvalidParameter("values must be one 32-bit integer for each rating")
        if not self.steps.flags.c_contiguous:
            object.__setattr__(self, "steps", np.ascontiguousarray(self.steps))

    def along(self, axis: Axis) -> Pattern:
        """Rated pairs along an axis."""
        found = self.pattern if axis is self.view.axis else self.transposed
        if found is None:
            raise InvalidParameter("these values have no rated pairs along the other axis")
        return found

    def other_counts(self) -> npt.NDArray[np.int64]:
        """Number of ratings of each counterpart."""
        if self.transposed is not None:
            return self.transposed.counts
        return np.bincount(self.pattern.columns, minlength=self.pattern.width)

    def steps_along(self, axis: Axis) -> npt.NDArray[np.int32]:
        """Values in the order of an axis."""
        return self.steps if axis is self.view.axis else self._transposed_steps

    @cached_property
    def _transposed_steps(self) -> npt.NDArray[np.int32]:
        found: npt.NDArray[np.int32] = self.pattern.transposed(self.steps)
        return found

    def clipped(self) -> npt.NDArray[np.int32]:
        """Values clipped to the grid, so that bounds hold for any input."""
        grid = self.view.grid
        return np.clip(self.steps, grid.lowest, grid.highest)

    def tabulated(
        self, function: npt.NDArray[np.int32] | npt.NDArray[np.float32], threads: int | None = None
    ) -> npt.NDArray[Any]:
        """Function of each value, given for every step of the grid; see `every_step`."""
        return tabulated(self.steps, function, self.view.grid.lowest, threads)

    def row_sums(
        self, function: npt.NDArray[np.int64], threads: int | None = None
    ) -> npt.NDArray[np.int64]:
        """Sum over each row of a function of its values, in whole numbers; see `tabulated`."""
        lowest, starts = self.view.grid.lowest, self.pattern.starts
        return tabulated_sums(starts, self.steps, function, lowest, threads)

    def check(self, view: ValueView, pattern: Pattern | None = None) -> None:
        """Raise unless these are the values that a query was built for."""
        if self.view != view:
            raise InvalidParameter("the values have another grid, order or centre than the query")
        if pattern is not None and not self.pattern.is_same(pattern):
            raise InvalidParameter("the values are those of other pairs than the query's")


def every_step(grid: ValueGrid) -> npt.NDArray[np.int32]:
    """All values of a grid, in steps; a function of values is given by its values for these."""
    return np.arange(grid.lowest, grid.highest + 1, dtype=np.int32)


def on_grid(ratings: Ratings, view: ValueView, threads: int | None = None) -> GridValues:
    """Ratings in a view: decoded, centred and rounded. Reads private data."""
    pattern, means = ratings.pattern.along(view.axis), None
    if view.centre is Centre.ITEM_MEAN:
        means = item_means(ratings)
        values = ratings.scale.decode(ratings.along(view.axis).codes) - view.offset
        steps = view.grid.quantise(values - means[_items(pattern, view.axis)])
    else:
        steps = _rounded(ratings, view, threads)
    return GridValues(
        view=view,
        pattern=pattern,
        steps=steps,
        item_means=means,
        transposed=ratings.pattern.along(view.axis.other),
    )


def _rounded(ratings: Ratings, view: ValueView, threads: int | None) -> npt.NDArray[np.int32]:
    """Decoded and rounded ratings. Each code is decoded once, if the scale has a step."""
    codes, scale = ratings.along(view.axis).codes, ratings.scale
    if scale.step is None:
        return view.grid.quantise(scale.decode(codes) - view.offset)
    every = np.arange(len(scale.levels)).astype(scale.dtype)
    steps = tabulated(codes, view.grid.quantise(scale.decode(every) - view.offset), 0, threads)
    return np.asarray(steps, dtype=np.int32)


def item_means(ratings: Ratings) -> npt.NDArray[np.float64]:
    """Exact mean rating of each item; the overall mean for an unrated item. Private."""
    pattern = ratings.pattern.by_item
    totals = np.bincount(
        pattern.entry_rows(),
        weights=ratings.scale.decode(ratings.by_item.codes),
        minlength=len(pattern),
    )
    means: npt.NDArray[np.float64] = totals / np.maximum(pattern.counts, 1)
    means[pattern.counts == 0] = totals.sum() / max(1, pattern.counts.sum())
    return means


def _items(pattern: Pattern, axis: Axis) -> npt.NDArray[np.integer]:
    return pattern.columns if axis is Axis.USERS else pattern.entry_rows()
