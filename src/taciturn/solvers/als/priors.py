"""What the solver `als` learns between measurements: priors, and what to measure next.

Functions of released numbers and public counts.
"""

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float64]

SMALLEST = 1e-7
"""Least variance of a prior."""

_FALL, _RISE, _DOUBT = 0.5, 2.0, 10.0
"""How much a prior variance may change at once, and for how many rows it counts as known."""


_SETTLED = 1e-6
"""Shares that change by less are not improved any more."""


def regress(regressors: Rows, means: Rows) -> Rows:
    """Return slopes of a ridge regression; the first regressor is a constant."""
    count = regressors.shape[1]
    ridge = np.diag([1e-3] + [float(count)] * (count - 1))
    return np.asarray(np.linalg.solve(regressors.T @ regressors + ridge, regressors.T @ means))


def learnt_covariance(prior: Rows, total: Rows, variances: Rows) -> Rows:
    """Return the covariance of coefficients after one step towards their likeliest.

    `total` is the sum over rows of what is believed of z·zᵀ, and `variances` are those of z. The
    mean over rows is where expectation maximisation would step to, which hardly moves where little
    was measured. Variances step as Fisher scoring does instead: as much further as a row tells
    less. Correlations are kept.
    """
    count = len(variances)
    mean, before = total / count + SMALLEST * np.eye(len(prior)), np.diag(prior)
    told = ((1 - variances / before) ** 2).sum(axis=0)
    scored = before + (np.diag(mean) - before) * count / (told + _DOUBT)
    scored = np.clip(scored, _FALL * before, np.maximum(_RISE * before, np.diag(mean)))
    scales = np.sqrt(scored / np.diag(mean))
    return np.asarray(mean * scales[:, None] * scales + SMALLEST * np.eye(len(prior)))


def shares_of_length(
    weights: Rows, variances: Rows, *, error: float, noise: Rows, rounds: int = 100
) -> Rows:
    """Return how to divide the squared length of features among columns.

    A row whose ratings have the total weight w (rows × columns) and a coefficient of variance V
    learns from a share q of the length what a measurement of w·z would tell whose noise has the
    variance w·error + noise/q: V falls to 1/(1/V + w²/(w·error + noise/q)). Maximises the sum of
    w·(fall of V) by multiplicative steps.
    """
    shares = np.full(weights.shape[1], 1 / weights.shape[1])
    for _ in range(rounds):
        spread = shares * weights * error + noise
        told = shares * weights**2 / spread
        slope = (
            weights * variances**2 / (1 + variances * told) ** 2 * weights**2 * noise / spread**2
        )
        gain = slope.sum(axis=0)
        before, shares = shares, shares * np.sqrt(gain / max(float(gain.max()), 1e-300))
        shares /= shares.sum()
        if np.abs(shares - before).max() < _SETTLED:
            break
    return shares
