"""Features of the rating pattern, which is public under unit `value`.

Users who rate the same items tend to have similar tastes: the leading singular vectors of the table
of rated pairs, degrees divided out, carry much of what ratings would, at no privacy cost. Nothing
here sees a rating's value.
"""

import numpy as np
import numpy.typing as npt
import scipy.sparse

from taciturn.data.pattern import RatingPattern

Rows = npt.NDArray[np.float64]

_LARGEST, _FEW = 4.0, 20.0
"""Singular vectors are clipped to _LARGEST standard deviations and shrunk by n/(n + _FEW): those of
rows with few ratings are wild, and would put hardly rated items on top of every list."""

_NOTHING = 1e-10
"""Vectors shorter than that are rounding errors."""


def compute_pattern_features(pattern: RatingPattern, count: int) -> tuple[Rows, Rows]:
    """At most `count` features of each user and of each item, most informative first.

    The first is the logarithm of the number of ratings, the others are singular vectors of
    D_i^-½ M D_u^-½ after the first. All have mean 0 and variance 1 over ratings, before those of
    rows with few ratings are shrunk; rows without any have zeros.
    """
    mask, (items, users) = pattern.by_item.ones(), (len(pattern.by_item), len(pattern.by_user))
    degrees: list[Rows] = [mask.sum(axis=axis, dtype=np.float64) for axis in (0, 1)]
    vectors = _singular_vectors(mask, degrees, min(count, min(users, items) - 1))
    of_users, of_items = (
        _standardised(np.column_stack([np.log(np.maximum(degree, 1)), side]), degree)
        for degree, side in zip(degrees, vectors, strict=True)
    )
    return of_users, of_items


def _singular_vectors(
    mask: scipy.sparse.csr_array, degrees: list[Rows], count: int
) -> tuple[Rows, Rows]:
    """Singular vectors of users and items without the first, degrees divided out.

    Lanczos iterations with full orthogonalisation and a fixed start. Library
    routines draw a fresh random vector where the mask falls into parts; a resumed run must not.
    """
    items, users = mask.shape
    if count < 2:
        return np.empty((users, 0)), np.empty((items, 0))
    roots = [1 / np.sqrt(np.maximum(degree, 1)) for degree in degrees]
    forth = (scipy.sparse.diags_array(roots[1]) @ mask @ scipy.sparse.diags_array(roots[0])).tocsr()
    back = forth.T.tocsr()
    if items > users:
        forth, back = back, forth
    random, size = np.random.default_rng(0), forth.shape[0]
    basis = np.zeros((min(3 * count + 20, size), size))
    vector = random.normal(size=size)
    for row in range(len(basis)):
        before = basis[:row]
        for _ in range(2):  # the second time for what rounding left
            vector = vector - (before @ vector) @ before
        length = float(np.linalg.norm(vector))
        if length < _NOTHING:  # all that the start can reach was found: go on from elsewhere
            vector = random.normal(size=size)
            vector = vector - (before @ vector) @ before
            vector = vector - (before @ vector) @ before
            length = float(np.linalg.norm(vector))
        basis[row] = vector / length
        vector = forth @ (back @ basis[row])
    images = back @ basis.T
    squares, axes = np.linalg.eigh(images.T @ images)
    order = np.argsort(-squares, kind="stable")[1:count]
    values = np.sqrt(np.maximum(squares[order], _NOTHING))
    of_rows, of_columns = basis.T @ axes[:, order], images @ axes[:, order] / values
    of_users, of_items = (of_rows, of_columns) if items > users else (of_columns, of_rows)
    return of_users * roots[0][:, None], of_items * roots[1][:, None]


def _standardised(features: Rows, degrees: Rows) -> Rows:
    """Features with mean 0 and variance 1 over ratings; all but the first are shrunk."""
    weights = degrees / degrees.sum()
    centred = features - weights @ features
    deviations = np.sqrt(weights @ centred**2)
    known = deviations > 1e-9
    centred = centred[:, known] / deviations[known]
    clipped: Rows = np.clip(centred, -_LARGEST, _LARGEST)
    clipped[:, 1:] *= (degrees / (degrees + _FEW))[:, None]
    clipped[degrees == 0] = 0
    return clipped
