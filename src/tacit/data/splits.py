"""Splits into training and test ratings, from a public seed that never touches noise.

Held-out evaluation reads private data: what it shows is the owner's own view. Every split keeps all
users and items on both sides, so indices agree.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tacit import _validate
from tacit.data.ratings import Ratings
from tacit.errors import InvalidParameter

Split = tuple[Ratings, Ratings]


def random_split(ratings: Ratings, fraction: float, seed: int = 0) -> Split:
    """Return training and test ratings; each rating is a test rating with chance `fraction`."""
    return _divide(ratings, _uniform(ratings, seed) < _fraction(fraction))


def stratified_split(ratings: Ratings, fraction: float, seed: int = 0) -> Split:
    """Return training and test ratings with the same fraction of every user's, rounded down."""
    order, rank = _by_user(ratings, _uniform(ratings, seed))
    counts = np.diff(ratings.by_user.starts)
    wanted = np.floor(counts * _fraction(fraction)).astype(np.int64)
    test = np.zeros(len(ratings), dtype=np.bool_)
    test[order] = rank < np.repeat(wanted, counts)
    return _divide(ratings, test)


def leave_last_out(ratings: Ratings, count: int = 1) -> Split:
    """Return training and test ratings, the last `count` of each user by time being test ratings.

    A user with no more than `count` ratings keeps them all for training.
    """
    count = _validate.positive_integer("count", count, "it is the number of ratings held out")
    if ratings.timestamps is None:
        raise InvalidParameter("leaving the last out needs timestamps; read them with the ratings")
    order, rank = _by_user(ratings, ratings.timestamps)
    counts = np.diff(ratings.by_user.starts)
    size = np.repeat(counts, counts)
    test = np.zeros(len(ratings), dtype=np.bool_)
    test[order] = (rank >= size - count) & (size > count)
    return _divide(ratings, test)


def k_fold(ratings: Ratings, folds: int, seed: int = 0) -> Iterator[Split]:
    """Yield `folds` splits; each rating is a test rating in exactly one of them."""
    folds = _validate.positive_integer("folds", folds, "5 and 10 are common")
    if folds < 2:
        raise InvalidParameter(f"folds must be at least 2, got {folds}")
    fold = np.floor(_uniform(ratings, seed) * folds).astype(np.int64)
    for number in range(folds):
        yield _divide(ratings, fold == number)


def _fraction(fraction: float) -> float:
    return _validate.probability("fraction", fraction, "0.1 holds a tenth out")


def _uniform(ratings: Ratings, seed: int) -> npt.NDArray[np.float64]:
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InvalidParameter(f"seed must be a whole number of at least 0, got {seed!r}")
    # The second number keeps splits apart from other uses of the same public seed.
    return np.random.default_rng([seed, 0x5B117]).random(len(ratings))


def _by_user(
    ratings: Ratings, keys: npt.NDArray[np.float64] | npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return an order that sorts each user's ratings by key, and the rank of each within it."""
    rows = ratings.rows()
    order = np.lexsort((keys, rows))
    rank = np.arange(len(ratings)) - ratings.by_user.starts[rows]
    return order, rank


def _divide(ratings: Ratings, test: npt.NDArray[np.bool_]) -> Split:
    if test.all() or not test.any():
        raise InvalidParameter("the split leaves one side empty; use more ratings or another one")
    return ratings.select(~test), ratings.select(test)
