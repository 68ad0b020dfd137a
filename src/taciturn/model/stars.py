"""Probabilities of the values of a scale with a step, such as whole stars.

A prediction has a normal distribution about its score. A value takes the probability of its cell:
all numbers that are closer to it than to any other value. The cells of the lowest and the highest
value extend to infinity, so that probabilities add up to 1.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from taciturn.scale import Scale

Vector = npt.NDArray[np.float64]


def star_probabilities(scale: Scale, scores: Vector, standard_deviations: Vector) -> Vector:
    """Probability of each value of the scale (predictions × values)."""
    levels = scale.levels
    edges = (levels[1:] + levels[:-1]) / 2
    below = _below((edges - scores[:, None]) / standard_deviations[:, None])
    ends = np.zeros((len(scores), 1)), np.ones((len(scores), 1))
    return np.diff(np.column_stack([ends[0], below, ends[1]]), axis=1)


def interval_credits(
    scale: Scale,
    scores: Vector,
    standard_deviations: Vector,
    values: Vector,
    shares: Sequence[float],
) -> list[Vector]:
    """Part of each rating that lies inside its prediction interval, for each nominal coverage.

    An interval is the middle part of the predicted distribution, of this probability. A value of
    a scale with a step stands for its cell, and counts with the share of the probability of the
    cell that the interval contains. If the predicted probabilities are right, the mean is the
    nominal coverage. Without a step, a rating is inside or not.
    """
    half = 0.0 if scale.step is None else scale.step / 2
    low, high = values - half, values + half
    if scale.step is not None:
        low = np.where(values < scale.low + half, -np.inf, low)
        high = np.where(values > scale.high - half, np.inf, high)
    begin, end = (_below((each - scores) / standard_deviations) for each in (low, high))
    found = []
    for share in shares:
        lower, upper = (1 - share) / 2, (1 + share) / 2
        if scale.step is None:
            found.append(((begin > lower) & (begin < upper)).astype(np.float64))
            continue
        inside = np.minimum(end, upper) - np.maximum(begin, lower)
        found.append(np.clip(inside / np.maximum(end - begin, 1e-300), 0.0, 1.0))
    return found


def _below(deviations: Vector) -> Vector:
    """Normal probability below each number of standard deviations."""
    from scipy.special import ndtr  # a release can be read and verified without it

    return np.asarray(ndtr(deviations))
