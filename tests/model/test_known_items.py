"""Items that users know: from pairs, for everyone, and liked ones."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.model.known_items import KnownItems

PAIRS = st.lists(
    st.tuples(st.integers(-1, 3), st.integers(-1, 5), st.none() | st.integers(1, 5)), max_size=25
)


def known(pairs: list[tuple[int, int, int | None]], *, has_values: bool = True) -> KnownItems:
    users, items = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    values = pl.Series([pair[2] for pair in pairs], dtype=pl.Int64) if has_values else None
    return KnownItems.of_pairs(users, items, 4, values)


def items_of(found: KnownItems, user: int) -> list[int]:
    columns: list[int] = found.columns[found.starts[user] : found.starts[user + 1]].tolist()
    return columns


@given(PAIRS, st.booleans())
def test_items_and_liked_items_equal_a_slow_reference(
    pairs: list[tuple[int, int, int | None]], has_values: bool
) -> None:
    found = known(pairs, has_values=has_values)
    for user in range(4):
        mine = {item: value for who, item, value in pairs if who == user and item >= 0}
        assert items_of(found, user) == sorted(mine)
        rated = sorted(value for value in mine.values() if value is not None)
        liked = sorted(mine)
        if rated and has_values:
            middle = (rated[(len(rated) - 1) // 2] + rated[len(rated) // 2]) / 2
            liked = [each for each in liked if (mine[each] or 0) >= max(middle, 4)]
        assert found.liked(user, middle=3.0).tolist() == liked


def test_items_left_out_for_everyone_are_nobodys_own() -> None:
    found = KnownItems.of_everyone(np.array([4, -1, 2, 4]), 3)
    assert [items_of(found, user) for user in range(3)] == [[2, 4]] * 3
    assert not any(found.liked(user, 3.0).size for user in range(3))


def test_excluded_items_of_one_user_are_not_liked() -> None:
    own = KnownItems.of_pairs(np.array([0, 0]), np.array([3, 1]), 1)
    both = own.with_excluded(np.array([5, 3, -1]))
    assert items_of(both, 0) == [1, 3, 5] and both.liked(0, 3.0).size == 0
    assert own.liked(0, 3.0).tolist() == [1, 3]


@pytest.mark.parametrize("users", [0, 1, 3])
def test_without_pairs_there_are_no_items(users: int) -> None:
    found = KnownItems.none(users)
    assert found.starts.tolist() == [0] * (users + 1)
    assert all(found.liked(user, 3.0).size == 0 for user in range(users))
