"""Folding in: the profile of a user outside the model, from their own ratings."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from taciturn._internal import validate
from taciturn.errors import InvalidParameter
from taciturn.model import assumptions
from taciturn.model.profiles import Floats, Prior, Profiles
from taciturn.scale import Scale

Id = int | str


@dataclass(frozen=True, eq=False, kw_only=True)
class FoldedIn:
    """A user's bias and factors. Private to the user: an exact function of their ratings."""

    bias: float
    factors: npt.NDArray[np.float32]


def known_ratings(
    ratings: Mapping[Id, float], items: Profiles, scale: Scale
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Item rows and values of a user's ratings; items without a profile are ignored."""
    if not isinstance(ratings, Mapping):
        raise InvalidParameter("ratings must map item ids to values, such as {318: 5.0}")
    for value in ratings.values():
        if not scale.low <= validate.finite("rating", value, "it is a number") <= scale.high:
            raise InvalidParameter(
                f"ratings must be between {scale.low:g} and {scale.high:g}, the scale of the model"
            )
    places = {identifier: place for place, identifier in enumerate(items.ids.to_list())}
    known = {item: float(value) for item, value in ratings.items() if item in places}
    rows = np.array([places[item] for item in known], dtype=np.int64)
    return rows, np.array(list(known.values()), dtype=np.float64)


def solve_profile(
    residuals: npt.NDArray[np.float64], factors: Floats, prior: Prior, regularization: float
) -> FoldedIn:
    """Ridge regression of residuals on a constant and item factors, in 64-bit floats."""
    width = factors.shape[1]
    if len(prior.variances) != 1 + width:
        raise InvalidParameter(f"the prior must have {1 + width} variances, that of the bias first")
    if residuals.size == 0:
        return FoldedIn(bias=0.0, factors=np.zeros(width, dtype=np.float32))
    design = np.column_stack([np.ones(residuals.size), factors.astype(np.float64)])
    ridge = prior.residual_variance / np.array(prior.variances)
    system = design.T @ design + regularization * np.diag(ridge)
    solution = np.linalg.solve(system, design.T @ residuals)
    return FoldedIn(bias=float(solution[0]), factors=solution[1:].astype(np.float32))


def assumed_prior(items: Profiles, scale: Scale) -> Prior:
    """Prior in which the variance of a user factor is the mean square of that item factor."""
    squares = np.mean(items.factors.astype(np.float64) ** 2, axis=0)
    bias, residual = (
        assumptions.in_rating_units(each, scale)
        for each in (assumptions.BIAS_SHRUNK, assumptions.RESIDUAL_FOLD_IN)
    )
    variances = bias**2, *np.maximum(squares, 1e-12).tolist()
    return Prior(residual_variance=residual**2, variances=variances)
