"""The session of a data scientist: a pandas table, a fit, lists, predictions, errors."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import taciturn
from taciturn.errors import InvalidParameter

BUDGET = taciturn.Budget.from_epsilon(2, delta=1e-5)


def table() -> Any:
    """Ratings of 40 users and 30 items as a pandas table whose index does not start at 0."""
    random = np.random.default_rng(5)
    rows, columns = np.nonzero(random.random((40, 30)) < 0.5)
    frame = pd.DataFrame({"user": rows + 1, "movie": columns + 100})
    frame["stars"] = random.integers(1, 6, len(frame)).astype(float)
    return frame.sample(frac=1, random_state=1)


@pytest.fixture(scope="module")
def frame() -> Any:
    return table()


@pytest.fixture(scope="module")
def ratings(frame: Any) -> taciturn.Ratings:
    return taciturn.load(frame, scale="1:5:1")


@pytest.fixture(scope="module")
def fit(ratings: taciturn.Ratings) -> taciturn.Fit:
    return taciturn.AlsSolver(unit="value", factors=2, iterations=2).fit(ratings, BUDGET)


def seen(frame: Any, user: int) -> set[int]:
    return set(frame.loc[frame.user == user, "movie"])


@pytest.mark.parametrize("kind", [int, np.int64, str])
def test_one_user_needs_no_list(fit: taciturn.Fit, kind: Any) -> None:
    assert fit.recommend(kind(7), 4).equals(fit.recommend([7], 4))


@pytest.mark.parametrize("kind", [list, tuple, np.array, pl.Series, range, pd.Series, pd.Index])
def test_several_users_come_in_any_container(fit: taciturn.Fit, kind: Any) -> None:
    users = range(3, 6) if kind is range else kind([3, 4, 5])
    found = fit.recommend(users, 2)
    assert list(found["user_id"]) == [3, 3, 4, 4, 5, 5]
    assert isinstance(found, pd.DataFrame if kind in (pd.Series, pd.Index) else pl.DataFrame)


def test_rated_items_are_left_out_when_ratings_are_given(
    fit: taciturn.Fit, ratings: taciturn.Ratings, frame: Any
) -> None:
    found = fit.recommend([9, 2], 30, exclude=ratings)
    for user in (2, 9):
        listed = set(found.filter(pl.col("user_id") == user)["item_id"])
        assert listed == set(range(100, 130)) - seen(frame, user)
    assert len(fit.recommend(9, 30)) == 30


@pytest.mark.parametrize("kind", ["pandas", "polars", "ratings"])
def test_pairs_to_exclude_come_in_any_table(
    fit: taciturn.Fit, ratings: taciturn.Ratings, frame: Any, kind: str
) -> None:
    polars = ratings.to_frame()
    exclude = {"pandas": frame, "polars": polars, "ratings": ratings}[kind]
    for server in (fit, taciturn.Recommender(fit), taciturn.Recommender(fit.model)):
        found = server.recommend(9, 30, exclude=exclude)
        assert isinstance(found, pd.DataFrame if kind == "pandas" else pl.DataFrame)
        assert set(found["item_id"]) == set(range(100, 130)) - seen(frame, 9)


@pytest.mark.parametrize("kind", ["pandas", "ratings"])
def test_reasons_name_items_that_the_user_rated_highly(
    fit: taciturn.Fit, ratings: taciturn.Ratings, frame: Any, kind: str
) -> None:
    mine = frame[frame.user == 9]
    liked = set(mine.loc[mine.stars >= mine.stars.median(), "movie"])
    assert 0 < len(liked) < len(mine)
    for server in (fit, taciturn.Recommender(fit)):
        found = server.recommend(
            9, 30, exclude=frame if kind == "pandas" else ratings, explain=True
        )
        named = {item for because in found["because"] for item in because}
        assert named and named <= liked


def test_a_pandas_list_holds_the_same_as_a_polars_list(fit: taciturn.Fit) -> None:
    found = fit.recommend(pd.Series([3, 4]), 3)
    assert found.to_dict("list") == fit.recommend([3, 4], 3).to_dict(as_series=False)


def test_one_pair_is_predicted_as_a_number(fit: taciturn.Fit, frame: Any) -> None:
    one = fit.predict(7, 105)
    assert isinstance(one, float) and one == fit.predict([7], [105])[0]
    predicted = fit.predict(frame.user, frame.movie)
    assert predicted.shape == (len(frame),)
    assert taciturn.Recommender(fit).predict(7, 105) == one == fit.model.predict(7, 105)
    with pytest.raises(InvalidParameter, match="equal lengths"):
        fit.predict([7, 8], [105])


def test_an_owner_recommends_to_users_that_a_release_cannot_hold(
    ratings: taciturn.Ratings,
) -> None:
    protected = taciturn.BiasSolver(unit="user").fit(ratings, BUDGET)
    with pytest.warns(taciturn.NotPersonalised):
        assert len(protected.recommend(7, 3)) == 3
    with pytest.raises(InvalidParameter, match="no user profiles"):
        taciturn.Recommender(protected).recommend(7, 3)


def test_errors_of_a_release_are_those_of_its_model(
    fit: taciturn.Fit, ratings: taciturn.Ratings, tmp_path: Path
) -> None:
    release = taciturn.load_release(taciturn.save(fit, tmp_path / "release"))
    assert taciturn.rmse(release, ratings) == taciturn.rmse(fit, ratings)


API: Any = taciturn
"""The public interface without its types: wrong types are the subject here."""

WRONG_CALLS = [
    (lambda frame, ratings, fit: API.train(frame, output="x"), r"taciturn\.load\(table"),
    (lambda frame, ratings, fit: API.train(ratings, 10, output="x"), "Budget.from_epsilon"),
    (lambda frame, ratings, fit: API.train(ratings, BUDGET, output="x"), "budget="),
    (lambda frame, ratings, fit: API.train(ratings, budget=2, output="x"), "from_epsilon"),
    (lambda frame, ratings, fit: API.AlsSolver().fit(frame, BUDGET), r"taciturn\.load"),
    (lambda frame, ratings, fit: API.AlsSolver().fit(ratings, 2), "from_epsilon"),
    (lambda frame, ratings, fit: API.rmse(fit, frame), r"taciturn\.load\(table"),
    (lambda frame, ratings, fit: API.rmse(ratings, fit), "a fit or a FactorModel"),
    (lambda frame, ratings, fit: API.Recommender("release"), "load_release"),
    (lambda frame, ratings, fit: API.save(ratings, "x"), "a solver's fit"),
    (lambda frame, ratings, fit: fit.recommend(frame), "ids"),
]


@pytest.mark.parametrize(("call", "hint"), WRONG_CALLS)
def test_a_wrong_argument_is_answered_with_what_to_pass(
    call: Any, hint: str, fit: taciturn.Fit, ratings: taciturn.Ratings, frame: Any
) -> None:
    with pytest.raises(taciturn.TaciturnError, match=hint) as caught:
        call(frame, ratings, fit)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 200


def test_a_message_shows_no_value_of_a_table(ratings: taciturn.Ratings) -> None:
    private = pd.DataFrame({"user": ["someone-private"], "item": [1], "rating": [5]})
    for wrong in (private, pl.DataFrame(private.to_dict("list")), [private], {"a": 417}):
        for call in (
            lambda wrong=wrong: taciturn.AlsSolver(factors=wrong),
            lambda wrong=wrong: taciturn.train(wrong, output="x"),
            lambda wrong=wrong: taciturn.Budget.from_epsilon(wrong, 1e-5),
        ):
            with pytest.raises(InvalidParameter) as caught:
                call()
            assert "someone" not in str(caught.value) and "417" not in str(caught.value)
