"""Error and ranking metrics, compared with slow references."""

import math

import numpy as np
import polars as pl
import pytest

from taciturn.accounting.ledger import Ledger
from taciturn.data import load
from taciturn.data.ratings import Ratings
from taciturn.data.splits import random_split
from taciturn.evaluate.metrics import NDCG_AT, RECALL_AT, accuracy, rmse
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Profiles
from taciturn.solvers.contract import Fit
from tests.solvers.helpers import random_ratings


def made_up(ratings: Ratings, seed: int = 0, width: int = 3) -> Fit:
    random = np.random.default_rng(seed)
    users, items = (
        Profiles(
            ids=ids,
            biases=random.normal(size=len(ids), scale=0.5).astype(np.float32),
            factors=random.normal(size=(len(ids), width)).astype(np.float32),
        )
        for ids in (ratings.user_ids, ratings.item_ids)
    )
    return Fit(
        solver="made up",
        settings={},
        model=FactorModel(scale=ratings.scale, mean=3.2, users=users, items=items),
        ledger=Ledger(),
    )


@pytest.mark.parametrize("seed", range(4))
def test_metrics_match_a_slow_reference(seed: int) -> None:
    ratings = random_ratings(seed, users=40, items=60, density=0.4)
    train, test = random_split(ratings, 0.4, seed)
    fit = made_up(ratings, seed)
    found = accuracy(fit, train, test)
    left, right = fit.model.user_profiles, fit.model.item_profiles
    scores = 3.2 + left.factors @ right.factors.T
    scores = scores + left.biases[:, None] + right.biases
    errors, ndcgs, recalls = [], [], []
    seen = {(u, i) for u, i in zip(train.rows(), train.by_user.columns, strict=True)}
    for user in range(40):
        mine = test.by_user.starts[user], test.by_user.starts[user + 1]
        items, values = test.by_user.columns[slice(*mine)], test.values()[slice(*mine)]
        errors += list(np.clip(scores[user, items], 1, 5) - values)
        relevant = {int(i) for i, value in zip(items, values, strict=True) if value >= 4}
        if not relevant:
            continue
        order = [int(i) for i in np.argsort(-scores[user]) if (user, i) not in seen]
        gains = [1 / math.log2(rank + 2) for rank in range(NDCG_AT)]
        gained = [gain for gain, item in zip(gains, order, strict=False) if item in relevant]
        ndcgs.append(sum(gained) / sum(gains[: len(relevant)]))
        top = relevant & set(order[:RECALL_AT])
        recalls.append(len(top) / min(len(relevant), RECALL_AT))
    assert found.rmse == pytest.approx(math.sqrt(np.mean(np.square(errors))), rel=1e-5)
    assert found.rmse == rmse(fit, test)
    assert found.mae == pytest.approx(np.mean(np.abs(errors)), rel=1e-5)
    assert found.ndcg == pytest.approx(np.mean(ndcgs))
    assert found.recall == pytest.approx(np.mean(recalls))


def test_popular_items_are_in_the_last_group() -> None:
    """Predictions are wrong for one item that all users rated and right for all others."""
    users = np.arange(100)
    pairs = [(int(user), 0, 5.0) for user in users]
    pairs += [(int(user), 1 + int(user), 3.0) for user in users]
    pairs += [(int(user), 1 + (int(user) + 1) % 100, 3.0) for user in users]
    frame = pl.DataFrame(pairs, schema=["user_id", "item_id", "rating"], orient="row")
    ratings = load(frame, scale="1:5:1")
    nothing = [
        Profiles(
            ids=ids,
            biases=np.zeros(len(ids), np.float32),
            factors=np.zeros((len(ids), 1), np.float32),
        )
        for ids in (ratings.user_ids, ratings.item_ids)
    ]
    fit = Fit(
        solver="made up",
        settings={},
        model=FactorModel(scale=ratings.scale, mean=3.0, users=nothing[0], items=nothing[1]),
        ledger=Ledger(),
    )
    found = accuracy(fit, ratings, ratings)
    groups = [error for error in found.rmse_by_popularity if error is not None]
    assert groups[:-1] == [0] * (len(groups) - 1) and groups[-1] > 1.5


def test_without_relevant_ratings_there_is_no_ranking() -> None:
    ratings = load((np.arange(5), np.arange(5), np.ones(5)), scale="1:5:1")
    found = accuracy(made_up(ratings), ratings, ratings)
    assert found.ndcg is None and found.recall is None and found.rmse > 0
