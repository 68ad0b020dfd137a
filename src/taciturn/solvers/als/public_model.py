"""Model of public ratings, to which item rows of `als` shrink. No private number enters.

Public ratings need no noise, so they are fitted without it: v = m + b + c + ⟨x, z⟩ + error, with
Gaussian posteriors of the rows of both axes in turn (variational expectation maximisation). All
prior variances are learnt, and so is the number of factors: a factor that the ratings do not
support shrinks to zero and is left out. Numbers are in units in which the scale is 4 wide.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy.sparse

from taciturn._internal import parallel
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.model import assumptions
from taciturn.scale import Scale
from taciturn.solvers.descent import rank_of, rating_scale_factor

Rows = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

_FACTORS = ((0, 8), (500_000, 16))
"""Maximum number of factors by the minimum number of public ratings."""

_ROUNDS = 20
"""Number of times that both axes are solved."""

_SUPPORT = 0.3
"""Minimum fraction of a factor's second moment over ratings that comes from posterior means."""

_START = 0.3
"""Initial standard deviation of factors, relative to that of their prior."""

_RESIDUAL_MIN = 0.75
"""Minimum standard deviation of residuals. Few ratings of each row understate it."""

_SMALLEST = 1e-6
"""Minimum of a learnt variance."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AxisPosterior:
    """Posterior of the rows of an axis: means (bias first), covariances, and prior variances."""

    means: Rows
    covariances: Rows
    prior: Vector

    def moments(self) -> Rows:
        """Mean of a·aᵀ with a = (1, bias, factors) of each row, flattened."""
        rows = np.column_stack([np.ones(len(self.means)), self.means])
        moments: Rows = rows[:, :, None] * rows[:, None, :]
        moments[:, 1:, 1:] += self.covariances
        return moments.reshape(len(rows), -1)

    def second_moment(self, weights: Vector) -> Rows:
        """Weighted mean of y·yᵀ over the rows."""
        shares = weights / weights.sum()
        outer = (self.means * shares[:, None]).T @ self.means
        return np.asarray(outer + np.tensordot(shares, self.covariances, axes=1))

    def transformed(self, matrix: Rows) -> "AxisPosterior":
        """Posterior of the rows whose factors are multiplied by a matrix."""
        whole = np.eye(len(self.prior))
        whole[1:, 1:] = matrix
        return replace(
            self,
            means=self.means @ whole.T,
            covariances=whole @ self.covariances @ whole.T,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class PublicModel:
    """Items of public ratings, in rating units.

    The factors of users have mean 0 and covariance 1, so the squares of an item's factors are the
    variances that they explain; the first explain most.

    Attributes
    ----------
    rows
        Posterior means of the items' rows, bias first.
    mean
        Mean rating.
    residual, bias
        Standard deviations of residuals and of users' biases.
    uncertainty
        Posterior variance of each row, as a fraction of its prior variance.
    """

    rows: Rows
    uncertainty: Vector
    mean: float
    residual: float
    bias: float

    @property
    def factors(self) -> int:
        """Number of factors that the public ratings support."""
        return int(self.rows.shape[1]) - 1


def most_factors(ratings: int) -> int:
    """Maximum number of factors for this number of public ratings."""
    return rank_of(ratings, _FACTORS)


@parallel.without_blas_threads
def fit_public(ratings: Ratings, scale: Scale) -> PublicModel:
    """Model of public ratings that count on a scale; deterministic."""
    if len(ratings) == 0:
        raise InvalidParameter("the public ratings are empty; leave them out")
    fit = _Fit(ratings, scale)
    for _ in range(_ROUNDS):
        fit.advance()
    return fit.model()


class _Fit:
    """Posteriors of both axes, improved in place."""

    def __init__(self, ratings: Ratings, scale: Scale) -> None:
        self._unit = rating_scale_factor(scale)
        values = ratings.values().astype(np.float64)
        self._mean = float(values.mean())
        centred = (values - self._mean) / self._unit
        pattern = ratings.pattern.by_user
        self._ones = pattern.ones().astype(np.float64)
        self._values = scipy.sparse.csr_array(
            (centred, pattern.columns, pattern.starts), shape=self._ones.shape
        )
        self._by_item = self._ones.T.tocsr(), self._values.T.tocsr()
        self._squares = float((centred**2).sum())
        self._residual = assumptions.RESIDUAL**2
        factors = most_factors(len(ratings))
        self._users = _start(len(pattern), factors)
        self._items = _start(pattern.width, factors, np.random.default_rng(0))

    def advance(self) -> None:
        """Solve users, then items, and learn all variances and the coordinates."""
        self._users, _ = self._solved(self._ones, self._values, self._items, self._users.prior)
        self._rescale(self._users.second_moment(np.ones(len(self._users.means))))
        self._items, error = self._solved(*self._by_item, self._users, self._items.prior)
        count = int(self._ones.nnz)
        self._residual = max(error / count, _RESIDUAL_MIN**2)
        moment = self._items.second_moment(np.ones(len(self._items.means)))
        # Directions in which items vary independently, largest first.
        _, axes = np.linalg.eigh(moment[1:, 1:])
        rotation = np.asarray(axes[:, ::-1].T, dtype=np.float64)
        self._items, self._users = (
            each.transformed(rotation) for each in (self._items, self._users)
        )
        moment = self._items.second_moment(np.ones(len(self._items.means)))
        self._items = replace(self._items, prior=np.maximum(np.diag(moment), _SMALLEST))

    def _rescale(self, moment: Rows) -> None:
        """Change coordinates so that users' factors have covariance 1."""
        root = np.linalg.cholesky(moment[1:, 1:] + _SMALLEST * np.eye(len(moment) - 1))
        self._items = self._items.transformed(np.asarray(root.T, dtype=np.float64))
        prior = np.ones(len(moment))
        prior[0] = max(float(moment[0, 0]), _SMALLEST)
        self._users = replace(self._users.transformed(np.linalg.inv(root)), prior=prior)

    def _solved(
        self,
        ones: scipy.sparse.csr_array,
        values: scipy.sparse.csr_array,
        others: AxisPosterior,
        prior: Vector,
    ) -> tuple[AxisPosterior, float]:
        """Posterior of one axis given the other, and the expected sum of squared residuals."""
        width = len(prior)
        design = np.column_stack([np.ones(len(others.means)), others.means])
        totals = values @ design
        moments = (ones @ others.moments()).reshape(-1, width + 1, width + 1)
        own = [0, *range(2, width + 1)]
        curvature = moments[:, own][:, :, own]
        slope = totals[:, own] - moments[:, own, 1]
        precisions = curvature / self._residual + np.diag(1 / prior)
        covariances = np.asarray(np.linalg.inv(precisions), dtype=np.float64)
        means = np.einsum("rij,rj->ri", covariances, slope / self._residual)
        found = AxisPosterior(means=means, covariances=covariances, prior=prior)
        outer = means[:, :, None] * means[:, None, :] + covariances
        error = self._squares - 2 * totals[:, 1].sum() + moments[:, 1, 1].sum()
        error += -2 * (means * slope).sum() + (curvature * outer).sum()
        return found, float(error)

    def model(self) -> PublicModel:
        """Model with the factors that the ratings support."""
        counts = np.asarray(self._ones.sum(axis=0)).astype(np.float64)
        means, variances = self._items.means, np.diagonal(self._items.covariances, 0, 1, 2)
        known = counts @ means**2
        support = known / (known + counts @ variances)
        columns = [0, *(1 + np.flatnonzero(support[1:] >= _SUPPORT))]
        prior = self._items.prior[columns]
        return PublicModel(
            rows=means[:, columns] * self._unit,
            uncertainty=variances[:, columns].sum(axis=1) / prior.sum(),
            mean=self._mean,
            residual=math.sqrt(self._residual) * self._unit,
            bias=math.sqrt(self._users.prior[0]) * self._unit,
        )


def _start(count: int, factors: int, random: np.random.Generator | None = None) -> AxisPosterior:
    """Posterior before the first round: random factors of items, none of users."""
    prior = np.ones(1 + factors)
    prior[0] = assumptions.BIAS**2
    means = np.zeros((count, prior.size))
    if random is not None:
        prior[1:] = assumptions.INTERACTION_VARIANCE / factors
        means[:, 1:] = random.normal(size=(count, factors)) * _START * np.sqrt(prior[1:])
    return AxisPosterior(
        means=means, covariances=np.zeros((count, prior.size, prior.size)), prior=prior
    )
