"""Requests by user id and by a file of own ratings."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from taciturn.errors import InvalidInput, InvalidParameter
from taciturn.recommend.requests import Recipient, Service
from taciturn.release.read import load_release
from taciturn.release.write import UsersOut, write_release
from taciturn.solvers.catalog import make_solver
from tests.release.helpers import certificate, write_small
from tests.solvers.helpers import BUDGET, random_ratings


@pytest.fixture
def release(tmp_path: Path) -> Path:
    write_small(tmp_path / "release")
    return tmp_path / "release"


def test_a_recipient_is_a_user_or_a_file() -> None:
    choices: tuple[dict[str, Any], ...] = ({}, {"user": "1", "ratings": Path("own.csv")})
    for given in choices:
        with pytest.raises(InvalidParameter, match="pass either user=ID"):
            Recipient(**given)


def test_ids_have_the_type_of_the_release(release: Path) -> None:
    service = Service(release)
    found = service.recommend(Recipient(user="1"), 2)
    assert found.id == 1 and [each.rank for each in found.items] == [1, 2]
    assert service.similar("100", 1).id == 100
    rating = service.predict(Recipient(user="1"), "100")
    assert (rating.user_id, rating.item_id, rating.deviation) == (1, 100, None)
    for text in ("one", "0100", " 100", "1_00", "1" * 5000):
        with pytest.raises(InvalidParameter, match="whole numbers"):
            service.similar(text)


def test_own_ratings_are_left_out_of_the_list(release: Path, tmp_path: Path) -> None:
    notes: list[str] = []
    service, own = Service(release, note=notes.append), tmp_path / "own.csv"
    own.write_text("item_id,rating\n100,5\n99999,3\n")
    found = service.recommend(Recipient(ratings=own), 3)
    assert found.id is None and 100 not in [each.item_id for each in found.items]
    assert notes == [f"1 of 2 items in {own} are not in the release"]
    assert 1 <= service.predict(Recipient(ratings=own), "101").rating <= 5
    own.write_text("item_id,rating\n99999,3\n")
    with pytest.raises(InvalidInput, match="none of the items"):
        service.recommend(Recipient(ratings=own))


def test_exclusions_of_other_users_are_ignored(release: Path, tmp_path: Path) -> None:
    service, seen = Service(release), tmp_path / "seen.csv"
    first, *_ = service.recommend(Recipient(user="1"), 1).items
    seen.write_text(f"user_id,item_id\n2,{first.item_id}\n")
    assert service.recommend(Recipient(user="1"), 1, seen).items == [first]
    seen.write_text(f"item_id\n{first.item_id}\n")
    assert service.recommend(Recipient(user="1"), 1, seen).items != [first]


@pytest.mark.parametrize("unit", ["rating", "user"])
def test_a_user_who_folds_in_gets_a_distribution(unit: str, tmp_path: Path) -> None:
    solver = make_solver("als", unit=unit, serve="fold-in", factors=2, iterations=2)
    fit = replace(solver, uncertainty=True).fit(random_ratings(), BUDGET)
    write_release(fit, certificate(fit), tmp_path / "r", users_out=UsersOut.NONE)
    own = tmp_path / "own.csv"
    own.write_text("item_id,rating\n" + f"{fit.model.item_profiles.ids[0]},5\n")
    service = Service(tmp_path / "r")
    found = service.predict(Recipient(ratings=own), str(fit.model.item_profiles.ids[1]))
    assert found.deviation is not None and 0.2 < found.deviation < 5
    assert found.probabilities is not None
    assert list(found.probabilities) == ["1", "2", "3", "4", "5"]
    assert sum(found.probabilities.values()) == pytest.approx(1)


def test_an_excluded_table_of_several_users_is_refused_for_own_ratings(
    release: Path, tmp_path: Path
) -> None:
    service, own, seen = Service(release), tmp_path / "own.csv", tmp_path / "seen.csv"
    own.write_text("item_id,rating\n100,5\n")
    seen.write_text("user_id,item_id\n7,101\n8,102\n")
    with pytest.raises(InvalidInput, match="has ratings of several users; keep those of one user"):
        service.recommend(Recipient(ratings=own), 5, seen)
    seen.write_text("user_id,item_id\n7,101\n7,102\n")
    found = {each.item_id for each in service.recommend(Recipient(ratings=own), 5, seen).items}
    assert found == {103, 104}


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("user_id,item_id\n2,100\n", "has no row of user 1, so it excludes nothing"),
        ("user_id,item_id\n1,99999\n", "is in the release, so it excludes nothing"),
        ("user_id,item_id\n1,99999\n1,100\n", None),
        ("item_id\n99999\n", "is in the release, so it excludes nothing"),
        ("item_id\n", "has no rows, so it excludes nothing"),
        ("item_id\n99999\n100\n", None),
    ],
)
def test_a_table_that_excludes_nothing_is_noted(
    release: Path, tmp_path: Path, text: str, note: str | None
) -> None:
    notes: list[str] = []
    service, seen = Service(release, note=notes.append), tmp_path / "seen.csv"
    seen.write_text(text)
    service.recommend(Recipient(user="1"), 2, seen)
    assert [note in each for each in notes if note] == ([] if note is None else [True]), notes
    if "user_id" not in text:
        notes.clear()
        (tmp_path / "own.csv").write_text("item_id,rating\n101,5\n")
        service.recommend(Recipient(ratings=tmp_path / "own.csv"), 2, seen)
        assert [note in each for each in notes if note] == ([] if note is None else [True]), notes


def test_notes_name_the_callers_own_items(release: Path, tmp_path: Path) -> None:
    notes: list[str] = []
    items, own, titles = (tmp_path / name for name in ("i.parquet", "own.csv", "titles.csv"))
    width = load_release(release).model.factor_count
    frame = pl.DataFrame({"item_id": [1, 2], "profile": [[1.0] * width] * 2})
    frame.write_parquet(items)
    own.write_text("item_id,rating\n1,5\n100,3\n")
    titles.write_text("item_id,title\n100,The First\n")
    Service(release, items, note=notes.append, titles=titles).recommend(Recipient(ratings=own), 1)
    assert notes == [
        f"{titles} has no title of an item in {items}",
        f"1 of 2 items in {own} are not in {items}",
    ]
