"""Splits into training and test ratings, from a public seed that never affects noise.

Held-out evaluation reads private data, and its results are owner-only. Both parts of a split keep
all users and items, so indices agree. `random_split` and `k_fold` assign a rating by the seed and
its own user and item ids, so adding or removing other ratings does not move it.
"""

import hashlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal import validate
from taciturn.data.ratings import Ratings, check_ratings
from taciturn.errors import InvalidParameter

Split = tuple[Ratings, Ratings]

_PIECE = 2**20


def random_split(ratings: Ratings, fraction: float, seed: int = 0) -> Split:
    """Training and test ratings; each is a test rating with probability `fraction`."""
    check_ratings(ratings)
    return _divide(ratings, _uniform(ratings, seed) < _fraction(fraction))


def stratified_split(ratings: Ratings, fraction: float, seed: int = 0) -> Split:
    """Training and test ratings; the test part has this fraction of each user's, rounded down."""
    check_ratings(ratings)
    order, rank = _by_user(ratings, _uniform(ratings, seed))
    counts = np.diff(ratings.by_user.starts)
    # 0.29 of 100 must be 29, although the floating-point product is slightly less.
    wanted = np.floor(counts * _fraction(fraction) + 1e-9).astype(np.int64)
    test = np.zeros(len(ratings), dtype=np.bool_)
    test[order] = rank < np.repeat(wanted, counts)
    return _divide(ratings, test)


def leave_last_out(ratings: Ratings, count: int = 1) -> Split:
    """Training and test ratings; the latest `count` ratings of each user are test ratings.

    All ratings of a user with at most `count` ratings are training ratings.
    """
    check_ratings(ratings)
    count = validate.positive_integer(
        "count", count, "it is the number of held-out ratings of each user"
    )
    if ratings.timestamps is None:
        raise InvalidParameter(
            "leave_last_out needs timestamps; load the ratings with timestamps=True"
        )
    order, rank = _by_user(ratings, ratings.timestamps)
    counts = np.diff(ratings.by_user.starts)
    size = np.repeat(counts, counts)
    test = np.zeros(len(ratings), dtype=np.bool_)
    test[order] = (rank >= size - count) & (size > count)
    return _divide(ratings, test)


def k_fold(ratings: Ratings, folds: int, seed: int = 0) -> Iterator[Split]:
    """`folds` splits; each rating is a test rating in exactly one of them."""
    check_ratings(ratings)
    folds = validate.positive_integer("folds", folds, "5 and 10 are common")
    if folds < 2:
        raise InvalidParameter(f"folds must be at least 2, got {folds}")
    fold = np.floor(_uniform(ratings, seed) * folds).astype(np.int64)
    for number in range(folds):
        yield _divide(ratings, fold == number)


def _fraction(fraction: float) -> float:
    return validate.probability("fraction", fraction, "0.1 holds out a tenth")


def _uniform(ratings: Ratings, seed: int) -> npt.NDArray[np.float64]:
    """Uniform number for each rating that depends only on the seed and the ids of the pair."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise InvalidParameter(
            f"seed must be a whole number from 0 to 2^64 − 1, got {validate.shown(seed)}"
        )
    users = _keys(ratings.user_ids, seed, b"user")
    items = _keys(ratings.item_ids, seed, b"item")
    uniform = np.empty(len(ratings))
    rows, columns = ratings.rows(), ratings.by_user.columns
    for begin in range(0, uniform.size, _PIECE):
        part = slice(begin, begin + _PIECE)
        uniform[part] = _mixed(users[rows[part]] + items[columns[part]])
    return uniform


def _keys(ids: pl.Series, seed: int, role: bytes) -> npt.NDArray[np.uint64]:
    """64-bit hash of each id, from the seed and the id as text.

    A number and its decimal text have the same hash, so the type of the ids does not affect splits.
    """
    person, key = b"taciturn-" + role, seed.to_bytes(64, "big")
    digests = (
        hashlib.blake2b(str(each).encode(), key=key, person=person, digest_size=8).digest()
        for each in ids
    )
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def _mixed(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Numbers in [0, 1): each bit of a key affects every bit of its number (SplitMix64)."""
    mixed = keys ^ (keys >> np.uint64(30))
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _by_user(
    ratings: Ratings, keys: npt.NDArray[np.float64] | npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Order that sorts each user's ratings by key, and the rank of each rating in it."""
    rows = ratings.rows()
    order = np.lexsort((keys, rows))
    rank = np.arange(len(ratings)) - ratings.by_user.starts[rows]
    return order, rank


def _divide(ratings: Ratings, test: npt.NDArray[np.bool_]) -> Split:
    if test.all() or not test.any():
        raise InvalidParameter("the split leaves one part empty; use more ratings or another split")
    return ratings.select(~test), ratings.select(test)
