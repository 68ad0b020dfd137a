"""Reasons for items of lists, compared with slow references."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from taciturn.errors import InvalidParameter
from taciturn.model.factor_model import FactorModel
from taciturn.model.known_items import KnownItems
from taciturn.model.ranking import Ranking
from taciturn.model.reasons import PARTS, REMAINING, Reason
from taciturn.model.score import By, Score
from taciturn.model.similarity import compared_by, has_factors, unit_factors
from tests.model.helpers import INTEREST, factor_model, with_interest
from tests.narrow import present

MODEL = with_interest(factor_model(users=6, items=40))
LARGE = with_interest(factor_model(users=6, items=400))
ROWS = np.arange(6)


def listed(
    model: FactorModel, score: Score, known: KnownItems, titles: pl.Series | None = None
) -> tuple[npt.NDArray[np.int32], list[list[Reason]]]:
    """Lists of five items for all users, and their reasons."""
    ranking = Ranking(model=model, threads=1, titles=titles)
    items, _ = ranking.best(model, ROWS, 5, score, known)
    lists = [(int(user), items[user]) for user in ROWS]
    found = ranking.reasons(score).of_lists(score.users(model, ROWS), lists, known)
    return items, [found[5 * user : 5 * user + 5] for user in ROWS]


def cosine(one: npt.NDArray[np.float32], two: npt.NDArray[np.float32]) -> float:
    return float(one @ two / np.linalg.norm(one) / np.linalg.norm(two))


def factors_of(model: FactorModel, by: By) -> npt.NDArray[np.float32]:
    profiles = model.item_profiles
    return present(profiles.interests)[:, 1:] if by is By.INTEREST else profiles.factors


@pytest.mark.parametrize("by", By)
@pytest.mark.parametrize("model", [MODEL, LARGE])
def test_nearest_liked_items_are_found_by_cosine(by: By, model: FactorModel) -> None:
    random, count = np.random.default_rng(1), len(model.item_profiles)
    sizes = (0, 1, 2, 5, 9, 20)
    liked = [np.sort(random.choice(count, size=size, replace=False)) for size in sizes]
    known = KnownItems.of_pairs(
        np.repeat(ROWS, [len(each) for each in liked]), np.concatenate(liked), 6
    )
    items, reasons = listed(model, Score.of(model, by), known)
    vectors, ids = factors_of(model, by), model.item_profiles.ids
    far = 0
    for user in ROWS:
        for item, reason in zip(items[user], reasons[user], strict=True):
            cosines = {each: cosine(vectors[item], vectors[each]) for each in liked[user]}
            near = sorted(cosines, key=lambda each: -cosines[each])[:2]
            others = sorted(
                (cosine(vectors[item], vectors[each]) for each in range(count) if each != item),
                reverse=True,
            )
            least = max(0.5, others[49] if count > 50 else 0) - 1e-6
            far += sum(0 < cosines[each] < least for each in near)
            near = [int(each) for each in near if cosines[each] >= least]
            assert reason.because == tuple(ids[each] for each in near)
            if near:
                names = " and ".join(f"item {each}" for each in reason.because)
                assert reason.text == f"similar to {names}"
    assert any(reason.because for each in reasons for reason in each) and far


def test_items_that_a_user_disliked_are_no_reason() -> None:
    """Also if they are rated at the user's median."""
    rows, score = np.arange(40), Score.of(MODEL)
    for value, is_liked in ((5.0, True), (3.0, False), (1.0, False)):
        known = KnownItems.of_pairs(0 * rows, rows, 6, pl.Series([value] * 40))
        reasons = Ranking(model=MODEL, threads=1).reasons(score)
        found = reasons.of_lists(score.users(MODEL, ROWS), [(0, np.array([4, 7]))], known)
        assert all(bool(each.because) == is_liked for each in found)


def parts(model: FactorModel, score: Score, user: int, item: int) -> list[float]:
    """Popularity, interest factors and rating of a score, term by term."""
    users, items = model.user_profiles, model.item_profiles
    mine, its = present(users.interests)[user], present(items.interests)[item]
    rating = float(model.score_rows(np.array([user]), np.array([item]))[0])
    if score.by is By.RATING:
        return [0.0, 0.0, rating]
    return [
        score.popularity_weight * float(mine[0] * its[0]),
        float(mine[1:] @ its[1:]),
        INTEREST.rating_weight * rating,
    ]


@pytest.mark.parametrize(
    "score",
    [
        Score(by=By.RATING),
        Score(by=By.INTEREST),
        Score(by=By.INTEREST, popularity_weight=0.25),
        Score(by=By.INTEREST, popularity_weight=0.0),
    ],
)
def test_without_liked_items_the_largest_part_is_the_reason(score: Score) -> None:
    items, reasons = listed(MODEL, score, KnownItems.none(6))
    ranking = Ranking(model=MODEL, threads=1).reasons(score)
    for user in ROWS:
        whole = np.array([parts(MODEL, score, int(user), item) for item in range(40)])
        excess = (whole - whole.mean(axis=0))[items[user]]
        profile = score.users(MODEL, ROWS[user : user + 1])[0]
        assert np.allclose(ranking.parts(profile, items[user]), excess, atol=1e-5)
        expected = [PARTS[row.argmax()] if row.max() > 1e-9 else REMAINING for row in excess]
        assert [reason.text for reason in reasons[user]] == expected
        assert not any(reason.because for reason in reasons[user])


def test_every_part_can_be_the_reason() -> None:
    _, reasons = listed(MODEL, Score.of(MODEL), KnownItems.none(6))
    assert {reason.text for each in reasons for reason in each} >= set(PARTS[1:])
    quiet = replace(MODEL.user_profiles, factors=0 * MODEL.user_profiles.factors)
    interests = present(quiet.interests).copy()
    interests[:, 0], interests[:, 1:] = 9, 0
    _, reasons = listed(
        replace(MODEL, users=replace(quiet, interests=interests)),
        Score.of(MODEL),
        KnownItems.none(6),
    )
    assert {reason.text for each in reasons for reason in each} == {PARTS[0]}


def test_an_item_worse_than_average_is_not_praised() -> None:
    score = Score.of(MODEL, By.RATING)
    worst = np.array([np.argmin(MODEL.score_rows(np.zeros(40, dtype=int), np.arange(40)))])
    reasons = Ranking(model=MODEL, threads=1).reasons(score)
    (found,) = reasons.of_lists(score.users(MODEL, ROWS), [(0, worst)], KnownItems.none(6))
    assert found.text == REMAINING


def test_titles_name_the_items_of_a_reason() -> None:
    known = KnownItems.of_pairs(np.zeros(40, dtype=int), np.arange(40), 6)
    titles = pl.Series([None if row % 2 else f"Title {row}" for row in range(40)])
    score = Score.of(MODEL)
    reasons = Ranking(model=MODEL, threads=1, titles=titles).reasons(score)
    found = reasons.of_lists(score.users(MODEL, ROWS), [(0, np.array([4, 7]))], known)
    # An item is the nearest to itself.
    assert found[0].text.startswith("similar to Title 4 and ")
    assert found[1].text.startswith(f"similar to item {MODEL.item_profiles.ids[7]} and ")


def test_popularity_alone_leaves_rating_factors_to_compare() -> None:
    model = with_interest(factor_model(users=6, items=40), columns=1)
    assert not has_factors(model, By.INTEREST) and compared_by(model) is By.RATING
    known = KnownItems.of_pairs(np.zeros(3, dtype=int), np.arange(3), 6)
    _, reasons = listed(model, Score.of(model), known)
    _, expected = listed(model, Score.of(model, By.RATING), known)
    assert any(reason.because for reason in reasons[0]) and len(expected[0]) == 5
    with pytest.raises(InvalidParameter, match="no interest factors"):
        compared_by(model, "interest")


def test_items_are_compared_by_what_they_have() -> None:
    assert compared_by(MODEL) is By.INTEREST and compared_by(MODEL, "rating") is By.RATING
    assert compared_by(MODEL.without_interest()) is By.RATING
    bare = with_interest(factor_model(width=0))
    assert compared_by(bare) is By.INTEREST
    with pytest.raises(InvalidParameter, match="no rating factors"):
        compared_by(bare, "rating")
    for by in (None, *By):
        with pytest.raises(InvalidParameter, match="have no factors, so items cannot"):
            compared_by(bare.without_interest(), by)
    with pytest.raises(InvalidParameter, match="must be one of interest, rating"):
        compared_by(MODEL, "popularity")


def test_a_vector_of_zeros_is_similar_to_nothing() -> None:
    items = MODEL.item_profiles
    factors = items.factors.copy()
    factors[3] = 0
    unit = unit_factors(replace(MODEL, items=replace(items, factors=factors)), By.RATING)
    assert not unit[3].any()
    assert np.allclose(np.linalg.norm(np.delete(unit, 3, axis=0), axis=1), 1, atol=1e-6)
