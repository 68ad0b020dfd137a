"""Public id lists of users and items."""

import numpy as np
import polars as pl
import pytest

from taciturn.accounting.units import Unit
from taciturn.data import load
from taciturn.data.id_lists import with_id_lists
from taciturn.errors import InvalidDocument
from taciturn.solvers.als.solver import AlsSolver
from tests.narrow import present
from tests.solvers.helpers import BUDGET, random_ratings


def test_lists_add_rows_and_change_no_ratings() -> None:
    ratings = random_ratings(3, users=8, items=6)
    users, items = list(range(-3, 20)), [*range(200, 90, -1)]
    wide = with_id_lists(ratings, users=users, items=pl.Series(items, dtype=pl.Int32))
    assert wide.shape == (23, 110)
    assert wide.to_frame().equals(ratings.to_frame())
    assert np.array_equal(wide.by_item.starts[-1:], [len(ratings)])
    assert with_id_lists(ratings).to_frame().equals(ratings.to_frame())


def test_text_ids_are_listed_as_text() -> None:
    ratings = random_ratings(3, users=8, items=6)
    frame = ratings.to_frame().with_columns(item_id=pl.col("item_id").cast(pl.String))
    named = load(frame, scale="1:5:1")
    wide = with_id_lists(named, items=[str(item) for item in range(100, 120)])
    assert wide.shape == (8, 20) and wide.to_frame().equals(named.to_frame())


@pytest.mark.parametrize(
    ("users", "words"),
    [
        ([1, 2], "not listed"),
        ([], "must contain ids"),
        ([*range(1, 9), 8], "missing or duplicate"),
        ([*range(1, 9), None], "missing or duplicate"),
        (["a", "b"], "not listed"),
        ([1.5, 2.5], "whole numbers or all text"),
    ],
)
def test_bad_lists_are_refused_and_name_no_id(users: list[int], words: str) -> None:
    with pytest.raises(InvalidDocument, match=words) as error:
        with_id_lists(random_ratings(3, users=8, items=6), users=users)
    assert not any(character.isdigit() for character in str(error.value))


def test_users_and_items_without_ratings_get_profiles() -> None:
    ratings = with_id_lists(random_ratings(3, users=8, items=6), users=range(40), items=range(300))
    for unit in Unit:
        fit = AlsSolver(unit=unit, factors=2, iterations=2).fit(ratings, BUDGET)
        factors = present(fit.owner_model.items).factors
        assert factors.shape[0] == 300 and np.isfinite(factors).all()
    assert len(present(fit.owner_model.users).ids) == 40


def test_the_list_determines_the_type_of_ids() -> None:
    """Neighbours get the same ids in the same order, whatever ids one user has."""
    listed = ["1", "2", "10", "012", "abc"]
    plain = pl.DataFrame({"user_id": [1, 1, 2], "item_id": [1, 2, 10], "rating": [5.0, 3.0, 1.0]})
    added = pl.DataFrame({"user_id": [9], "item_id": ["abc"], "rating": [5.0]})
    datasets = plain, pl.concat([plain.with_columns(pl.col("item_id").cast(pl.String)), added])
    found = [with_id_lists(load(each, scale="1:5:1"), items=listed) for each in datasets]
    assert found[0].item_ids.equals(found[1].item_ids) and found[0].item_ids.dtype == pl.String
    wanted = plain.with_columns(pl.col("item_id").cast(pl.String)).sort("user_id", "item_id")
    for each in found:
        rest = each.to_frame().filter(pl.col("user_id") != 9)
        assert rest.cast({"rating": pl.Float64}).equals(wanted)
    numbers = with_id_lists(load(datasets[0], scale="1:5:1"), items=range(20))
    assert numbers.item_ids.dtype == pl.Int64


def test_timestamps_follow_their_ratings() -> None:
    frame = pl.DataFrame(
        {"user_id": [2, 10], "item_id": [2, 10], "rating": [5.0, 3.0], "timestamp": [20, 100]}
    )
    ratings = load(frame, scale="1:5:1", timestamps=True)
    wide = with_id_lists(ratings, users=["2", "10", "3"], items=["10", "2"])
    assert wide.to_frame()["timestamp"].to_list() == [100, 20]
    assert wide.to_frame()["rating"].to_list() == [3.0, 5.0]
