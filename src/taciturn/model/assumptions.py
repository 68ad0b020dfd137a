"""Assumptions about ratings before any are seen, each in one place and all on one scale.

They are standard deviations in units in which the declared scale is 4 wide, as one to five stars
are. Values that differ for the same quantity were tuned for different estimators.
"""

from taciturn.scale import Scale

WIDTH = 4.0
"""Width of the scale in these units."""

RATING = 1.1
"""Of a rating about the mean of all; also of a residual before anything was released."""

RATING_MIN = 0.1
"""Smallest believed standard deviation of ratings, as a fraction of half the scale."""

RESIDUAL = 0.87
"""Of a rating about its prediction."""

RESIDUAL_WITHOUT_FACTORS = 0.92
"""Of a rating about a prediction from biases alone."""

RESIDUAL_FOLD_IN = 0.88
"""Of a rating about its prediction for a user who folds in."""

BIAS = 0.45
"""Of a user's or an item's bias."""

BIAS_SHRUNK = 0.44
"""Of a bias, where only biases are estimated or a user folds in."""

INTERACTION_VARIANCE = 0.32
"""Variance of the part of a rating that factors explain."""

ALS_BIAS, ALS_COEFFICIENT, ALS_USER_FACTOR, ALS_ITEM_FACTOR = 0.5, 0.1, 1.0, 0.25
"""Initial prior of `als` for biases, coefficients of pattern features and factors; it is learnt."""


def in_rating_units(deviation: float, scale: Scale) -> float:
    """A standard deviation in the units of a scale."""
    return deviation / WIDTH * scale.range
