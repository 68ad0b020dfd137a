"""Prior assumptions about ratings, made before any rating is seen.

Unless stated otherwise they are standard deviations, in units in which the declared scale has width
4, like one to five stars. Values that differ for the same quantity were tuned for different
estimators.
"""

from taciturn.scale import Scale

WIDTH = 4.0
"""Width of the scale in these units."""

RATING = 1.1
"""Standard deviation of ratings; also of residuals before anything was released."""

MEAN = 0.3
"""Standard deviation of the mean rating about the middle of the scale, over datasets.

Real datasets differ more. A smaller value trusts noisy means less; it matters only where the noise
is large.
"""

RATING_MIN = 0.1
"""Minimum standard deviation of ratings, as a fraction of half the scale."""

RESIDUAL = 0.87
"""Standard deviation of residuals."""

RESIDUAL_WITHOUT_FACTORS = 0.92
"""Standard deviation of residuals when only biases predict."""

RESIDUAL_FOLD_IN = 0.88
"""Standard deviation of residuals for a user who folds in."""

BIAS = 0.45
"""Standard deviation of user and item biases."""

BIAS_SHRUNK = 0.44
"""Standard deviation of biases when only biases are estimated, or for a user who folds in."""

INTERACTION_VARIANCE = 0.32
"""Variance of the part of a rating that factors explain."""

ALS_BIAS, ALS_COEFFICIENT, ALS_USER_FACTOR, ALS_ITEM_FACTOR = 0.5, 0.1, 1.0, 0.25
"""Initial prior of `als` for biases, pattern-feature coefficients and factors; then learnt."""


def in_rating_units(standard_deviation: float, scale: Scale) -> float:
    """Standard deviation converted to the units of a scale."""
    return standard_deviation / WIDTH * scale.range
