"""The code on the card of a release makes the lists that the library makes."""

from pathlib import Path
from typing import Any

import pytest

from taciturn.accounting.units import Unit
from taciturn.recommend.serve import Recommender
from taciturn.release.read import load_release
from taciturn.release.write import UsersOut, write_release
from taciturn.solvers.catalog import make_solver
from tests.narrow import present
from tests.release.helpers import certificate, write_with_interest
from tests.solvers.helpers import BUDGET, random_ratings, small_solver

OWN: dict[Any, float] = {100: 5.0, 101: 1.0, 102: 4.0}


def run(folder: Path) -> dict[str, Any]:
    """Variables of the code on a card; a user who folds in has the ratings above."""
    card = (folder / "card.md").read_text(encoding="utf-8")
    code = card.split("```python\n")[1].split("```")[0]
    code = code.replace('"item_id": [...]', f'"item_id": {list(OWN)}')
    code = code.replace('"rating": [...]', f'"rating": {list(OWN.values())}')
    for name in ("items.parquet", "users.parquet"):
        code = code.replace(f'"{name}"', repr(str(folder / name)))
    found: dict[str, Any] = {}
    exec(code, found)  # noqa: S102 — the code that the card tells users to run
    return found


def check(found: dict[str, Any], items: list[Any], scores: list[float]) -> None:
    """Ten best items of the library against those of the card; scores differ by a constant."""
    assert found["best"].to_list() == items[:10]
    of_card = sorted(found["scores"], reverse=True)
    shift = of_card[0] - scores[0]
    assert [each - shift for each in of_card] == pytest.approx(scores, abs=1e-4)


@pytest.mark.filterwarnings("ignore::taciturn.errors.NotPersonalised")
@pytest.mark.parametrize("name", ["als", "popularity"])
@pytest.mark.parametrize("unit", [Unit.VALUE, Unit.RATING])
def test_the_card_lists_items_of_a_published_user_by_interest(
    name: str, unit: Unit, tmp_path: Path
) -> None:
    fit = small_solver(name, unit).fit(random_ratings(), BUDGET)
    write_release(fit, certificate(fit), tmp_path / "r")
    recommender = Recommender(load_release(tmp_path / "r"))
    user = present(recommender.model.users).ids[0]
    expected = recommender.recommend(user, len(recommender.item_ids))
    check(run(tmp_path / "r"), expected["item_id"].to_list(), expected["score"].to_list())


def test_the_card_multiplies_all_interest_factors(tmp_path: Path) -> None:
    write_with_interest(tmp_path / "r")
    expected = Recommender(load_release(tmp_path / "r")).recommend(1, 5)
    check(run(tmp_path / "r"), expected["item_id"].to_list(), expected["score"].to_list())


@pytest.mark.filterwarnings("ignore::taciturn.errors.NotPersonalised")
@pytest.mark.parametrize(
    ("name", "unit"), [("als", unit) for unit in Unit] + [("popularity", "user")]
)
def test_the_card_lists_items_of_a_user_who_folds_in_by_interest(
    name: str, unit: Unit | str, tmp_path: Path
) -> None:
    options = {"serve": "fold-in", "factors": 2} if name == "als" else {}
    fit = make_solver(name, unit=unit, **options).fit(random_ratings(), BUDGET)
    write_release(fit, certificate(fit), tmp_path / "r", users_out=UsersOut.NONE)
    recommender = Recommender(load_release(tmp_path / "r"))
    mine = recommender.fold_in(OWN)
    count = len(recommender.item_ids)
    best = recommender.recommend_profile(mine.bias, mine.factors, count, interest=mine.interest)
    found = run(tmp_path / "r")
    assert found["mine"] == pytest.approx([mine.bias, *mine.factors], abs=1e-5)
    assert found["interest"] == pytest.approx(present(mine.interest), abs=1e-5)
    check(found, [each.item_id for each in best], [each.score for each in best])


def test_the_card_of_a_release_without_interest_lists_by_rating(tmp_path: Path) -> None:
    fit = make_solver("als", unit="user", factors=2, interest=False).fit(random_ratings(), BUDGET)
    write_release(fit, certificate(fit), tmp_path / "r", users_out=UsersOut.NONE)
    recommender, found = Recommender(load_release(tmp_path / "r")), run(tmp_path / "r")
    mine = recommender.fold_in(OWN)
    best = recommender.recommend_profile(mine.bias, mine.factors, 10)
    assert found["best"].to_list() == [each.item_id for each in best]
    assert "ranking score" not in (tmp_path / "r" / "card.md").read_text()
