"""Requests by user id and by a file of own ratings."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taciturn.errors import InvalidInput, InvalidParameter
from taciturn.recommend.requests import Recipient, Service
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
