"""Errors on ratings: exact, and so for the owner only."""

import math

import numpy as np

from tacit.data.ratings import Ratings
from tacit.errors import InvalidParameter
from tacit.solvers.contract import Fit

_PIECE = 2**18


def rmse(fit: Fit, ratings: Ratings) -> float:
    """Return the root-mean-square error of a fit on ratings with the same users and items.

    Reads private data: the owner's own view, not covered by any guarantee.
    """
    if len(ratings) == 0 or ratings.shape[0] != len(fit.users.ids):
        raise InvalidParameter("evaluate on ratings of the same users and items, at least one")
    users, items, values = ratings.rows(), ratings.by_user.columns, ratings.values()
    squares = 0.0
    for begin in range(0, len(ratings), _PIECE):
        part = slice(begin, begin + _PIECE)
        errors = fit.predict(users[part], items[part]) - values[part]
        squares += float(np.dot(errors, errors.astype(np.float64)))
    return math.sqrt(squares / len(ratings))
