"""Lists by interest and by rating, compared with scoring every pair."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pytest

from taciturn.errors import InvalidParameter, NotPersonalised
from taciturn.model.factor_model import FactorModel
from taciturn.model.score import By
from taciturn.model.top_k import ItemIndex
from taciturn.recommend.serve import Recommender
from taciturn.solvers.catalog import make_solver
from taciturn.solvers.contract import Fit
from tests.model.helpers import INTEREST, factor_model, profiles, with_interest
from tests.narrow import present
from tests.release.helpers import small_fit
from tests.solvers.helpers import BUDGET, random_ratings

MODEL = with_interest(factor_model(users=20, items=60))


def scores(model: FactorModel, by: By, popularity_weight: float = 1.0) -> npt.NDArray[np.float64]:
    """Score of every pair, term by term; by interest, less the user's mean over the items."""
    users, items = model.user_profiles, model.item_profiles
    ratings = np.array(
        [
            model.score_rows(np.full(len(items), user), np.arange(len(items)))
            for user in range(len(users))
        ],
        dtype=np.float64,
    )
    if by is By.RATING:
        return ratings
    mine = present(users.interests).astype(np.float64)
    mine[:, 0] *= popularity_weight
    found: npt.NDArray[np.float64] = mine @ present(items.interests).T.astype(np.float64)
    found += INTEREST.rating_weight * ratings
    found -= found.mean(axis=1, keepdims=True)
    return found


def assert_lists(found: pl.DataFrame, expected: npt.NDArray[np.float64], count: int) -> None:
    order = np.argsort(-expected, axis=1)[:, :count]
    ids = MODEL.item_profiles.ids.gather(order.ravel())
    assert found["item_id"].to_list() == ids.to_list()
    best = np.take_along_axis(expected, order, axis=1).ravel()
    assert np.allclose(found["score"].to_numpy(), best, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "by", "weight"),
    [
        ({}, By.INTEREST, 1.0),
        ({"by": "interest"}, By.INTEREST, 1.0),
        ({"by": By.RATING}, By.RATING, 1.0),
        ({"popularity_weight": 0.3}, By.INTEREST, 0.3),
        ({"popularity_weight": 0}, By.INTEREST, 0.0),
    ],
)
def test_lists_have_the_order_asked_for(options: dict[str, Any], by: By, weight: float) -> None:
    found = Recommender(MODEL).recommend(MODEL.user_profiles.ids, 7, **options)
    assert_lists(found, scores(MODEL, by, weight), 7)
    assert found.columns == ["user_id", "item_id", "score", "rank"]


def test_an_owner_has_both_orders_of_a_fit() -> None:
    fit = replace(small_fit(), model=MODEL)
    users = MODEL.user_profiles.ids
    assert_lists(fit.recommend(users, 7), scores(MODEL, By.INTEREST), 7)
    assert_lists(fit.recommend(users, 7, by="rating"), scores(MODEL, By.RATING), 7)
    low = fit.recommend(users, 7, popularity_weight=0.5, explain=True)
    assert_lists(low, scores(MODEL, By.INTEREST, 0.5), 7)
    assert low.columns[-2:] == ["because", "reason"]


def test_by_rating_the_score_is_the_prediction_and_predict_never_changes() -> None:
    both, ratings = Recommender(MODEL), Recommender(MODEL.without_interest())
    users, items = MODEL.user_profiles.ids, MODEL.item_profiles.ids[:20]
    assert np.array_equal(both.predict(users, items), ratings.predict(users, items))
    assert both.recommend(users, 7, by="rating").equals(ratings.recommend(users, 7))


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Widths of the item indexes that are built."""
    widths: list[int] = []
    build = ItemIndex.__init__

    def counted(self: ItemIndex, *arrays: Any, **options: Any) -> None:
        interests = options["interests"]
        widths.append(arrays[0].shape[1] + (0 if interests is None else interests.shape[1]))
        build(self, *arrays, **options)

    monkeypatch.setattr(ItemIndex, "__init__", counted)
    return widths


def serve(server: Recommender | Fit) -> None:
    for options in ({}, {"by": "rating"}, {"popularity_weight": 0.5}, {"explain": True}) * 2:
        server.recommend([10, 13], 3, **options)


@pytest.mark.parametrize("kind", [Recommender, lambda model: replace(small_fit(), model=model)])
def test_one_index_is_built_for_each_order_when_it_is_first_used(
    kind: Callable[[FactorModel], Recommender | Fit], built: list[int]
) -> None:
    server = kind(MODEL)
    assert built == []
    serve(server)
    assert built == [MODEL.interest_count + MODEL.factor_count, MODEL.factor_count]


def test_profiles_share_the_indexes_of_users(built: list[int]) -> None:
    recommender = Recommender(MODEL)
    mine = recommender.fold_in({10: 5.0, 16: 2.0})
    for _ in range(3):
        recommender.recommend_profile(mine.bias, mine.factors, 3, interest=mine.interest)
        recommender.recommend_profile(mine.bias, mine.factors, 3)
    assert sorted(built) == [MODEL.factor_count, MODEL.interest_count + MODEL.factor_count]


@pytest.mark.parametrize("weight", [1.0, 0.4])
def test_a_profile_of_a_user_gets_the_list_of_the_user(weight: float) -> None:
    recommender, users = Recommender(MODEL), MODEL.user_profiles
    row = present(users.interests)[4]
    mine = float(users.biases[4]), users.factors[4]
    found = recommender.recommend_profile(*mine, 9, interest=row, popularity_weight=weight)
    table = recommender.recommend(users.ids[4], 9, popularity_weight=weight)
    assert [each.item_id for each in found] == table["item_id"].to_list()
    assert [each.score for each in found] == table["score"].to_list()
    assert {each.by for each in found} == {By.INTEREST}
    for interest, by in ((row, "rating"), (None, "rating"), (None, None)):
        found = recommender.recommend_profile(*mine, 9, interest=interest, by=by)
        table = recommender.recommend(users.ids[4], 9, by="rating")
        assert [each.item_id for each in found] == table["item_id"].to_list()
        assert {each.by for each in found} == {By.RATING}


def test_a_profile_without_interest_is_not_ranked_by_it() -> None:
    recommender = Recommender(MODEL)
    zeros = np.zeros(MODEL.factor_count, dtype=np.float32)
    wrong: tuple[dict[str, Any], ...] = ({"by": "interest"}, {"popularity_weight": 0.5})
    for options in wrong:
        with pytest.raises(InvalidParameter, match="pass interest, which fold_in returns"):
            recommender.recommend_profile(0.0, zeros, **options)
    for vector in ([1.0], [np.nan] * MODEL.interest_count, "text"):
        with pytest.raises(InvalidParameter, match="interest vector of this model must have 4"):
            recommender.recommend_profile(0.0, zeros, interest=vector)  # type: ignore[arg-type]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"by": "popularity"}, "by must be one of interest, rating"),
    ({"by": ""}, "by must be one of"),
    ({"popularity_weight": 1.5}, "popularity_weight must be between 0 and 1, got 1.5"),
    ({"popularity_weight": -0.1}, "must be between 0 and 1"),
    ({"popularity_weight": float("nan")}, "popularity_weight"),
    ({"by": "rating", "popularity_weight": 0.5}, "applies to interest"),
]


@pytest.mark.parametrize(("options", "words"), WRONG)
def test_orders_that_do_not_exist_are_refused(options: dict[str, Any], words: str) -> None:
    for server in (Recommender(MODEL), replace(small_fit(), model=MODEL)):
        with pytest.raises(InvalidParameter, match=words):
            server.recommend([10], 3, **options)


def test_a_model_without_interest_is_served_by_rating_only() -> None:
    recommender = Recommender(MODEL.without_interest())
    wrong: tuple[dict[str, Any], ...] = ({"by": "interest"}, {"popularity_weight": 0.5})
    for options in wrong:
        with pytest.raises(InvalidParameter, match="this model has no interest"):
            recommender.recommend([10], 3, **options)


def test_own_items_without_interest_are_served_by_rating() -> None:
    own = profiles(9, MODEL.factor_count, 77)
    for model in (MODEL, replace(MODEL, items=None)):
        recommender = Recommender(model, items=own)
        found = recommender.recommend([10], 4)
        bare = Recommender(MODEL.without_interest(), items=own)
        assert found.equals(bare.recommend([10], 4))
        assert {each.by for each in recommender.similar(10, 3)} == {By.RATING}
        wrong: tuple[dict[str, Any], ...] = ({"by": "interest"}, {"popularity_weight": 0.5})
        for options in wrong:
            with pytest.raises(InvalidParameter, match="your own item profiles have no interest"):
                recommender.recommend([10], 4, **options)
        mine = recommender.fold_in({10: 5.0})
        assert mine.interest is None
        assert len(recommender.recommend_profile(mine.bias, mine.factors, 4)) == 4


def test_own_items_with_interest_are_served_by_it() -> None:
    own = MODEL.item_profiles.take(np.arange(9))
    found = Recommender(MODEL, items=own).recommend([10], 4)
    expected = own.ids.gather(np.argsort(-scores(MODEL, By.INTEREST)[0, :9])[:4])
    assert found["item_id"].to_list() == expected.to_list()


@pytest.mark.parametrize(("by", "part"), [(None, By.INTEREST), *zip(By, By, strict=True)])
def test_similar_items_share_interest_or_rating_factors(by: By | None, part: By) -> None:
    items = MODEL.item_profiles
    vectors = present(items.interests)[:, 1:] if part is By.INTEREST else items.factors
    unit = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    cosines = unit @ unit[2]
    order = [row for row in np.argsort(-cosines) if row != 2][:4]
    found = Recommender(MODEL).similar(items.ids[2], 4, by=by)
    assert [each.item_id for each in found] == items.ids.gather(order).to_list()
    assert np.allclose([each.score for each in found], cosines[order], atol=1e-5)
    assert {each.by for each in found} == {part}


def test_a_series_of_items_is_left_out_of_every_list() -> None:
    recommender = Recommender(MODEL)
    best = recommender.recommend([10, 13], 5)
    left_out = pl.concat([best["item_id"], pl.Series([99999])])
    found = recommender.recommend([10, 13], 50, exclude=left_out)
    assert not set(found["item_id"]) & set(best["item_id"])
    assert len(found) == 2 * (60 - best["item_id"].n_unique())


def test_interest_alone_makes_lists_personal_and_ratings_then_do_not() -> None:
    recommender = Recommender(with_interest(factor_model(width=0)))
    assert recommender.is_personalised
    recommender.recommend([10, 13], 3)  # warnings are errors here
    with pytest.warns(NotPersonalised) as said:
        recommender.recommend([10, 13], 3, by="rating")
    assert said[0].filename == __file__


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_known_ratings_give_reasons_in_any_table(kind: str) -> None:
    ids = MODEL.item_profiles.ids
    seen = pl.DataFrame(
        {"user": [10] * 8 + [13], "item": [*ids[:8], ids[9]], "rating": [5, 5, 5, 5, 1, 1, 1, 1, 4]}
    )
    exclude: Any = seen if kind == "polars" else pd.DataFrame(seen.to_dict(as_series=False))
    recommender = Recommender(MODEL, titles={ids[0]: "The First"})
    found = recommender.recommend([13, 10, 16], 20, exclude=exclude, explain=True)
    assert [*found.columns][-2:] == ["because", "reason"]
    liked = {10: set(ids[:4]), 13: {ids[9]}, 16: set()}
    used: dict[int, set[int]] = {10: set(), 13: set(), 16: set()}
    for user, because, reason in zip(
        found["user_id"], found["because"], found["reason"], strict=True
    ):
        used[user] |= set(because)
        assert reason.startswith("similar to ") == (len(because) > 0)
        assert ("The First" in reason) == (ids[0] in set(because))
    assert used == liked
    # Without reasons, the table and its lists are the same.
    plain = recommender.recommend([13, 10, 16], 20, exclude=exclude)
    assert [*plain["item_id"]] == [*found["item_id"]] and "reason" not in plain.columns


@pytest.mark.parametrize("values", [["good", "bad"], [None, None], [[5], [1]], [True, False]])
def test_ratings_that_are_not_numbers_count_as_unknown(values: list[Any]) -> None:
    ids = MODEL.item_profiles.ids
    seen = pl.DataFrame({"user": [10, 10], "item": [*ids[:2]], "rating": values})
    recommender = Recommender(MODEL)
    found = recommender.recommend(10, 20, exclude=seen, explain=True)
    assert found.equals(recommender.recommend(10, 20, exclude=seen.drop("rating"), explain=True))
    assert {item for because in found["because"] for item in because} == {*ids[:2]}


def test_reasons_for_a_folded_in_user_name_what_the_user_liked() -> None:
    ids = MODEL.item_profiles.ids
    own: dict[int | str, float] = {ids[0]: 5.0, ids[3]: 4.0, ids[5]: 1.0}
    recommender = Recommender(MODEL)
    mine = recommender.fold_in(own)
    arguments: dict[str, Any] = {"interest": mine.interest, "ratings": own, "exclude": [ids[1]]}
    best = recommender.recommend_profile(mine.bias, mine.factors, 60, explain=True, **arguments)
    assert len(best) == 56 and not {*own, ids[1]} & {each.item_id for each in best}
    named = {item for each in best for item in each.because}
    assert named == {ids[0], ids[3]}
    plain = recommender.recommend_profile(mine.bias, mine.factors, 60, **arguments)
    assert plain == [replace(each, because=(), reason=None) for each in best]


@pytest.mark.filterwarnings("ignore::taciturn.errors.NotPersonalised")
@pytest.mark.parametrize("unit", ["value", "rating", "user"])
def test_popularity_predicts_no_ratings(unit: str) -> None:
    fit = make_solver("popularity", unit=unit).fit(random_ratings(), BUDGET)
    recommender = Recommender(fit)
    mine = recommender.fold_in({100: 4.0})
    profile = (mine.bias, mine.factors)
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: fit.predict(1, 101), "predicts no ratings"),
        (lambda: fit.model.predict(1, 101), "predicts no ratings"),
        (lambda: fit.recommend(1, by="rating"), "predicts no ratings"),
        (lambda: recommender.predict_profile(*profile, 101), "predicts no ratings"),
        (lambda: recommender.recommend_profile(*profile), "without an interest vector"),
        (lambda: fit.recommend(1, popularity_weight=0), "nothing to order items by"),
    ]
    if unit != "user":
        calls.append((lambda: recommender.predict([1], [101]), "predicts no ratings"))
    for call, words in calls:
        with pytest.raises(InvalidParameter, match=words):
            call()
    assert len(recommender.recommend_profile(*profile, 3, interest=mine.interest)) == 3


@pytest.mark.parametrize("exclude", [[28, 3], (28,), [], "seen.csv", 28, {28}])
def test_exclusions_of_another_kind_are_refused_by_name(exclude: Any) -> None:
    with pytest.raises(InvalidParameter, match="^exclude must be a table with a user and an item"):
        Recommender(MODEL).recommend([10], 2, exclude=exclude)


def test_nobody_can_be_folded_in_without_ratings() -> None:
    with pytest.raises(InvalidParameter, match="there are no ratings; pass at least one"):
        Recommender(MODEL).fold_in({})


def test_an_item_without_factors_has_no_similar_ones() -> None:
    items = MODEL.item_profiles
    vectors = present(items.interests).copy()
    vectors[2, 1:] = 0
    recommender = Recommender(replace(MODEL, items=replace(items, interests=vectors)))
    with pytest.raises(InvalidParameter, match="has no interest factors to compare"):
        recommender.similar(items.ids[2])
    assert recommender.similar(items.ids[2], by="rating") and recommender.similar(items.ids[3])
