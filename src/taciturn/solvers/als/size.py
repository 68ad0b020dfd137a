"""Sizes from which `als` uses factors, from public facts and the budget alone."""

import math
from collections.abc import Callable

import numpy as np

from taciturn.accounting.budget import Budget
from taciturn.accounting.units import Unit
from taciturn.model.assumptions import WIDTH
from taciturn.queries.per_user import USERS_MAX
from taciturn.solvers.als import rating, user_plan
from taciturn.solvers.als.rating import most_factors
from taciturn.solvers.als.user_plan import most_user_factors
from taciturn.solvers.contract import PublicFacts

_RATINGS_MIN = 500
"""Minimum number of ratings for factors under `value`: priors are learnt from the rows."""

_MEAN_NOISE_MAX = 0.1
"""Maximum noise of the mean rating for factors under `value`, on a scale of width 4. Residuals are
clipped about predictions, which must be roughly right first."""

_MARGIN = 1.12
"""Minimum ratio of expected data weights from which whole users are bounded under `rating`."""

_SHARE, _SHARE_BY_MU = 0.04, 0.03
"""Budget share of interest without any budget, and its growth up to μ = 1. The less noise there is,
the less the error of ratings depends on their budget."""

_USUAL_RATINGS = 50
"""Number of ratings of a user that is assumed where it is not known."""


def has_factors_by_size(facts: PublicFacts, budget: Budget) -> bool:
    """Whether `als` under `value` uses factors, from the public rating pattern."""
    return facts.pattern.entries >= _value_size(facts, budget)


def interest_share(unit: Unit, budget: Budget) -> float:
    """Budget share of interest: none under `value`, where the rating pattern is public."""
    return 0.0 if unit is Unit.VALUE else _SHARE + _SHARE_BY_MU * min(1.0, budget.mu)


def bounds_whole_users(facts: PublicFacts, budget: Budget) -> bool:
    """Whether `als` under `rating` bounds whole users if these fold in: from public facts alone.

    Noise is then larger for items, and users are exact in training. That pays where many users
    share few items. Compares expected data weights for users with `_USUAL_RATINGS` ratings. Never
    with more users than sums of contributions are exact for.
    """
    users, items = facts.shape
    if users >= USERS_MAX:
        return False
    whole = user_plan.expected_weight(items, budget, users, _USUAL_RATINGS)
    single = rating.expected_weight(facts.shape, budget, users * _USUAL_RATINGS)
    return whole > _MARGIN * single


def size_for_factors(facts: PublicFacts, unit: Unit, budget: Budget) -> str:
    """Sentence with the approximate size from which `als` uses factors.

    Numbers of ratings are assumed to have long tails, as they usually do.
    """
    if unit is Unit.USER:
        users = _smallest(
            lambda count: most_user_factors(facts.items, budget, count, _USUAL_RATINGS)
        )
        return (
            f"als uses factors from about {_rounded(users)} users with {_USUAL_RATINGS} ratings "
            f"each, for {facts.items:,} items at this budget"
        )
    shape = f"{facts.users:,} users and {facts.items:,} items"
    if unit is Unit.VALUE:
        ratings = _value_size(facts, budget)
    elif most_factors(facts.shape, budget) == 0:
        return f"als uses no factors for {shape} at this budget, whatever they have rated"
    else:
        ratings = _smallest(lambda count: most_factors(facts.shape, budget, count))
    return f"als uses factors from about {_rounded(ratings)} ratings, for {shape} at this budget"


def _value_size(facts: PublicFacts, budget: Budget) -> float:
    """Number of ratings from which factors are used under `value`."""
    noise = WIDTH / budget.mu * math.sqrt(min(facts.shape))
    return max(_RATINGS_MIN, noise / _MEAN_NOISE_MAX)


def _smallest(rank: Callable[[float], int]) -> float:
    """Approximately the smallest number with a positive rank."""
    sizes = np.geomspace(1, 1e15, 361)
    return float(next((size for size in sizes if rank(float(size)) > 0), sizes[-1]))


def _rounded(size: float) -> str:
    """Size with two digits; more would not be accurate."""
    digits = 1 - math.floor(math.log10(size))
    return f"{round(size, digits):,.0f}"
