"""Slow reference implementation of the pass of `taciturn.queries.prediction_errors`."""

import math

import numpy as np
import numpy.typing as npt

from taciturn.data.ratings import Ratings
from taciturn.mechanisms.grid import ValueGrid
from taciturn.queries.features import NORM, AxisFeatures
from taciturn.queries.pair_weights import BITS, PairWeights
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
    weights: PairWeights | None = None,
) -> ErrorTables:
    """Σ r·f by user and by item and Σ r², with r clipped to `threshold` steps unless it is None.

    Weights apply to r in both tables, not to the squares; their rows are users, their counterparts
    items, whichever axis the pass runs along.
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
        of_user, of_item = residual, residual
        if weights is not None:
            pair = weights.rows[user], weights.others[item]
            of_user = weighted(residual, int(weights.of_rows[pair]))
            of_item = weighted(residual, int(weights.of_others[pair]))
        sums[0][user] += of_user * sides[1][item]
        sums[1][item] += of_item * sides[0][user]
        squares += residual * residual
    return ErrorTables(sums[0], sums[1], squares)


def weighted(residual: int, weight: int) -> int:
    """Residual times weight/2^BITS, rounded to the nearest integer and ties away from zero."""
    size = (abs(residual) * weight + (1 << BITS - 1)) >> BITS
    return size if residual >= 0 else -size
