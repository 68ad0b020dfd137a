"""Scores that distinguish two neighbouring datasets, learnt from preparation runs."""

import numpy as np
import numpy.typing as npt

from taciturn.audit import bounds

Scores = npt.NDArray[np.float64]
"""One row per run, or one score per run."""

_BETTER = 1.25
"""Ratio of bounds above which a learnt score or threshold replaces the default."""


def fit_attack(
    first: Scores, second: Scores, confidence: float, *, is_loss: bool
) -> tuple[Scores, float]:
    """Weights of the columns and the threshold, from preparation runs.

    Weights are learnt on half of the runs and validated on the other half. With `is_loss` the
    columns are privacy losses, and their plain sum is used unless learnt weights do clearly better.
    """
    learnt = _direction(first[::2], second[::2])
    held_out = first[1::2], second[1::2]
    threshold, bound = _threshold(held_out[0] @ learnt, held_out[1] @ learnt, confidence)
    if not is_loss:
        return learnt, threshold
    whole = np.ones(first.shape[1])
    _, usual = _threshold(held_out[0] @ whole, held_out[1] @ whole, confidence)
    if bound > _BETTER * usual:
        return learnt, threshold
    return whole, _threshold(first @ whole, second @ whole, confidence)[0]


def _direction(first: Scores, second: Scores) -> Scores:
    """Fisher's linear discriminant between the two datasets, with a regularized covariance.

    A column that is constant within each dataset gets a tiny standard deviation instead of zero.
    """
    centred = np.concatenate([first - first.mean(axis=0), second - second.mean(axis=0)])
    size = np.abs(np.concatenate([first, second])).max(axis=0)
    standard_deviations = np.maximum(centred.std(axis=0), 1e-9 * size + 1e-300)
    centred = centred / standard_deviations
    count, width = centred.shape
    shrinkage = width / (width + count)
    covariance = (1 - shrinkage) * centred.T @ centred / count + shrinkage * np.eye(width)
    difference = (second.mean(axis=0) - first.mean(axis=0)) / standard_deviations
    return np.asarray(np.linalg.solve(covariance, difference) / standard_deviations)


def _threshold(first: Scores, second: Scores, confidence: float) -> tuple[float, float]:
    """Threshold that gives a high lower bound on μ on these runs, and that bound.

    The default lies between the two mean scores, equally many standard deviations from each, which
    suits Gaussian scores. Another threshold replaces it if its bound is clearly higher.
    """
    runs = min(first.size, second.size)

    def bound(threshold: float) -> float:
        wrong = int((first > threshold).sum()), int((second <= threshold).sum())
        return bounds.mu_lower(*bounds.error_rates(*wrong, runs, confidence))

    standard_deviations = first.std(), second.std()
    part = (
        float(standard_deviations[0] / sum(standard_deviations))
        if max(standard_deviations) > 0
        else 0.5
    )
    halfway = float(first.mean() + part * (second.mean() - first.mean()))
    candidates = np.unique(np.quantile(np.concatenate([first, second]), np.linspace(0, 1, 201)))
    best = max((float(each) for each in candidates), key=bound)
    chosen = best if bound(best) > _BETTER * bound(halfway) else halfway
    return chosen, bound(chosen)
