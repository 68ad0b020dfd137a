"""Error and ranking metrics, compared with slow references."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from taciturn.accounting.ledger import Ledger
from taciturn.data import load
from taciturn.data.ratings import Ratings
from taciturn.data.splits import random_split
from taciturn.errors import InvalidParameter, UnknownIds
from taciturn.evaluate.compare import BAND_METRICS
from taciturn.evaluate.metrics import accuracy, coverage, held_out_error, rmse
from taciturn.evaluate.ranking import NDCG_AT, RECALL_AT
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Profiles
from taciturn.solvers.contract import Fit
from tests.model.helpers import factor_model
from tests.narrow import present
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
    errors, ndcgs, recalls, lists = [], [], [], []
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
        lists.append(order[:NDCG_AT])
        top = relevant & set(order[:RECALL_AT])
        recalls.append(len(top) / min(len(relevant), RECALL_AT))
    assert found.rmse == pytest.approx(math.sqrt(np.mean(np.square(errors))), rel=1e-5)
    assert found.rmse == rmse(fit, test)
    assert found.mae == pytest.approx(np.mean(np.abs(errors)), rel=1e-5)
    assert found.ndcg == pytest.approx(np.mean(ndcgs))
    assert found.recall == pytest.approx(np.mean(recalls))
    assert found.item_coverage == len({item for each in lists for item in each}) / 60
    counts = np.bincount(train.by_user.columns, minlength=60)
    assert found.novelty == pytest.approx(
        np.mean([-math.log2(max(1, counts[item]) / 40) for each in lists for item in each])
    )


def test_a_solver_that_only_ranks_has_no_errors() -> None:
    ratings = random_ratings(users=40, items=60, density=0.4)
    fit, lists = made_up(ratings), ("ndcg", "recall", "item_coverage", "novelty")
    train, test = random_split(ratings, 0.4, 0)
    whole, found = (accuracy(fit, train, test, predicts_ratings=each) for each in (True, False))
    assert found.rmse is None and found.mae is None and set(found.rmse_by_activity) == {None}
    assert all(getattr(found, name) == getattr(whole, name) is not None for name in lists)


def test_an_item_without_training_ratings_counts_as_rated_by_one_user() -> None:
    ratings = load((np.arange(8), np.arange(8), np.full(8, 5.0)), scale="1:5:1")
    train = ratings.select(np.arange(8) < 4)
    found = accuracy(made_up(ratings), train, ratings)
    assert found.novelty == 2 and found.item_coverage == 1


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
    assert found.ndcg is None and found.recall is None and present(found.rmse) > 0


def slow_error(fit: Fit, ratings: Ratings) -> float:
    """RMSE by ids, one rating at a time."""
    model = fit.model
    users, items = (
        {
            each: (float(axis.biases[row]), axis.factors[row].astype(float))
            for row, each in enumerate(axis.ids.to_list())
        }
        for axis in (model.user_profiles, model.item_profiles)
    )
    empty = (0.0, np.zeros(model.factor_count))
    errors = []
    for user, item, value in ratings.to_frame().iter_rows():
        (bias, factors), (other, others) = users.get(user, empty), items.get(item, empty)
        errors.append(np.clip(model.mean + bias + other + factors @ others, 1, 5) - value)
    return math.sqrt(np.mean(np.square(errors)))


def shifted(ratings: Ratings, users: int = 0, items: int = 0) -> Ratings:
    """The same ratings under other ids."""
    frame = ratings.to_frame()
    moved = frame.with_columns(pl.col("user_id") + users, pl.col("item_id") + items)
    return load(moved, scale=str(ratings.scale))


@pytest.mark.parametrize(("users", "items"), [(0, 0), (7, 0), (0, 3), (7, 3), (0, 100), (100, 0)])
def test_ratings_are_matched_by_id(users: int, items: int) -> None:
    """Other users and items in the same numbers are not taken for those of the fit."""
    ratings = random_ratings(users=40, items=20)
    fit, test = made_up(ratings), shifted(ratings, users, items)
    found = held_out_error(fit, test)
    assert test.shape == ratings.shape
    assert found.rmse == pytest.approx(slow_error(fit, test), rel=1e-5)
    assert (found.unknown_users, found.unknown_items) == (min(users, 40), min(items, 20))
    assert found.ratings == len(test) and 0 < found.mae <= found.rmse


def test_ids_without_ratings_are_not_counted_as_unknown() -> None:
    ratings = random_ratings(users=40, items=20)
    others = shifted(ratings, 100, 100)
    both = load(pl.concat([ratings.to_frame(), others.to_frame()]), scale="1:5:1")
    known = both.select(both.to_frame()["user_id"].to_numpy() <= 40)
    fit = made_up(ratings)
    assert held_out_error(fit, known) == held_out_error(fit, ratings)


def test_ids_may_be_numbers_in_the_model_and_text_in_the_ratings() -> None:
    ratings = random_ratings(users=40, items=20)
    frame = ratings.to_frame().with_columns(pl.col("user_id", "item_id").cast(pl.String))
    text = load(frame, scale="1:5:1")
    fit = made_up(ratings)
    for one, two in ((fit, text), (made_up(text), ratings)):
        found = held_out_error(one, two)
        same = held_out_error(one, ratings if two is text else text)
        assert found.rmse == pytest.approx(same.rmse, rel=1e-12)
        assert found.unknown_users == found.unknown_items == 0
    # "01" is not 1, and "x" is no number: both are unknown.
    odd = frame.with_columns(
        pl.col("user_id").replace({"1": "01", "2": "x"}), pl.col("rating").cast(pl.Float64)
    )
    assert held_out_error(fit, load(odd, scale="1:5:1")).unknown_users == 2


def test_rmse_warns_of_unknown_ids() -> None:
    ratings = random_ratings()
    fit, test = made_up(ratings), shifted(ratings, 3)
    with pytest.warns(UnknownIds, match="held_out_error"):
        found = rmse(fit, test)
    assert found == held_out_error(fit, test).rmse


def test_users_of_a_model_without_users_are_predicted_from_items() -> None:
    ratings = random_ratings()
    fit = made_up(ratings)
    items_only = replace(fit.model, users=None)
    found = held_out_error(items_only, ratings)
    biases = fit.model.item_profiles.biases[ratings.by_user.columns]
    errors = np.clip(np.float32(3.2) + biases, 1, 5) - ratings.values()
    assert found.rmse == pytest.approx(math.sqrt(np.mean(errors**2)), rel=1e-5)
    assert (found.unknown_users, found.unknown_items) == (30, 0)
    # The private users of a fit are known to their owner.
    whole = replace(fit, model=items_only, private_users=fit.model.users)
    assert held_out_error(whole, ratings) == held_out_error(fit.model, ratings)


def test_ratings_without_a_known_id_are_refused() -> None:
    ratings = random_ratings()
    fit = made_up(ratings)
    with pytest.raises(InvalidParameter, match="same ids"):
        held_out_error(fit, shifted(ratings, 1000, 1000))
    with pytest.raises(InvalidParameter, match="no ratings"):
        held_out_error(fit, ratings.select(np.zeros(len(ratings), dtype=np.bool_)))


@pytest.mark.parametrize("seed", range(3))
def test_accuracy_does_not_depend_on_the_order_of_ids(seed: int) -> None:
    """Test ratings have fewer ids than the model, whose rows are in any order."""
    ratings = random_ratings(seed, users=40, items=60, density=0.1)
    train, test = random_split(ratings, 0.2, seed)
    fit, random = made_up(ratings, seed), np.random.default_rng(seed)
    users, items = (
        axis.take(random.permutation(len(axis)))
        for axis in (fit.model.user_profiles, fit.model.item_profiles)
    )
    few = load(test.to_frame(), scale="1:5:1")
    assert few.shape < test.shape
    expected = accuracy(fit, train, test)
    assert accuracy(fit, load(train.to_frame(), scale="1:5:1"), few) == expected
    found = accuracy(replace(fit.model, users=users, items=items), train, few)
    assert found.rmse == pytest.approx(expected.rmse) and found.ndcg == pytest.approx(expected.ndcg)
    assert found.recall == pytest.approx(expected.recall)
    for name in BAND_METRICS:
        assert getattr(found, name) == pytest.approx(getattr(expected, name)), name


def test_an_unknown_user_is_ranked_like_an_empty_profile() -> None:
    ratings = random_ratings(3, users=40, items=60, density=0.4)
    train, test = random_split(ratings, 0.4, 3)
    model = made_up(ratings).model
    users = model.user_profiles
    emptied = replace(users, biases=users.biases.copy(), factors=users.factors.copy())
    emptied.biases[5] = 0
    emptied.factors[5] = 0
    without = replace(model, users=users.take(np.delete(np.arange(40), 5)))
    found = accuracy(without, train, test)
    assert found.unknown_users == 1
    assert replace(found, unknown_users=0) == accuracy(replace(model, users=emptied), train, test)


def test_an_unknown_item_is_never_found() -> None:
    ratings = load((np.arange(4), np.arange(4), np.full(4, 5.0)), scale="1:5:1")
    model = made_up(ratings).model
    train = ratings.select(np.zeros(4, dtype=np.bool_))
    assert accuracy(model, train, ratings).recall == 1
    rest = replace(model, items=model.item_profiles.take(np.array([2, 0, 1])))
    found = accuracy(rest, train, ratings)
    assert found.recall == 0.75 and found.unknown_items == 1
    assert accuracy(replace(model, items=None), train, ratings).recall is None


def test_coverage_is_matched_by_id_and_needs_known_ids() -> None:
    model = factor_model(users=30, items=30)
    pairs = np.arange(10, 100, 3)
    values = np.tile([1.0, 3.0, 5.0], 10)
    ratings = load((pairs, pairs, values), scale="1:5:1")
    expected = coverage(model, ratings, [0.5, 0.9])
    order = np.arange(30)[::-1]
    turned = replace(
        model, users=model.user_profiles.take(order), items=model.item_profiles.take(order)
    )
    assert coverage(turned, ratings, [0.5, 0.9]) == expected
    with pytest.raises(InvalidParameter, match="no standard deviations"):
        coverage(model, shifted(ratings, 3), [0.5])
