"""Features of the rating pattern, which is public under unit `value`.

Users who rate the same items tend to have similar tastes, so the leading singular vectors of the
degree-normalised rating pattern predict ratings, at no privacy cost. Nothing here reads the value
of a rating.
"""

import numpy as np
import numpy.typing as npt

from taciturn.data.pattern import RatingPattern

Rows = npt.NDArray[np.float64]

_LARGEST, _FEW = 4.0, 20.0
"""Singular vectors are clipped to _LARGEST standard deviations and shrunk by n/(n + _FEW). Those of
rows with few ratings are unreliable and would put rarely rated items on top of every list."""

_NOTHING = 1e-10
"""Shorter vectors are rounding errors."""


def compute_pattern_features(
    pattern: RatingPattern, count: int, threads: int | None = None
) -> tuple[Rows, Rows]:
    """At most `count` features of each user and of each item, most informative first.

    The first is the logarithm of the number of ratings. The others are singular vectors of
    D_i^-½ M D_u^-½, without the leading one, where M is the rating pattern and D are the degrees.
    All have mean 0 and variance 1 over ratings, before those of rows with few ratings are shrunk.
    Rows without ratings have zeros.
    """
    both = pattern.by_user, pattern.by_item
    degrees = [each.counts.astype(np.float64) for each in both]
    most = min(count, min(map(len, both)) - 1)
    vectors = _singular_vectors(pattern, degrees, most, threads)
    of_users, of_items = (
        _standardised(np.column_stack([np.log(np.maximum(degree, 1)), each]), degree)
        for degree, each in zip(degrees, vectors, strict=True)
    )
    return of_users, of_items


def _singular_vectors(
    pattern: RatingPattern, degrees: list[Rows], count: int, threads: int | None
) -> tuple[Rows, Rows]:
    """Singular vectors of users and items, without the leading one, divided by the root degrees.

    Lanczos iterations with full orthogonalisation and a fixed start. Library routines draw a fresh
    random vector where the pattern is not connected, which would make a resumed run differ.
    """
    both = pattern.by_user, pattern.by_item
    if count < 2:
        return np.empty((len(both[0]), 0)), np.empty((len(both[1]), 0))
    roots = [1 / np.sqrt(np.maximum(degree, 1)) for degree in degrees]
    # The basis is of the shorter axis.
    short, long = (0, 1) if len(both[1]) > len(both[0]) else (1, 0)

    def product(to: int, vector: Rows) -> Rows:
        return roots[to] * both[to].product(roots[1 - to] * vector, threads)

    random, size = np.random.default_rng(0), len(both[short])
    basis = np.zeros((min(3 * count + 20, size), size))
    images = np.zeros((len(basis), len(both[long])))
    vector = random.normal(size=size)
    for row in range(len(basis)):
        before = basis[:row]
        for _ in range(2):  # twice, because of rounding errors
            vector = vector - (before @ vector) @ before
        length = float(np.linalg.norm(vector))
        if length < _NOTHING:  # this Krylov space is exhausted: continue from a new vector
            vector = random.normal(size=size)
            vector = vector - (before @ vector) @ before
            vector = vector - (before @ vector) @ before
            length = float(np.linalg.norm(vector))
        basis[row] = vector / length
        images[row] = product(long, basis[row])
        vector = product(short, images[row])
    squares, axes = np.linalg.eigh(images @ images.T)
    order = np.argsort(-squares, kind="stable")[1:count]
    values = np.sqrt(np.maximum(squares[order], _NOTHING))
    found = {short: basis.T @ axes[:, order], long: images.T @ axes[:, order] / values}
    return found[0] * roots[0][:, None], found[1] * roots[1][:, None]


def _standardised(features: Rows, degrees: Rows) -> Rows:
    """Features with mean 0 and variance 1 over ratings; all but the first are shrunk."""
    weights = degrees / degrees.sum()
    centred = features - weights @ features
    standard_deviations = np.sqrt(weights @ centred**2)
    known = standard_deviations > 1e-9
    centred = centred[:, known] / standard_deviations[known]
    clipped: Rows = np.clip(centred, -_LARGEST, _LARGEST)
    clipped[:, 1:] *= (degrees / (degrees + _FEW))[:, None]
    clipped[degrees == 0] = 0
    return clipped
