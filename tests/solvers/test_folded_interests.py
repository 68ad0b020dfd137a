"""The interest of a user who folds in has the same bits whoever else there is."""

import numpy as np
import numpy.typing as npt
import pytest

from taciturn.data.pattern import Pattern
from taciturn.model.interest import InterestItems, row_products
from taciturn.solvers.interest.fold_in import folded_interests, implicit_rows
from tests.model.helpers import INTEREST

RANDOM = np.random.default_rng(8)
ITEMS = 120


def pattern_of(rows: list[npt.NDArray[np.int32]]) -> Pattern:
    starts = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return Pattern(starts=starts, columns=np.concatenate(rows).astype(np.int32), width=ITEMS)


@pytest.mark.parametrize("columns", [1, 7, 25, 64])
def test_bits_do_not_depend_on_other_users_or_their_order(columns: int) -> None:
    vectors = RANDOM.normal(size=(ITEMS, columns)).astype(np.float32)
    items = InterestItems.of(vectors)
    users = [
        np.sort(RANDOM.choice(ITEMS, size=size, replace=False)).astype(np.int32)
        for size in RANDOM.integers(1, 40, 2500)
    ]
    order = RANDOM.permutation(len(users))

    def exact(rows: list[npt.NDArray[np.int32]]) -> npt.NDArray[np.float64]:
        found = implicit_rows(
            pattern_of(rows), vectors.astype(np.float64), INTEREST, threads=2, by_row=True
        )
        return row_products(found, items.covariance)

    whole, scaled = exact(users), folded_interests(pattern_of(users), items, INTEREST, threads=2)
    assert np.array_equal(exact([users[row] for row in order]), whole[order])
    for row in (0, 1, 7, 1023, 1024, 2499):
        assert np.array_equal(exact([users[row]])[0], whole[row])
        alone = folded_interests(pattern_of([users[row]]), items, INTEREST)
        assert np.array_equal(alone[0], scaled[row])


def test_row_products_equal_those_of_a_library() -> None:
    rows, matrix = RANDOM.normal(size=(3000, 9)), RANDOM.normal(size=(9, 4))
    assert np.allclose(row_products(rows, matrix), rows @ matrix, rtol=1e-12)
    assert row_products(rows[:0], matrix).shape == (0, 4)
