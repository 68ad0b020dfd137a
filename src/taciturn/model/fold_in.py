"""Folding in: the profile of a user outside the model, from their own ratings."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from taciturn._internal import validate
from taciturn._internal.ids import Id, id_series
from taciturn.errors import InvalidParameter
from taciturn.model import assumptions
from taciturn.model.profiles import Floats, Prior, Profiles
from taciturn.scale import Scale

_RIDGE_MIN, _RIDGE_MAX = 1e-12, 1e100
"""Minimum regularization, relative to the trace of the normal equations, and maximum."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FoldedIn:
    """A user's bias and factors. Private to the user: an exact function of their ratings.

    `unknown_items` are the rated items that the model does not have; the profile ignores them.
    `variances` are the posterior variances of the bias and then of each factor; None unless the
    items of the model have variances. `interest` is the user's interest vector; None unless the
    model has interest.
    """

    bias: float
    factors: npt.NDArray[np.float32]
    unknown_items: tuple[Id, ...] = ()
    variances: npt.NDArray[np.float32] | None = None
    interest: npt.NDArray[np.float32] | None = None

    def __repr__(self) -> str:
        return f"FoldedIn({len(self.factors)} factors, private to the user)"


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownRatings:
    """Rows and values of a user's ratings of items in the model, and the ids of the others."""

    rows: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    unknown: tuple[Id, ...]


def known_ratings(ratings: Mapping[Id, float], items: Profiles, scale: Scale) -> KnownRatings:
    """Match a user's ratings to items by id. Raises if no rated item is in the model.

    Ids are converted to the type of the model's ids: the keys of JSON objects are always text.
    """
    if not isinstance(ratings, Mapping):
        raise InvalidParameter("ratings must map item ids to values, such as {318: 5.0}")
    for value in ratings.values():
        if not scale.low <= validate.finite("rating", value, "it is a number") <= scale.high:
            raise InvalidParameter(
                f"ratings must be between {scale.low:g} and {scale.high:g}, the scale of the model"
            )
    ids = list(ratings)
    if not ids:
        raise InvalidParameter("there are no ratings; pass at least one, such as {318: 5.0}")
    rows = items.id_table.find(id_series(ids), "the ratings")
    is_known = rows >= 0
    if not is_known.any():
        example = f", such as {items.ids[0]!r}" if len(items) else ""
        raise InvalidParameter(
            f"none of the items in the ratings are in the release; rate at least one of its "
            f"items, by its id{example}"
        )
    return KnownRatings(
        rows=rows[is_known],
        values=np.array(list(ratings.values()), dtype=np.float64)[is_known],
        unknown=tuple(ids[place] for place in np.flatnonzero(~is_known)),
    )


def solve_profile(
    residuals: npt.NDArray[np.float64],
    factors: Floats,
    prior: Prior,
    regularization: float,
    *,
    has_variances: bool = False,
) -> FoldedIn:
    """Ridge regression of residuals on a constant and item factors, in 64-bit floats.

    With `has_variances`, posterior variances are those of known items.
    """
    width = factors.shape[1]
    if len(prior.variances) != 1 + width:
        raise InvalidParameter(f"the prior must have {1 + width} variances, that of the bias first")
    design = np.column_stack([np.ones(residuals.size), factors.astype(np.float64)])
    products = design.T @ design
    with np.errstate(over="ignore"):
        ridge = regularization * (prior.residual_variance / np.array(prior.variances))
    # Only a forged prior is outside this range, in which the system can be solved.
    ridge = np.clip(ridge, _RIDGE_MIN * np.trace(products), _RIDGE_MAX)
    system = products + np.diag(ridge)
    solution = np.linalg.solve(system, design.T @ residuals)
    variances = None
    if has_variances:
        diagonal = np.diag(np.linalg.inv(system)) * prior.residual_variance
        variances = np.maximum(diagonal, 0.0).astype(np.float32)
    return FoldedIn(
        bias=float(solution[0]), factors=solution[1:].astype(np.float32), variances=variances
    )


def assumed_prior(items: Profiles, scale: Scale) -> Prior:
    """Prior in which the variance of a user factor is the mean square of that item factor."""
    squares = np.mean(items.factors.astype(np.float64) ** 2, axis=0)
    bias, residual = (
        assumptions.in_rating_units(each, scale)
        for each in (assumptions.BIAS_SHRUNK, assumptions.RESIDUAL_FOLD_IN)
    )
    variances = bias**2, *np.maximum(squares, 1e-12).tolist()
    return Prior(residual_variance=residual**2, variances=variances)
