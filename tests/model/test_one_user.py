"""Lists of one user on every instruction set, and the memory of the index that makes them."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import _core
from taciturn.model.profiles import Profiles
from taciturn.model.ranking import Ranking
from taciturn.model.score import By, Score
from taciturn.model.top_k import ItemIndex
from taciturn.recommend.serve import Recommender
from tests.instruction_sets import every_set, on_every_set
from tests.model.helpers import factor_model, profiles, with_interest

STARTS, NONE = np.zeros(2, dtype=np.int64), np.empty(0, dtype=np.int32)

Lists = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]


def best(
    index: ItemIndex, user: npt.NDArray[np.float32], count: int, excluded: list[int]
) -> dict[str, Lists]:
    """List of one user on each instruction set."""
    starts, columns = np.array([0, len(excluded)]), np.array(excluded, dtype=np.int32)
    every = on_every_set(
        lambda: index.best(user[None], count, starts=starts, columns=columns, threads=1)
    )
    return {name: (items[0], scores[0]) for name, (items, scores) in every.items()}


def reference(scores: npt.NDArray[np.float32], count: int, excluded: list[int]) -> list[int]:
    """Items by descending score, then by index; −1 where none is left. NaN is never listed."""
    left = [i for i, score in enumerate(scores.tolist()) if score == score and i not in excluded]
    left = sorted((i for i in left if scores[i] > -np.inf), key=lambda item: (-scores[item], item))
    return (left + [-1] * count)[:count]


@given(
    seed=st.integers(0, 2**32),
    items=st.one_of(st.integers(1, 40), st.integers(1_015, 1_035), st.integers(2_040, 2_060)),
    width=st.integers(0, 20),
    columns=st.one_of(st.none(), st.integers(1, 20)),
    weight=st.sampled_from([1.0, 0.5, 2.0]),
    count=st.integers(1, 40),
)
def test_a_list_of_one_user_is_the_sorted_one(
    seed: int, items: int, width: int, columns: int | None, weight: float, count: int
) -> None:
    """Small integers give many ties, and every product and sum is exact."""
    random = np.random.default_rng(seed)
    drawn = random.integers(-2, 3, size=(items, 1 + width + (columns or 0))).astype(np.float32)
    drawn[random.random(items) < 0.05, 0] = np.nan
    user = random.integers(-2, 3, size=width + (columns or 0)).astype(np.float32)
    biases, factors, interests = drawn[:, 0], drawn[:, 1 : 1 + width], drawn[:, 1 + width :]
    exact = weight * (biases + factors @ user[columns or 0 :]) + interests @ user[: columns or 0]
    excluded = np.flatnonzero(random.random(items) < 0.2).tolist()
    index = ItemIndex(
        factors, biases, interests=interests if columns is not None else None, weight=weight
    )
    count = min(count, items)
    expected = reference(exact, count, excluded)
    for name, (found, scores) in best(index, user, count, excluded).items():
        assert found.tolist() == expected, name
        listed = found >= 0
        assert np.array_equal(scores[listed], exact[found[listed]])
        assert (scores[~listed] == -np.inf).all()


@every_set
@pytest.mark.parametrize("by", list(By))
@pytest.mark.parametrize("users", [2, 11, 12, 13, 257])
def test_a_list_does_not_depend_on_other_users(by: By, users: int) -> None:
    """Bit for bit, on one instruction set, with any number of threads."""
    model = with_interest(factor_model(users=users, items=1_500, width=21), columns=9)
    score = Score.of(model, by)
    index = ItemIndex.of(score, model, model.item_profiles)
    rows = score.users(model, np.arange(users))
    starts = np.zeros(users + 1, dtype=np.int64)
    items, scores = index.best(rows, 50, starts=starts, columns=NONE, threads=1)
    more, more_scores = index.best(rows, 50, starts=starts, columns=NONE, threads=2)
    assert np.array_equal(items, more) and np.array_equal(scores, more_scores)
    for user in {0, 1, 10, 11, 12, users - 1} & set(range(users)):
        one, one_scores = index.best(rows[[user]], 50, starts=STARTS, columns=NONE, threads=1)
        assert np.array_equal(one[0], items[user]), user
        assert np.array_equal(one_scores[0], scores[user]), user


def test_instruction_sets_agree_within_rounding() -> None:
    model = with_interest(factor_model(users=1, items=3_000, width=33), columns=17)
    score = Score.of(model)
    index = ItemIndex.of(score, model, model.item_profiles)
    (user,) = score.users(model, np.zeros(1, dtype=int))
    factors, biases = score.items(model, model.item_profiles)
    exact = factors.astype(np.float64) @ user + biases
    for items, scores in best(index, user, 20, []).values():
        assert np.allclose(scores, exact[items], rtol=1e-5)
        assert np.allclose(scores, np.sort(exact)[::-1][:20], rtol=1e-5)


@pytest.mark.parametrize("by", list(By))
def test_an_index_shares_the_arrays_of_the_profiles(by: By) -> None:
    model = with_interest(factor_model(items=40))
    recommender, items = Recommender(model), model.item_profiles
    assert recommender.model.items is items and recommender.model.users is model.users
    index = recommender._ranking._order(Score.of(model, by)).index
    assert items.interests is not None
    assert np.shares_memory(index._factors, items.factors)
    assert (index._interests is not None) == (by is By.INTEREST)
    if index._interests is not None:
        assert np.shares_memory(index._interests, items.interests)
    # Biases are multiplied by the weight of ratings, which is 1 by rating.
    assert np.shares_memory(index._biases, items.biases) == (by is By.RATING)


def test_a_fit_is_served_without_a_copy_of_its_factors() -> None:
    """The profiles of a fit are part of wider rows."""
    rows = np.random.default_rng(1).normal(size=(50, 6))
    items = Profiles.from_rows(profiles(50, 5, 0).ids, rows)
    index = ItemIndex(items.factors, items.biases)
    assert np.shares_memory(index._factors, items.factors)
    user = np.ones((1, 5), dtype=np.float32)
    found, _ = index.best(user, 3, starts=STARTS, columns=NONE, threads=1)
    exact = rows.astype(np.float32).astype(np.float64).sum(axis=1)
    assert found[0].tolist() == np.argsort(-exact)[:3].tolist()


def test_rows_that_the_kernel_cannot_read_are_copied() -> None:
    random = np.random.default_rng(2)
    whole = random.normal(size=(60, 8)).astype(np.float32)
    user = np.ones((1, 4), dtype=np.float32)
    for factors in (
        whole[:, ::2],
        np.asfortranarray(whole[:, :4]),
        whole[::-1, :4],
        whole[:, :4].astype(np.float64),
        np.broadcast_to(whole[0, :4], (60, 4)),
    ):
        index = ItemIndex(factors, np.zeros(60, dtype=np.float32))
        found, _ = index.best(user, 1, starts=STARTS, columns=NONE, threads=1)
        assert found[0, 0] == factors.sum(axis=1).argmax()


def test_the_kernel_refuses_rows_that_it_cannot_read() -> None:
    whole, biases = np.ones((6, 8), dtype=np.float32), np.zeros(6, dtype=np.float32)
    out = np.empty((1, 2), dtype=np.int32), np.empty((1, 2), dtype=np.float32)
    user = np.ones((1, 4), dtype=np.float32)
    for factors in (whole[:, ::2], whole[::-1, :4]):
        with pytest.raises(ValueError, match="rows|row"):
            _core.top_k(factors, biases, user, STARTS, NONE, *out, 0, 1)
    for shapes in ((5, 2), (6, 3)):
        interests = np.ones(shapes, dtype=np.float32)
        with pytest.raises(ValueError, match="differ in shape"):
            _core.top_k(whole[:, :2], biases, user, STARTS, NONE, *out, 0, 1, interests=interests)


def test_scores_by_interest_are_those_above_an_average_item() -> None:
    model = with_interest(factor_model(users=3, items=200, width=5), columns=4)
    score, rows = Score.of(model), np.arange(3)
    factors, biases = score.items(model, model.item_profiles)
    exact = score.users(model, rows).astype(np.float64) @ factors.T + biases
    ranking = Ranking(model=model, threads=1)
    found = ranking.table(model.user_profiles.ids, 200, score)
    exact -= exact.mean(axis=1, keepdims=True)
    expected = -np.sort(-exact, axis=1).ravel()
    assert np.allclose(found["score"].to_numpy(), expected, atol=1e-4)


def test_a_model_in_64_bits_is_served() -> None:
    single = factor_model(users=4, items=30)
    items, users = (
        replace(each, factors=each.factors.astype(float), biases=each.biases.astype(float))
        for each in (single.item_profiles, single.user_profiles)
    )
    double = replace(single, items=items, users=users)
    one, two = (Recommender(each).recommend([10, 13], 5) for each in (single, double))
    assert one["item_id"].equals(two["item_id"])
