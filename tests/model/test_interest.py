"""Interest vectors, folding in, and the ranking score."""

import numpy as np
import polars as pl
import pytest

from taciturn import Scale
from taciturn.errors import InvalidParameter
from taciturn.model.factor_model import FactorModel
from taciturn.model.interest import Interest, InterestItems, popularity_alone
from taciturn.model.profiles import Profiles
from taciturn.model.score import By, Score
from tests.narrow import present

INTEREST = Interest(rating_weight=0.5, unseen_weight=0.3, regularization=0.02)


def small_model(users: int = 5, items: int = 9, factors: int = 2, columns: int = 4) -> FactorModel:
    random = np.random.default_rng(3)

    def profiles(count: int, offset: int) -> Profiles:
        return Profiles(
            ids=pl.Series(range(offset, offset + count)),
            biases=random.normal(size=count).astype(np.float32),
            factors=random.normal(size=(count, factors)).astype(np.float32),
            interests=random.normal(size=(count, columns)).astype(np.float32),
        )

    return FactorModel(
        scale=Scale.parse("1:5:1"),
        mean=3.5,
        users=profiles(users, 100),
        items=profiles(items, 0),
        interest=INTEREST,
    )


def objective(y: np.ndarray, vectors: np.ndarray, seen: list[int]) -> float:
    """Objective of folding in, term by term."""
    total = sum((1 - float(vectors[i] @ y)) ** 2 for i in seen)
    total += INTEREST.unseen_weight * sum(float(row @ y) ** 2 for row in vectors)
    weight = len(seen) + INTEREST.unseen_weight * len(vectors)
    return total + INTEREST.regularization * weight * float(y @ y)


def test_fold_in_minimises_its_objective_up_to_scale() -> None:
    items = small_model().interest_items
    assert items is not None
    vectors, seen = items.vectors.astype(np.float64), [1, 4, 6]
    found = items.coefficients(np.array(seen), INTEREST).astype(np.float64)
    scores = vectors @ found
    assert scores.std() == pytest.approx(1, rel=1e-5)
    # The best multiple of the solution minimises the quadratic: no small change improves it.
    grid = np.linspace(0.001, 3, 30_000)
    best = found * grid[np.argmin([objective(found * each, vectors, seen) for each in grid])]
    random = np.random.default_rng(0)
    for _ in range(50):
        step = best + 0.01 * random.normal(size=best.size)
        assert objective(step, vectors, seen) > objective(best, vectors, seen) - 1e-6


def test_user_without_items_gets_popularity_alone() -> None:
    items = InterestItems.of(present(small_model().item_profiles.interests))
    found = items.coefficients(np.empty(0, dtype=np.int64), INTEREST)
    assert found[0] > 0
    assert not found[1:].any()
    assert (items.vectors @ found).std() == pytest.approx(1, rel=1e-5)


def test_items_that_all_have_one_popularity_leave_a_user_without_interest() -> None:
    items = InterestItems.of(np.ones((4, 1), dtype=np.float32))
    assert not items.coefficients(np.array([2]), INTEREST).any()


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
def test_score_is_interest_plus_weighted_rating(weight: float) -> None:
    model = small_model()
    score = Score.of(model, popularity_weight=weight)
    factors, biases = score.items(model, model.item_profiles)
    rows = np.arange(len(model.user_profiles))
    found = score.users(model, rows) @ factors.T + biases + score.offsets(model, rows)[:, None]
    for user in rows:
        for item in range(len(model.item_profiles)):
            one = present(model.user_profiles.interests)[user]
            two = present(model.item_profiles.interests)[item]
            interest = weight * one[0] * two[0] + float(one[1:] @ two[1:])
            rating = float(model.score_rows(np.array([user]), np.array([item]))[0])
            assert found[user, item] == pytest.approx(interest + 0.5 * rating, abs=1e-5)


def test_score_by_rating_is_the_predicted_rating() -> None:
    model = small_model()
    score = Score.of(model, By.RATING)
    factors, biases = score.items(model, model.item_profiles)
    rows = np.arange(len(model.user_profiles))
    found = score.users(model, rows) @ factors.T + biases + score.offsets(model, rows)[:, None]
    pairs = np.repeat(rows, 9), np.tile(np.arange(9), len(rows))
    assert np.allclose(found.ravel(), model.score_rows(*pairs), atol=1e-5)


def test_default_score_follows_from_the_model() -> None:
    model = small_model()
    assert Score.of(model).by is By.INTEREST
    assert Score.of(model.without_interest()).by is By.RATING


@pytest.mark.parametrize("weight", [-0.1, 1.5, float("nan")])
def test_popularity_weight_outside_its_range_is_refused(weight: float) -> None:
    with pytest.raises(InvalidParameter, match="popularity"):
        Score.of(small_model(), popularity_weight=weight)


def test_interest_of_a_model_without_any_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="has no interest"):
        Score.of(small_model().without_interest(), "interest")


def test_popularity_weight_by_rating_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="applies to interest"):
        Score.of(small_model(), "rating", popularity_weight=0.5)


def test_profiles_and_model_must_agree_on_interest() -> None:
    model = small_model()
    bare = model.without_interest().users
    with pytest.raises(InvalidParameter, match="exactly if"):
        FactorModel(
            scale=model.scale, mean=0.0, users=bare, items=model.items, interest=model.interest
        )


def test_fold_in_gives_an_interest_vector_and_with_user_takes_it() -> None:
    model = small_model()
    folded = model.fold_in({0: 5.0, 3: 2.0})
    assert folded.interest is not None
    served = model.with_user(folded.bias, folded.factors, interest=folded.interest)
    assert np.array_equal(present(served.user_profiles.interests)[0], folded.interest)
    assert model.with_user(folded.bias, folded.factors).interest is None


def test_popularity_alone_has_one_coefficient() -> None:
    assert popularity_alone(3).tolist() == [1.0, 0.0, 0.0]
