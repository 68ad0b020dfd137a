"""Lists of users and items that are public, whoever rated what."""

import numpy as np
import polars as pl
import pytest

from tacit.data.universe import with_universe
from tacit.errors import InvalidDocument
from tacit.privacy.units import Unit
from tacit.solvers.als import AlsSolver
from tests.solvers.helpers import BUDGET, random_ratings


def test_ratings_stay_and_rows_come() -> None:
    ratings = random_ratings(3, users=8, items=6)
    users, items = list(range(-3, 20)), [*range(200, 90, -1)]
    wide = with_universe(ratings, users=users, items=pl.Series(items, dtype=pl.Int32))
    assert wide.shape == (23, 110)
    assert wide.to_frame().equals(ratings.to_frame())
    assert np.array_equal(wide.by_item.starts[-1:], [len(ratings)])
    assert with_universe(ratings).to_frame().equals(ratings.to_frame())


def test_text_ids() -> None:
    ratings = random_ratings(3, users=8, items=6)
    frame = ratings.to_frame().with_columns(item_id=pl.col("item_id").cast(pl.String))
    from tacit.data import load

    named = load(frame, scale="1:5:1")
    wide = with_universe(named, items=[str(item) for item in range(100, 120)])
    assert wide.shape == (8, 20) and wide.to_frame().equals(named.to_frame())


@pytest.mark.parametrize(
    ("users", "words"),
    [
        ([1, 2], "not listed"),
        ([], "not listed"),
        ([*range(1, 9), 8], "only once"),
        ([*range(1, 9), None], "be there"),
        (["a", "b"], "same kind"),
    ],
)
def test_bad_lists_are_refused_and_name_nobody(users: list[int], words: str) -> None:
    with pytest.raises(InvalidDocument, match=words) as error:
        with_universe(random_ratings(3, users=8, items=6), users=users)
    assert not any(character.isdigit() for character in str(error.value))


def test_those_without_ratings_get_profiles_like_any_other() -> None:
    ratings = with_universe(random_ratings(3, users=8, items=6), users=range(40), items=range(300))
    for unit in Unit:
        fit = AlsSolver(unit=unit, factors=2, iterations=2).fit(ratings, BUDGET)
        assert fit.known_items.factors.shape[0] == 300
        assert np.isfinite(fit.known_items.factors).all()
    assert len(fit.known_users.ids) == 40
