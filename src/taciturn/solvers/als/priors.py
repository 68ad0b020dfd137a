"""Learnt priors of `als`, and the weights of the next query's features.

All inputs are released numbers and public counts.
"""

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float64]

SMALLEST = 1e-7
"""Minimum variance of a prior."""

_FALL, _RISE, _DOUBT = 0.5, 2.0, 10.0
"""Bounds on the factor by which a prior variance changes in one step, and its weight in rows."""

_SETTLED = 1e-6
"""Relative change of shares at which the optimisation stops."""


def regress(regressors: Rows, means: Rows) -> Rows:
    """Slopes of a ridge regression; the first regressor is a constant."""
    count = regressors.shape[1]
    added = np.diag([1e-3] + [float(count)] * (count - 1))
    return np.asarray(np.linalg.solve(regressors.T @ regressors + added, regressors.T @ means))


def learnt_covariance(prior: Rows, total: Rows, variances: Rows) -> Rows:
    """Covariance of coefficients after one step towards maximum likelihood.

    `total` is the sum over rows of the posterior mean of z·zᵀ, and `variances` are those of z.
    Their mean over rows would be a step of expectation maximisation, which is slow where the data
    carry little information. Variances take a step of Fisher scoring instead, which is larger
    there. Correlations are those of the mean.
    """
    count = len(variances)
    mean, before = total / count + SMALLEST * np.eye(len(prior)), np.diag(prior)
    information = ((1 - variances / before) ** 2).sum(axis=0)
    scored = before + (np.diag(mean) - before) * count / (information + _DOUBT)
    scored = np.clip(scored, _FALL * before, np.maximum(_RISE * before, np.diag(mean)))
    scales = np.sqrt(scored / np.diag(mean))
    return np.asarray(mean * scales[:, None] * scales + SMALLEST * np.eye(len(prior)))


def shares_of_length(
    weights: Rows, variances: Rows, *, error: float, noise: Rows, rounds: int = 100
) -> Rows:
    """Allocation of the squared feature norm across columns that most reduces posterior variance.

    For a row whose ratings have total weight w (rows × columns) and a coefficient of variance V, a
    share q of the squared norm is worth an observation of w·z with noise variance
    w·error + noise/q: V falls to 1/(1/V + w²/(w·error + noise/q)). Maximises the sum of
    w·(reduction of V) by multiplicative steps.
    """
    shares = np.full(weights.shape[1], 1 / weights.shape[1])
    for _ in range(rounds):
        scaled = shares * weights * error + noise
        precision = shares * weights**2 / scaled
        slope = (
            weights
            * variances**2
            / (1 + variances * precision) ** 2
            * weights**2
            * noise
            / scaled**2
        )
        gain = slope.sum(axis=0)
        before, shares = shares, shares * np.sqrt(gain / max(float(gain.max()), 1e-300))
        shares /= shares.sum()
        if np.abs(shares - before).max() < _SETTLED:
            break
    return shares
