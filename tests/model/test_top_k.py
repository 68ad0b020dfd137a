"""The top-k kernel, compared with sorting all items."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import _core
from taciturn.model.top_k import ItemIndex
from tests.instruction_sets import every_set, on_every_set
from tests.model.helpers import profiles


@given(
    st.integers(0, 2**32),
    st.integers(1, 20),
    st.integers(1, 200),
    st.integers(0, 12),
    st.integers(1, 40),
)
def test_the_kernel_finds_the_best_items(
    seed: int, users: int, items: int, width: int, count: int
) -> None:
    """Compared with sorting. Small integers give many ties, in which the first item wins."""
    random = np.random.default_rng(seed)
    factors = random.integers(-2, 3, size=(items, width)).astype(np.float32)
    biases = random.integers(-2, 3, size=items).astype(np.float32)
    wanted = random.integers(-2, 3, size=(users, width)).astype(np.float32)
    excluded = random.random((users, items)) < 0.2
    starts = np.concatenate([[0], np.cumsum(excluded.sum(axis=1))]).astype(np.int64)
    columns = np.nonzero(excluded)[1].astype(np.int32)
    count = min(count, items)
    index = ItemIndex(factors, biases)
    every = on_every_set(
        lambda: index.best(wanted, count, starts=starts, columns=columns, threads=1)
    )
    exact = np.where(excluded, -np.inf, wanted @ factors.T + biases)
    for user in range(users):
        order = np.lexsort((np.arange(items), -exact[user]))[:count]
        order = order[exact[user][order] > -np.inf]
        for found, best in every.values():
            assert found[user, : len(order)].tolist() == order.tolist()
            assert (found[user, len(order) :] == -1).all()
            assert np.array_equal(best[user, : len(order)], exact[user][order])


@every_set
@pytest.mark.parametrize("count", [1, 10, 40])
def test_the_kernel_finds_the_best_of_many_items(count: int) -> None:
    """More items than one block of the kernel, most of the best excluded, many ties."""
    random = np.random.default_rng(count)
    users, items, width = 40, 6_000, 5
    factors = random.integers(-2, 3, size=(items, width)).astype(np.float32)
    wanted = random.integers(-2, 3, size=(users, width)).astype(np.float32)
    exact = wanted @ factors.T
    excluded = (exact >= np.quantile(exact, 0.95, axis=1)[:, None]) & (
        random.random(exact.shape) < 0.9
    )
    excluded[0] = True  # no item is left
    excluded[1, :-3] = True  # only the last three are left
    exact[excluded] = -np.inf
    index = ItemIndex(factors, np.zeros(items, dtype=np.float32))
    starts = np.concatenate([[0], np.cumsum(excluded.sum(axis=1))])
    columns = np.nonzero(excluded)[1].astype(np.int32)
    found, _ = index.best(wanted, count, starts=starts, columns=columns, threads=1)
    order = np.argsort(-exact, axis=1, kind="stable")[:, :count]
    there = np.take_along_axis(exact, order, axis=1) > -np.inf
    assert np.array_equal(found, np.where(there, order, -1))


@every_set
def test_the_kernel_skips_scores_that_are_not_numbers() -> None:
    factors = np.ones((160, 1), dtype=np.float32)
    factors[:40] = np.nan
    index = ItemIndex(factors, np.zeros(160, dtype=np.float32))
    starts, none = np.zeros(2, dtype=np.int64), np.empty(0, dtype=np.int32)
    user = np.ones((1, 1), dtype=np.float32)
    found, _ = index.best(user, 10, starts=starts, columns=none, threads=1)
    assert found.tolist() == [list(range(40, 50))]


@every_set
def test_the_kernel_refuses_columns_out_of_range_or_unsorted() -> None:
    items = profiles(5, 2, 0)
    index = ItemIndex(items.factors, items.biases)
    arrays = index._factors, index._biases
    out = np.empty((1, 2), dtype=np.int32), np.empty((1, 2), dtype=np.float32)
    for bad in (-1, 16):
        starts, columns = np.array([0, 1]), np.array([bad], dtype=np.int32)
        with pytest.raises(IndexError, match="out of range"):
            _core.top_k(*arrays, np.ones((1, 2), dtype=np.float32), starts, columns, *out, 0, 1)
    starts, columns = np.array([0, 2]), np.array([3, 1], dtype=np.int32)
    with pytest.raises(ValueError, match="must be ascending"):
        _core.top_k(*arrays, np.ones((1, 2), dtype=np.float32), starts, columns, *out, 0, 1)
