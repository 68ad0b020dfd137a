"""Interest of a user in an item: what users turn to, beside how they rate.

Interest is the inner product of two interest vectors. The first entry of an item's is its
popularity, the others are factors; a user's are the coefficients of these. It has no unit: over the
items, every user's interest has standard deviation 1.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from taciturn.model.profiles import Floats

Rows = npt.NDArray[np.float64]

_PIECE = 1024
"""Number of rows that are multiplied at once."""

RATING_WEIGHT_MAX = 1e15
"""Maximum weight of a predicted rating: that of any number in a release.

It would be larger only on scales less than 1e-12 wide, where lists are then more by interest."""


@dataclass(frozen=True, kw_only=True)
class Interest:
    """Parameters of the interest part of a model; public or released.

    Attributes
    ----------
    rating_weight
        Weight of a predicted rating, in rating units, beside interest in the ranking score.
    unseen_weight
        Weight α of an item that a user has not turned to, relative to one that the user has.
    regularization
        Regularization λ of a user's coefficients, for each unit of weight.
    """

    rating_weight: float
    unseen_weight: float
    regularization: float


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class InterestItems:
    """Interest vectors of all items, with what every user's regression shares.

    Attributes
    ----------
    vectors
        Interest vectors (items × columns).
    gram
        Σ φφᵀ over all items.
    covariance
        Covariance of the vectors over the items.
    """

    vectors: Floats
    gram: Rows
    covariance: Rows

    @classmethod
    def of(cls, vectors: Floats) -> "InterestItems":
        """Items with these vectors."""
        rows = vectors.astype(np.float64)
        gram, mean = rows.T @ rows, rows.mean(axis=0)
        covariance = gram / max(1, len(rows)) - np.outer(mean, mean)
        return cls(vectors=vectors, gram=gram, covariance=covariance)

    def added(self, interest: Interest, count: float) -> Rows:
        """Part of a user's normal equations other than Σ φφᵀ over the user's `count` items."""
        unseen = interest.unseen_weight
        total = interest.regularization * (count + unseen * len(self.vectors))
        found: Rows = unseen * self.gram + total * np.eye(len(self.gram))
        return found

    def coefficients(
        self, seen: npt.NDArray[np.integer], interest: Interest
    ) -> npt.NDArray[np.float32]:
        """Coefficients of a user who has turned to the items in these rows, each given once.

        Minimises Σ (1 − φᵀy)² over these items, plus α Σ (φᵀy)² over all items, plus λ ‖y‖² for
        each unit of weight; then scales y. Reads the user's items without noise: the result is
        private to the user. Without items it is popularity alone.
        """
        rows = self.vectors[seen].astype(np.float64)
        found = popularity_alone(self.gram.shape[0])
        if len(rows):
            system = rows.T @ rows + self.added(interest, len(rows))
            found = _solved(system, rows.sum(axis=0))
        scaled: npt.NDArray[np.float32] = self.scaled(found[None])[0]
        return scaled

    def scaled(self, coefficients: Rows) -> npt.NDArray[np.float32]:
        """Users' coefficients, scaled to interests of standard deviation 1 over the items.

        The bits of a row do not depend on other rows.
        """
        products = row_products(coefficients, self.covariance)
        squares = np.zeros(len(coefficients))
        for one, two in zip(products.T, coefficients.T, strict=True):
            squares += one * two
        deviations = np.sqrt(np.maximum(squares, 0.0))
        scaled = coefficients / np.where(deviations > 0, deviations, np.inf)[:, None]
        return scaled.astype(np.float32)


def row_products(rows: Rows, matrix: Rows) -> Rows:
    """Matrix product of rows with a matrix, in which the bits of a row do not depend on other rows.

    Column by column: a library's matrix product rounds differently for other numbers of rows.
    """
    found = np.empty((len(rows), matrix.shape[1]))
    for begin in range(0, len(rows), _PIECE):
        columns = np.ascontiguousarray(rows[begin : begin + _PIECE].T)
        total = np.zeros((matrix.shape[1], columns.shape[1]))
        for column, weights in zip(columns, matrix, strict=True):
            total += weights[:, None] * column
        found[begin : begin + _PIECE] = total.T
    return found


def _solved(system: Rows, right: Rows) -> Rows:
    """Solution of a positive definite system; the shortest one if a forged system is singular."""
    try:
        return np.asarray(np.linalg.solve(system, right), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(system, right, rcond=None)[0], dtype=np.float64)


def popularity_alone(columns: int) -> Rows:
    """Coefficients of a user of whom nothing is known: popularity, and nothing personal."""
    found = np.zeros(columns)
    found[:1] = 1.0
    return found
