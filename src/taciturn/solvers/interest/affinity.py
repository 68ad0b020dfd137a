"""Affinity of users and items, inferred from noisy sums over the rating pattern.

If users turned to items by popularity alone, user j would rate item i with a probability
proportional to n_i n_j. The affinity ⟨x_i, y_j⟩ is how much more often they do, relative to that:
n_i n_j (1 + ⟨x_i, y_j⟩). For features f_j of the users, the sum over the raters of item i is then

    Σ f_j = n_i (f̄ + C x_i) + sampling error + noise,    C = E[f (y − ȳ)ᵀ],

with means over users, weighted by their numbers of ratings. That is linear in x_i, so that x_i has
a Gaussian posterior, and likewise for users. Everything here is computed from released numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from taciturn.solvers.descent import Rows, Vector

_ROUNDS = 30
"""Steps of expectation maximisation by which prior variances are learnt."""

_VARIANCE_START, _VARIANCE_MIN = 0.3, 1e-8
"""Prior variance before it is learnt, and its minimum."""

_POPULARITY_POWER = 0.75
"""Power of an item's number of ratings in its interest vector. The lists of users who fold in
change little between ½ and 1, and so do those of published users between ¾ and 1."""

_AFFINITY_VARIANCE = 0.05
"""Assumed variance of a factor, from which the number of factors is chosen."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Measured:
    """Noisy sums over counterparts for each row of an axis, as linear measurements of its factors.

    Attributes
    ----------
    sums
        Noisy Σ f of each row.
    counts
        Number of ratings of each row, or the sum of their weights, as released.
    noise
        Standard deviation of the noise of an entry.
    mean
        Mean feature, f̄.
    slope
        C (features × factors).
    scatter
        Covariance of the features: variance of the sampling error of one rating.
    """

    sums: Rows
    counts: Vector
    noise: float
    mean: Vector
    slope: Rows
    scatter: Rows

    def posterior(self) -> Rows:
        """Posterior means of the factors, whose prior variances are learnt from all rows."""
        inverse = np.linalg.pinv(self.slope)
        seen = (self.sums - self.counts[:, None] * self.mean) @ inverse.T
        sampling = np.diag(inverse @ self.scatter @ inverse.T)
        noise = self.noise**2 * np.einsum("fk,fk->f", inverse, inverse)
        variances = self.counts[:, None] * sampling + noise
        found = np.empty_like(seen)
        for column in range(seen.shape[1]):
            found[:, column] = _shrunk(seen[:, column], self.counts, variances[:, column])
        return found


def _shrunk(seen: Vector, counts: Vector, variances: Vector) -> Vector:
    """Posterior means of factors x from seen = counts · x + an error with these variances.

    The prior variance of x is learnt, weighted by count.
    """
    precision, pull = counts**2 / variances, counts * seen / variances
    prior = _VARIANCE_START
    for _ in range(_ROUNDS):
        spread = 1 / (precision + 1 / prior)
        prior = float(np.average((spread * pull) ** 2 + spread, weights=counts))
        prior = max(prior, _VARIANCE_MIN)
    found: Vector = pull / (precision + 1 / prior)
    return found


def whitened(rows: Rows, counts: Vector) -> Rows:
    """Rows in coordinates in which they have mean 0 and covariance 1, weighted by count.

    The first coordinate varies most in the rows given.
    """
    if rows.shape[1] == 0:
        return rows
    shares = counts / counts.sum()
    centred = rows - shares @ rows
    covariance = (centred * shares[:, None]).T @ centred
    values, axes = np.linalg.eigh(covariance)
    deviations = np.sqrt(np.maximum(values[::-1], 1e-9 * max(float(values[-1]), 1e-300)))
    found: Rows = centred @ (axes[:, ::-1] / deviations)
    return found


def data_weight(counts: Vector, noise: float, factors: int, sampling: float = 1.0) -> float:
    """Mean weight of the data against the prior in a row's factors, 0 to 1, weighted by count.

    `noise` is that of sums of features of norm 1, and `sampling` the mean weight of a rating.
    """
    signal = counts**2 * _AFFINITY_VARIANCE
    error = counts * sampling + (factors * noise) ** 2
    return float(np.average(signal / (signal + error), weights=counts))


def most_supported(ranks: Sequence[int], weights: Sequence[float], least: float) -> int:
    """Largest rank whose data weight reaches `least`; 0 if none does."""
    return max(
        (rank for rank, weight in zip(ranks, weights, strict=True) if weight >= least), default=0
    )


def item_vectors(counts: Vector, factors: Rows) -> Rows:
    """Interest vectors of items: popularity, and popularity times each factor.

    Their mean square is 1, so that regularization has the same meaning for all data.
    """
    popularity = (counts / counts.mean()) ** _POPULARITY_POWER
    vectors = popularity[:, None] * np.column_stack([np.ones(len(counts)), factors])
    scale = np.sqrt(np.mean(np.einsum("ik,ik->i", vectors, vectors)))
    found: Rows = vectors / scale
    return found


def precise_mean(
    values: Sequence[npt.NDArray[np.float64]], precisions: Sequence[npt.NDArray[np.float64]]
) -> tuple[Vector, Vector]:
    """Mean of several estimates weighted by precision, and the sum of their precisions."""
    total = np.sum(precisions, axis=0)
    mean = sum(value * each for value, each in zip(values, precisions, strict=True)) / total
    return np.asarray(mean), np.asarray(total)
