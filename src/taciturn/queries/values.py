"""Ratings as inputs of queries: decoded, centred and rounded to a grid, in a known order."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

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

    def clipped(self) -> npt.NDArray[np.int32]:
        """Values clipped to the grid, so that bounds hold for any input."""
        grid = self.view.grid
        return np.clip(self.steps, grid.lowest, grid.highest)

    def check(self, view: ValueView, pattern: Pattern | None = None) -> None:
        """Raise unless these are the values that a query was built for."""
        if self.view != view:
            raise InvalidParameter("the values have another grid, order or centre than the query")
        if pattern is not None and not self.pattern.is_same(pattern):
            raise InvalidParameter("the values are those of other pairs than the query's")


def on_grid(ratings: Ratings, view: ValueView) -> GridValues:
    """Ratings in a view: decoded, centred and rounded. Reads private data."""
    csr, pattern = ratings.along(view.axis), ratings.pattern.along(view.axis)
    values = ratings.scale.decode(csr.codes) - view.offset
    means = None
    if view.centre is Centre.ITEM_MEAN:
        means = item_means(ratings)
        values = values - means[_items(pattern, view.axis)]
    return GridValues(
        view=view,
        pattern=pattern,
        steps=view.grid.quantise(values),
        item_means=means,
        transposed=ratings.pattern.along(view.axis.other),
    )


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
