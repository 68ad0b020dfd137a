"""Scores that tell two neighbouring datasets apart, learnt from runs that do not count."""

import numpy as np
import numpy.typing as npt

from taciturn.audit import bounds

Scores = npt.NDArray[np.float64]
"""One row per run, or one score per run."""

_BETTER = 1.25
"""How much larger the bound of another score or threshold must be for it to replace the default."""


def fit_attack(
    first: Scores, second: Scores, confidence: float, *, is_loss: bool
) -> tuple[Scores, float]:
    """Weights of the columns and the threshold, from runs that do not count.

    Weights are learnt on half of the runs and judged on the other half. With `is_loss` the columns
    are privacy losses: their plain sum is kept unless the learnt weights are clearly better.
    """
    learnt = _direction(first[::2], second[::2])
    judges = first[1::2], second[1::2]
    threshold, bound = _threshold(judges[0] @ learnt, judges[1] @ learnt, confidence)
    if not is_loss:
        return learnt, threshold
    whole = np.ones(first.shape[1])
    _, usual = _threshold(judges[0] @ whole, judges[1] @ whole, confidence)
    if bound > _BETTER * usual:
        return learnt, threshold
    return whole, _threshold(first @ whole, second @ whole, confidence)[0]


def _direction(first: Scores, second: Scores) -> Scores:
    """Return the direction in which two worlds differ most, for the spread of runs in each.

    Fisher's discriminant with a ridge; what never varies within a world counts as hardly varying.
    """
    centred = np.concatenate([first - first.mean(axis=0), second - second.mean(axis=0)])
    size = np.abs(np.concatenate([first, second])).max(axis=0)
    spread = np.maximum(centred.std(axis=0), 1e-9 * size + 1e-300)
    centred = centred / spread
    count, width = centred.shape
    ridge = width / (width + count)
    covariance = (1 - ridge) * centred.T @ centred / count + ridge * np.eye(width)
    difference = (second.mean(axis=0) - first.mean(axis=0)) / spread
    return np.asarray(np.linalg.solve(covariance, difference) / spread)


def _threshold(first: Scores, second: Scores, confidence: float) -> tuple[float, float]:
    """Return a threshold at which these runs bound μ well, and that bound.

    Halfway between the worlds' means, in deviations, suits scores that look Gaussian; if another
    one is clearly better, it is taken.
    """
    runs = min(first.size, second.size)

    def bound(threshold: float) -> float:
        wrong = int((first > threshold).sum()), int((second <= threshold).sum())
        return bounds.mu_lower(*bounds.error_rates(*wrong, runs, confidence))

    spread = first.std(), second.std()
    part = float(spread[0] / (spread[0] + spread[1])) if max(spread) > 0 else 0.5
    halfway = float(first.mean() + part * (second.mean() - first.mean()))
    candidates = np.unique(np.quantile(np.concatenate([first, second]), np.linspace(0, 1, 201)))
    best = max((float(each) for each in candidates), key=bound)
    chosen = best if bound(best) > _BETTER * bound(halfway) else halfway
    return chosen, bound(chosen)
