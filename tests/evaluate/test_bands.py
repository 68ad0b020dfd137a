"""Metrics by band of user activity and of item popularity, computed by hand and slowly."""

import math

import numpy as np
import pytest

from taciturn.data import load
from taciturn.data.ratings import Ratings
from taciturn.data.splits import random_split
from taciturn.evaluate.bands import (
    BANDS,
    item_bands,
    mean_in_bands,
    rmse_in_bands,
    share_in_bands,
    split_by_count,
    user_bands,
)
from taciturn.evaluate.metrics import accuracy
from taciturn.evaluate.ranking import NDCG_AT, RECALL_AT
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Profiles
from tests.evaluate.test_metrics import made_up
from tests.solvers.helpers import random_ratings


def of_triples(triples: list[tuple[int, int, float]]) -> Ratings:
    users, items, values = zip(*triples, strict=True)
    return load((np.array(users), np.array(items), np.array(values)), scale="1:5:1")


@pytest.mark.parametrize(
    ("counts", "bands"),
    [
        ([2, 2, 2, 2, 2], [0, 1, 2, 3, 4]),
        ([10, 1, 1, 4, 4], [2, 0, 0, 0, 1]),  # 1, 1, 4, 4, 10: 0, 1, 2, 6, 10 of 20 come before
        ([0, 0, 3], [0, 0, 0]),
        ([0, 0], [0, 0]),
        ([], []),
    ],
)
def test_bands_have_about_equally_many_ratings(counts: list[int], bands: list[int]) -> None:
    assert split_by_count(np.array(counts, dtype=np.int64)).tolist() == bands


def test_users_and_items_without_training_ratings_are_in_the_first_band() -> None:
    """Five users with one rating each, of items that have 1, 1 and 3 ratings."""
    train = of_triples([(1, 1, 3), (2, 2, 3), (3, 3, 3), (4, 3, 3), (5, 3, 3)])
    test = of_triples([(5, 3, 3), (9, 2, 3), (3, 9, 3)])
    assert dict(zip(test.user_ids, user_bands(train, test), strict=True)) == {3: 2, 5: 4, 9: 0}
    assert dict(zip(test.item_ids, item_bands(train, test), strict=True)) == {2: 1, 3: 2, 9: 0}


def test_a_band_without_data_has_no_metric() -> None:
    bands = np.array([0, 0, 2])
    assert mean_in_bands(np.array([1.0, 2.0, 5.0]), bands) == (1.5, None, 5.0, None, None)
    assert rmse_in_bands(np.array([3.0, -4.0, -2.0]), bands) == pytest.approx(
        (math.sqrt(12.5), None, 2.0, None, None)
    )
    assert share_in_bands(np.array([0]), bands) == (0.5, None, 0.0, None, None)


def test_metrics_by_band_match_a_computation_by_hand() -> None:
    """Users 1 and 2 rated one and four items; all lists have items in the order 21, 22, …, 50.

    Of 5 training ratings, user 2 has those after the first, so it is in band 1. Item 1 has two
    ratings, after those of items 2, 3 and 4: it is in band 3. Held-out items are in band 0 but
    for item 1 of user 3, who has no training rating.
    """
    train = of_triples([(1, 1, 3), (2, 1, 3), (2, 2, 3), (2, 3, 3), (2, 4, 3)])
    held_out = [(1, 21, 5.0), (1, 50, 4.0), (1, 22, 2.0), (2, 22, 4.0), (3, 1, 5.0)]
    test = of_triples(held_out)
    ids = load((np.arange(50) % 3 + 1, np.arange(1, 51), np.full(50, 3.0)), scale="1:5:1")
    biases = np.concatenate([np.full(20, -1.0), np.linspace(0.3, 0.01, 30)]).astype(np.float32)
    users = Profiles(
        ids=ids.user_ids, biases=np.zeros(3, np.float32), factors=np.zeros((3, 1), np.float32)
    )
    items = Profiles(ids=ids.item_ids, biases=biases, factors=np.zeros((50, 1), np.float32))
    model = FactorModel(scale=ids.scale, mean=3.0, users=users, items=items)
    found = accuracy(model, train, test)

    errors = {(user, item): 3 + float(biases[item - 1]) - value for user, item, value in held_out}
    of_user_2 = errors.pop((2, 22))
    rest = math.sqrt(np.mean(np.square(list(errors.values()))))
    assert found.rmse_by_activity == pytest.approx((rest, abs(of_user_2), None, None, None))
    # User 1 finds item 21 in place 1 and not item 50, in place 30; user 3 does not find item 1.
    ideal = 1 + 1 / math.log2(3)
    ndcg = ((1 / ideal + 0) / 2, 1 / math.log2(3), None, None, None)
    assert found.ndcg_by_activity == pytest.approx(ndcg)
    assert found.recall_by_activity == pytest.approx(((1 / 2 + 0) / 2, 1, None, None, None))
    of_item_1 = errors.pop((3, 1))
    rare = math.sqrt(np.mean(np.square([*errors.values(), of_user_2])))
    assert found.rmse_by_popularity == pytest.approx((rare, None, None, abs(of_item_1), None))
    assert found.recall_by_popularity == pytest.approx((2 / 3, None, None, 0, None))


@pytest.mark.parametrize("seed", range(3))
def test_metrics_by_band_match_a_slow_reference(seed: int) -> None:
    ratings = random_ratings(seed, users=40, items=60, density=0.3)
    train, test = random_split(ratings, 0.4, seed)
    fit = made_up(ratings, seed)
    scores = fit.model.user_profiles.factors @ fit.model.item_profiles.factors.T
    scores = scores + fit.model.item_profiles.biases
    seen = set(zip(train.rows().tolist(), train.by_user.columns.tolist(), strict=True))
    of_user, of_item = user_bands(train, test), item_bands(train, test)
    ndcgs: list[list[float]] = [[] for _ in range(BANDS)]
    recalls: list[list[float]] = [[] for _ in range(BANDS)]
    hits: list[list[bool]] = [[] for _ in range(BANDS)]
    for user in range(40):
        mine = slice(test.by_user.starts[user], test.by_user.starts[user + 1])
        pairs = zip(test.by_user.columns[mine].tolist(), test.values()[mine], strict=True)
        relevant = [item for item, value in pairs if value >= 4]
        if not relevant:
            continue
        order = [item for item in np.argsort(-scores[user]).tolist() if (user, item) not in seen]
        gains = [1 / math.log2(place + 2) for place in range(NDCG_AT)]
        gained = [gain for gain, item in zip(gains, order, strict=False) if item in relevant]
        is_found = [item in order[:RECALL_AT] for item in relevant]
        ndcgs[of_user[user]].append(sum(gained) / sum(gains[: len(relevant)]))
        recalls[of_user[user]].append(sum(is_found) / min(len(relevant), RECALL_AT))
        for item, hit in zip(relevant, is_found, strict=True):
            hits[of_item[item]].append(hit)
    found = accuracy(fit, train, test)
    assert found.ndcg_by_activity == pytest.approx([np.mean(each) for each in ndcgs])
    assert found.recall_by_activity == pytest.approx([np.mean(each) for each in recalls])
    assert found.recall_by_popularity == pytest.approx([np.mean(each) for each in hits])
