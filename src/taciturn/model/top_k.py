"""Exact top-k items of many users, with a compiled kernel."""

import numpy as np
import numpy.typing as npt

from taciturn import _core
from taciturn._internal import parallel, validate
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Profiles
from taciturn.model.score import Score

Floats = npt.NDArray[np.float32]

_USERS_MIN, _USERS_MAX = 36, 252
"""Numbers of users in one unit of parallel work. Every unit copies all items once."""

_USERS_TOGETHER = 12
"""Users whose scores every kernel can compute together, or several times as many."""


class ItemIndex:
    """Items by which users are served. It shares the arrays of their profiles.

    An item's vector is its interests, then its factors times `weight`. Its bias is multiplied too.

    Parameters
    ----------
    factors, biases
        Factors (n × k) and biases (n) of the items.
    interests
        Interest vectors (n × columns), if they are part of the score.
    weight
        Weight of the factors and biases.
    """

    def __init__(
        self,
        factors: npt.NDArray[np.floating],
        biases: npt.NDArray[np.floating],
        *,
        interests: npt.NDArray[np.floating] | None = None,
        weight: float = 1.0,
    ) -> None:
        self._count, self._weight = len(factors), weight
        self._factors = _rows_of_floats(factors)
        self._interests = None if interests is None else _rows_of_floats(interests)
        biases = np.ascontiguousarray(biases, dtype=np.float32)
        self._biases = biases if weight == 1 else np.float32(weight) * biases

    @classmethod
    def of(cls, score: Score, model: FactorModel, items: Profiles) -> "ItemIndex":
        """Items of a model in the order of a score."""
        return cls(
            items.factors,
            items.biases,
            interests=score.interests(items),
            weight=score.rating_weight(model),
        )

    def best(
        self,
        users: Floats,
        count: int,
        *,
        starts: npt.NDArray[np.int64],
        columns: npt.NDArray[np.int32],
        threads: int,
    ) -> tuple[npt.NDArray[np.int32], Floats]:
        """Best items of each profile and their scores; −1 where there are fewer than `count`.

        Row r excludes the items columns[starts[r]:starts[r + 1]], sorted in ascending order. A
        score is the item bias plus the inner product. On one instruction set, a list does not
        depend on the other users.
        """
        count = min(validate.positive_integer("count", count, "10 is usual"), self._count)
        items = np.empty((len(users), count), dtype=np.int32)
        scores = np.empty((len(users), count), dtype=np.float32)
        users = np.ascontiguousarray(users)

        def work(begin: int, end: int) -> None:
            _core.top_k(
                self._factors,
                self._biases,
                users,
                starts,
                columns,
                items,
                scores,
                begin,
                end,
                self._interests,
                self._weight,
            )

        each = -(-len(users) // (threads * _USERS_TOGETHER)) * _USERS_TOGETHER
        size = min(max(each, _USERS_MIN), _USERS_MAX)
        if len(users) <= size:
            work(0, len(users))
        else:
            parallel.for_ranges(work, len(users), size=size, threads=threads)
        return items, scores


def _rows_of_floats(array: npt.NDArray[np.floating]) -> Floats:
    """The same array if the kernel can read it, or else a copy: each row must be contiguous."""
    is_readable = array.dtype == np.float32 and array.flags.aligned
    row, number = array.strides
    is_readable &= number == array.itemsize and row % array.itemsize == 0
    if is_readable and row >= array.shape[1] * array.itemsize:
        found: Floats = array
        return found
    return np.ascontiguousarray(array, dtype=np.float32)
