"""Slow reference implementation of the pass of `taciturn.queries.prediction_errors`."""

import math

import numpy as np
import numpy.typing as npt

from taciturn.data.ratings import Ratings
from taciturn.mechanisms.grid import ValueGrid
from taciturn.queries.features import NORM, AxisFeatures
from taciturn.queries.prediction_errors import ErrorTables


def reference_tables(
    ratings: Ratings,
    users: AxisFeatures,
    items: AxisFeatures,
    grid: ValueGrid,
    *,
    first: int,
    margin: float,
    threshold: int | None = None,
) -> ErrorTables:
    """Σ r·f by user and by item and Σ r², with r clipped to `threshold` steps unless it is None.

    Reads private data; the result is private too.
    """
    sides = [each.packed[:, : each.width].astype(np.int64) for each in (users, items)]
    sums = [np.zeros_like(side) for side in sides]
    step = math.ldexp(1.0, grid.exponent)
    user_lines, item_lines = users.lines(step, NORM * step), items.lines(step, NORM)
    beyond = math.ceil(grid.range * margin)
    squares = 0
    values: npt.NDArray[np.int32] = grid.quantise(ratings.values())
    for user, item, value in zip(ratings.rows(), ratings.by_user.columns, values, strict=True):
        product = np.float32(sides[0][user, first:] @ sides[1][item, first:])
        base = user_lines[user, 0] + item_lines[item, 0]
        prediction = base + (user_lines[user, 1] * item_lines[item, 1]) * product
        inside = np.clip(prediction, grid.lowest - beyond, grid.highest + beyond)
        residual = int(np.rint(inside)) - int(value)
        if threshold is not None:
            residual = max(-threshold, min(threshold, residual))
        sums[0][user] += residual * sides[1][item]
        sums[1][item] += residual * sides[0][user]
        squares += residual * residual
    return ErrorTables(sums[0], sums[1], squares)
