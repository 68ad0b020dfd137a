"""Posterior variances of rows that were fitted by descent, under units `rating` and `user`.

All inputs are released numbers and public constants, so that this is post-processing. A row
minimises squared errors plus a regularization that stands for the prior, the errors of ratings and
the noise. In coordinates in which all three are diagonal, its posterior variance is the share of
the regularization in the normal equations, in units of the prior. Users who fold in have variances
of their own, from the items that they rated (`fold_in`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from taciturn.errors import InvalidParameter
from taciturn.model import assumptions
from taciturn.model.assumptions import WIDTH
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Prior
from taciturn.solvers.descent import DescentSteps, NormalEquations, Rows, Vector, in_rating_units
from taciturn.solvers.gradient import RatingWeights

_LEAST = 0.2
"""Minimum observation-noise variance, as a fraction of the variance of prediction errors."""

_NARROWED = 0.94
"""Variance of the normal distribution that fits intervals of real errors best, relative to their
mean square: real errors have heavier tails."""

_HEAVY = 1.1
"""Variance of that distribution relative to one that fits clipped errors in training."""

_DOUBTS = 0.12, 0.2
"""Standard deviations of the errors of both estimates of the error variance under unit `user`,
relative to it, without noise: from training errors, and from the variance of ratings."""

_APART = 1.5
"""Maximum ratio of both estimates; beyond it the first is noise."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RowUncertainty:
    """Uncertainty of the rows of one axis, in model units.

    Attributes
    ----------
    variances
        Posterior variances.
    mean
        Their mean over ratings.
    """

    variances: Rows
    mean: Vector

    @classmethod
    def of(cls, steps: DescentSteps, system: NormalEquations, counts: Vector) -> "RowUncertainty":
        """Uncertainty of rows with these normal equations and numbers of ratings."""
        squares = system.transform**2
        squares[0] *= steps.constant**2
        whole = system.bend + system.added
        variances = (system.added / whole) @ squares.T
        return cls(variances=variances, mean=counts @ variances / counts.sum())


def with_both_variances(
    model: FactorModel,
    steps: DescentSteps,
    rows: tuple[Rows, Rows],
    counts: tuple[Vector, Vector],
    *,
    weights: Sequence[RatingWeights],
    standard_deviation: float,
    noise: tuple[Vector, Vector],
    unit: float,
) -> FactorModel:
    """Model of a descent on both axes, with posterior variances of users and items.

    Parameters
    ----------
    model
        Model with users and items, in rating units.
    steps
        Settings of the descent.
    rows, counts
        Averaged rows of users and of items in model units, and their numbers of ratings.
    weights
        Weights of these ratings in the gradients of users and of items.
    standard_deviation
        Residual standard deviation in training, in model units.
    noise
        Variances of the noise of averaged gradients by column, for users and for items, in residual
        variances and corrected for clipping.
    unit
        Rating scale factor.
    """
    shares = tuple(each / each.sum() for each in counts)
    features = [steps.features(each) for each in rows]
    curvatures = [
        (multiplied * (share * shrink)[:, None]).T @ multiplied
        for share, (multiplied, shrink) in zip(shares, features, strict=True)
    ]
    users, items = (
        RowUncertainty.of(
            steps,
            steps.equations(
                variance=each * standard_deviation**2,
                counts=weighted.sums,
                curvature=curvature,
                weight=weighted.means,
            ),
            count,
        )
        for each, count, weighted, curvature in zip(
            noise, counts, weights, reversed(curvatures), strict=True
        )
    )
    of_users, of_items = (_moments(*each) for each in zip(rows, shares, strict=True))
    uncertain = float(users.mean @ of_items + items.mean @ of_users)
    uncertain += float(users.mean[1:] @ items.mean[1:])
    # Ratings vary as predictions and errors do together, if predictions are posterior means.
    whole = _NARROWED * (assumptions.RATING**2 - _prediction_variance(rows, shares))
    whole = max(whole, standard_deviation**2)
    return replace(
        model,
        users=model.user_profiles.with_variances(in_squares(users.variances, unit)),
        items=model.item_profiles.with_variances(in_squares(items.variances, unit)),
        residual_variance=max(whole - uncertain, _LEAST * whole) * unit**2,
    )


def _moments(rows: Rows, shares: Vector) -> Vector:
    """Mean square over ratings of what multiplies a counterpart's coefficients in predictions."""
    found: Vector = shares @ rows**2
    found[0] = 1.0
    return found


def _prediction_variance(rows: tuple[Rows, Rows], shares: tuple[Vector, Vector]) -> float:
    """Variance of predictions over pairs in which users and items are independent.

    Users and items are drawn with these probabilities.
    """
    second, mean = [], []
    for each, share, place in zip(rows, shares, (0, 1), strict=True):
        # The bias of one axis is multiplied by the constant of the other.
        whole = np.insert(each, place, 1.0, axis=1)
        second.append((whole * share[:, None]).T @ whole)
        mean.append(share @ whole)
    return float((second[0] * second[1]).sum() - (mean[0] @ mean[1]) ** 2)


@dataclass(frozen=True, kw_only=True)
class UserErrors:
    """Released numbers about the errors of users who fold in, in model units.

    Attributes
    ----------
    square
        Mean squared prediction error in training, corrected for clipping.
    square_noise
        Standard deviation of its noise, relative to the error variance.
    total_noise
        Standard deviation of the noise of the mean square of ratings, relative to the largest.
    ratings
        Number of ratings of a usual user.
    """

    square: float
    square_noise: float
    total_noise: float
    ratings: float

    def variance(self, rows: Rows, weights: Vector, prior: Prior, unit: float) -> float:
        """Variance of a rating about its prediction if the user's profile were known.

        Two estimates, weighted by their noise and by how far each is wrong on real data. One is the
        mean squared error in training. The other is the variance of ratings minus that of items and
        of users who differ as the prior says.

        `rows` are those of items in rating units, with coefficients of features; `prior` belongs to
        them.
        """
        shares = weights / weights.sum()
        design = rows.copy()
        design[:, 0] = 1.0
        explained = (shares @ design**2) * np.array(prior.variances)
        of_items = float(shares @ rows[:, 0] ** 2) - float(shares @ rows[:, 0]) ** 2
        total = assumptions.RATING**2
        left = max(total - (of_items + float(explained.sum())) / unit**2, _LEAST * total)
        # Training residuals of n ratings are too small by the share of the degrees of freedom in n.
        information = self.ratings * explained / prior.residual_variance
        degrees = float((information / (1 + information)).sum())
        trained = _HEAVY * self.square / max(1 - degrees / max(1.0, self.ratings), _LEAST)
        trained = min(max(trained, left / _APART), left * _APART)
        noise = self.square_noise, self.total_noise * (WIDTH / 2) ** 2 / left
        weights_of = [1 / (noise[each] ** 2 + _DOUBTS[each] ** 2) for each in (0, 1)]
        return (weights_of[0] * trained + weights_of[1] * left) / sum(weights_of)


def with_item_variances(
    model: FactorModel,
    steps: DescentSteps,
    weights: Vector,
    errors: UserErrors,
    *,
    standard_deviation: float,
    noise: Vector,
    weight: float,
    unit: float,
) -> FactorModel:
    """Model of a descent on items, whose users fold in, with posterior variances of items.

    Parameters
    ----------
    model
        Model with items and the prior of a user's profile, in rating units.
    steps
        Settings of the descent.
    weights
        Sums of the weights of each item's ratings.
    errors
        What was released about prediction errors.
    standard_deviation
        Residual standard deviation in training, in model units.
    noise
        Variances of the noise of averaged gradients by column, in residual variances.
    weight
        Mean weight of a rating.
    unit
        Rating scale factor.
    """
    if model.prior is None:
        raise InvalidParameter("the model has no prior with which to solve users")
    # Curvature if users differ as the prior says.
    squares = np.append(steps.constant**2, steps.priors[1:] ** 2)
    items = RowUncertainty.of(
        steps,
        steps.equations(
            variance=noise * standard_deviation**2,
            counts=weights,
            curvature=np.diag(squares) / math.sqrt(float(squares.sum())),
            weight=weight * (standard_deviation / assumptions.RESIDUAL) ** 2,
        ),
        weights,
    )
    uncertain = float(items.mean[0] + items.mean[1:] @ squares[1:])
    profiles = model.item_profiles
    rows = np.column_stack([profiles.biases, profiles.factors]).astype(np.float64)
    whole = errors.variance(rows, weights, model.prior, unit)
    variances = np.zeros_like(rows)  # those of features stay zero
    variances[:, : items.variances.shape[1]] = in_squares(items.variances, unit)
    return replace(
        model,
        items=profiles.with_variances(variances),
        residual_variance=max(whole - uncertain, _LEAST * whole) * unit**2,
    )


def in_squares(variances: Rows, unit: float) -> Rows:
    """Variances of rows in model units converted to rating units."""
    return in_rating_units(np.sqrt(variances), unit) ** 2
