"""Plan of a training under unit `user`: budget shares, steps and the number of factors."""

import math

import numpy as np

from taciturn.accounting.budget import Budget
from taciturn.solvers.contract import WHOLE
from taciturn.solvers.descent import DescentSteps, Vector, long_tailed, rank_of

WEIGHT_SHARE, TOTAL_SHARE = 0.03, 0.02
"""Budget shares of item weights and of totals."""

PRODUCT_SHARE, COVARIANCE_SHARE, SQUARE_SHARE = 0.02, 0.01, 0.005
"""Budget shares of products of features, posterior covariances and mean squares, over all steps."""

_ITERATIONS, _ITERATIONS_BY_MU, _ITERATIONS_MAX = 14, 8, 32
"""Default number of steps without any budget, its growth with μ, and its maximum. Noise is shared
by all steps, so that few are better where it is large."""

GROWTH = 0.0, 2.0
"""Growth of the weights of gradients, of the bias and of the factors. The factors of users turn
while those of items are learnt."""

RANKS = ((0.04, 2), (0.15, 4), (0.25, 8), (0.5, 12), (0.7, 16), (0.8, 24))
"""Number of factors by the minimum of a·b², for the data weights a of items and b of a usual user.
Few ratings of each user do more harm than noisy items, because users are fitted to them exactly."""

ATTENUATION = 1 / 1.05
"""Mean contribution of a user relative to weights 1/√n: smaller, as norms vary about their mean."""


def most_user_factors(items: int, budget: Budget, users: float, ratings: float) -> int:
    """Default number of factors for `users` users with `ratings` ratings each."""
    steps = user_steps(budget.mu)
    ratio = budget.mu * math.sqrt(gradient_share(steps))
    weights = long_tailed(users * math.sqrt(ratings) / max(1, items))
    return supported_factors(steps, weights, ratio, 1 / math.sqrt(ratings), ratings)


def expected_weight(items: int, budget: Budget, users: int, ratings: float) -> float:
    """Product of the data weights of items and users if the noise is for any change of a user.

    `ratings` is the assumed number of ratings of a user.
    """
    steps = user_steps(budget.mu / 2)
    ratio = budget.mu / 2 * math.sqrt(gradient_share(steps))
    weights = long_tailed(users * math.sqrt(ratings) / max(1, items))
    of_items = steps.data_weight(weights, 1 / (ATTENUATION * ratio), 1 / math.sqrt(ratings))
    return of_items * steps.data_weight(np.array([ratings]), 0.0)


def supported_factors(
    steps: DescentSteps, weights: Vector, ratio: float, weight: float, ratings: float
) -> int:
    """Number of factors that the weights of items and the ratings of a usual user support."""
    of_items = steps.data_weight(weights, 1 / (ATTENUATION * ratio), weight)
    of_user = steps.data_weight(np.array([max(ratings, 1e-3)]), 0.0)
    return rank_of(of_items * of_user**2, RANKS)


def user_steps(
    mu: float, factors: int | None = None, iterations: int | None = None
) -> DescentSteps:
    """Settings of the descent for a budget of μ; the largest number of factors by default."""
    usual = min(_ITERATIONS_MAX, round(_ITERATIONS + _ITERATIONS_BY_MU * mu))
    return DescentSteps(
        factors=RANKS[-1][1] if factors is None else factors,
        iterations=iterations or usual,
        averaged=0.75,
        constant=0.6,
    )


def gradient_share(steps: DescentSteps) -> float:
    """Budget share of each gradient."""
    left = WHOLE - WEIGHT_SHARE - TOTAL_SHARE
    left -= PRODUCT_SHARE + COVARIANCE_SHARE + SQUARE_SHARE
    return left / steps.iterations
