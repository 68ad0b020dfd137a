"""A profile for somebody who is not in a release, from their own ratings, on the trusted side."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal import validate
from taciturn.errors import InvalidParameter
from taciturn.scale import Scale

Id = int | str

# Assumed deviations of a rating from its prediction and of a bias, in parts of the scale's width.
_RESIDUAL, _BIAS = 0.22, 0.11


class ItemProfiles(Protocol):
    """Item profiles of a release or a fit."""

    @property
    def ids(self) -> pl.Series:
        """The items' ids."""

    @property
    def biases(self) -> npt.NDArray[np.float32]:
        """One bias for each."""

    @property
    def factors(self) -> npt.NDArray[np.float32]:
        """One profile for each."""


@dataclass(frozen=True, kw_only=True)
class Prior:
    """What is assumed of a person before any of their ratings; public or released.

    Attributes
    ----------
    residual_variance
        The variance of a rating about its prediction.
    variances
        Those of a person's bias and of their factors, one after the other.
    """

    residual_variance: float
    variances: tuple[float, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class FoldedIn:
    """A user's bias and profile. Private: an exact function of their ratings, for them alone."""

    bias: float
    factors: npt.NDArray[np.float32]


def fold_in(
    ratings: Mapping[Id, float],
    items: ItemProfiles,
    *,
    mean: float,
    scale: Scale,
    prior: Prior | None = None,
    regularization: float = 1.0,
) -> FoldedIn:
    """Return the profile that fits somebody's ratings best, the items' profiles given.

    Reads that person's ratings without any noise: the result is theirs alone, must not be published
    and is covered by no certificate. Solves a ridge regression, which docs/release-format.md
    spells out; ratings of items that have no profile are left out.

    Parameters
    ----------
    ratings
        Ratings by item id, on the scale.
    items, mean, scale
        Item profiles, mean and scale of a release or a fit.
    prior
        What the release assumes of a person; the spread of the items' profiles when omitted.
    regularization
        Factor of the ridge.
    """
    regularization = validate.positive("regularization", regularization, "1 is usual")
    if not isinstance(ratings, Mapping):
        raise InvalidParameter("give ratings by item id, such as {318: 5.0}")
    for value in ratings.values():
        if not scale.low <= validate.finite("rating", value, "it is a number") <= scale.high:
            raise InvalidParameter(f"ratings lie between {scale.low:g} and {scale.high:g} here")
    places = {identifier: place for place, identifier in enumerate(items.ids.to_list())}
    rows = np.array([places[item] for item in ratings if item in places], dtype=np.int64)
    values = np.array([float(value) for item, value in ratings.items() if item in places])
    width = items.factors.shape[1]
    if rows.size == 0:
        return FoldedIn(bias=0.0, factors=np.zeros(width, dtype=np.float32))
    design = np.column_stack([np.ones(rows.size), items.factors[rows].astype(np.float64)])
    target = values - mean - items.biases[rows]
    prior = prior or _usual_prior(items, scale)
    if len(prior.variances) != 1 + width:
        raise InvalidParameter(f"a prior has {1 + width} variances here, the bias's first")
    ridge = prior.residual_variance / np.array(prior.variances)
    system = design.T @ design + regularization * np.diag(ridge)
    solution = np.linalg.solve(system, design.T @ target)
    return FoldedIn(bias=float(solution[0]), factors=solution[1:].astype(np.float32))


def _usual_prior(items: ItemProfiles, scale: Scale) -> Prior:
    """Return a prior by which a user's factors are as wide as items' ones, column by column."""
    squares = np.mean(items.factors.astype(np.float64) ** 2, axis=0)
    variances = (_BIAS * scale.range) ** 2, *np.maximum(squares, 1e-12).tolist()
    return Prior(residual_variance=(_RESIDUAL * scale.range) ** 2, variances=variances)
