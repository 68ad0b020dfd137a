"""`als` under unit `rating` with whole users bounded: guarantee, ledger, and when it is used."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.events import GaussianRelease, Rows
from taciturn.accounting.ledger import Ledger
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.data.splits import random_split
from taciturn.data.synthetic import SyntheticSize, synthetic_ratings
from taciturn.errors import InvalidDocument
from taciturn.evaluate.metrics import rmse
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.queries.per_user import USERS_MAX
from taciturn.release.verify import verify_release
from taciturn.release.write import UsersOut, write_release
from taciturn.scale import Scale
from taciturn.solvers.als import solver as module
from taciturn.solvers.als.rating import RatingAlgorithm
from taciturn.solvers.als.size import bounds_whole_users
from taciturn.solvers.als.solver import AlsSolver
from taciturn.solvers.als.user import UserAlgorithm
from taciturn.solvers.catalog import check_solver
from taciturn.solvers.contract import Fit, PublicFacts, Session
from tests.solvers.contract import ProvenContract
from tests.solvers.helpers import BUDGET, random_ratings


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small data are trained as large ones are."""
    monkeypatch.setattr(module, "bounds_whole_users", lambda facts, budget: True)
    yield


@pytest.mark.usefixtures("chosen")
class TestAlsBoundingUsers(ProvenContract):
    name = "als"
    small: ClassVar = {"serve": "fold-in"}
    unit = Unit.RATING
    proof = "user.md#one-rating"
    fixed_sensitivities = False


def fitted(ratings: Ratings) -> Fit:
    solver = AlsSolver(unit=Unit.RATING, serve="fold-in")
    return solver.fit(ratings, BUDGET, Session(noise=InsecureTestNoise(1)))


@pytest.mark.usefixtures("chosen")
def test_the_guarantee_does_not_depend_on_the_number_of_ratings(tmp_path: Path) -> None:
    solver = AlsSolver(unit=Unit.RATING, serve="fold-in")
    fit = solver.fit(random_ratings(1), BUDGET)
    certificate = Certificate.from_ledger(fit.ledger, 1e-5)
    assert fit.ledger.unit is Unit.RATING and fit.model.users is None
    assert [line.mu for line in certificate.group] == [certificate.mu] * 3
    write_release(fit, certificate, tmp_path / "release", users_out=UsersOut.NONE)
    assert verify_release(tmp_path / "release").passed
    document = json.loads((tmp_path / "release" / "certificate.json").read_text())
    rows = {event.get("rows") for event in document["certificate"]["ledger"]["events"]}
    assert rows == {"contributions", None}


@pytest.mark.usefixtures("chosen")
def test_tables_by_item_are_not_accepted_as_contributions() -> None:
    """Their sensitivity to several ratings would be understated, or overstated."""
    fit = fitted(random_ratings(1))
    check_solver(fit.solver, fit.settings, fit.ledger)
    events = [
        replace(event, rows=Rows.ITEMS) if isinstance(event, GaussianRelease) else event
        for event in fit.ledger.events
    ]
    with pytest.raises(InvalidDocument):
        check_solver(fit.solver, fit.settings, Ledger(events))


@pytest.mark.usefixtures("chosen")
@pytest.mark.parametrize("chosen_settings", [{"factors": 4}, {"iterations": 22}])
def test_contributions_are_not_accepted_with_a_chosen_size(chosen_settings: dict[str, int]) -> None:
    """Trainings with a chosen size never bound whole users."""
    fit = fitted(random_ratings(1))
    assert sum(each.purpose.endswith("mean squares") for each in fit.ledger.events) == 22
    with pytest.raises(InvalidDocument):
        check_solver(fit.solver, {**fit.settings, **chosen_settings}, fit.ledger)


@pytest.mark.usefixtures("chosen")
@pytest.mark.parametrize("serve", [None, "profiles"])
def test_contributions_are_not_accepted_with_published_profiles(serve: str | None) -> None:
    """Their certificate would state the same guarantee for 100 ratings of a user as for one."""
    fit = fitted(random_ratings(1))
    events = [each for each in fit.ledger.events if isinstance(each, GaussianRelease)]
    with pytest.raises(InvalidDocument):
        check_solver(fit.solver, {**fit.settings, "serve": serve}, Ledger(events))


def facts(users: int, items: int) -> PublicFacts:
    return PublicFacts(
        scale=Scale.parse("1:5"),
        item_ids=pl.Series(np.arange(items)),
        listed_users=pl.Series(np.arange(users)),
    )


@pytest.mark.parametrize(
    ("users", "items", "epsilon", "expected"),
    [
        (480_000, 17_770, 1, True),
        (480_000, 17_770, 5, False),
        (138_000, 26_000, 1, False),
        (11_303, 5_457, 1, False),
        (6_040, 3_706, 1, False),
        (943, 1_682, 1, False),
    ],
)
def test_whole_users_are_bounded_where_many_share_few_items(
    users: int, items: int, epsilon: float, expected: bool
) -> None:
    budget = Budget.from_epsilon(epsilon, 1e-5)
    assert bounds_whole_users(facts(users, items), budget) is expected

    def algorithm(**settings: Any) -> Any:
        solver = AlsSolver(unit="rating", interest=False, **settings)
        return solver.algorithm(facts(users, items), budget)

    assert isinstance(algorithm(serve="fold-in"), UserAlgorithm) is expected
    others: list[dict[str, Any]] = [
        {},
        {"serve": "fold-in", "factors": 4},
        {"serve": "fold-in", "iterations": 9},
    ]
    for settings in others:
        other = algorithm(**settings)
        assert not isinstance(other, UserAlgorithm)
        assert isinstance(other, RatingAlgorithm) is ("serve" not in settings)


@pytest.mark.parametrize(("users", "expected"), [(USERS_MAX - 1, True), (USERS_MAX, False)])
def test_whole_users_are_bounded_only_as_long_as_their_sums_are_exact(
    users: int, expected: bool
) -> None:
    budget = Budget.from_epsilon(1, 1e-9)
    assert bounds_whole_users(facts(users, 20_000), budget) is expected


@pytest.mark.slow
def test_many_users_of_few_items_are_predicted_better(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ratio of errors is 0.95; its standard deviation is below 0.005."""
    size = SyntheticSize(users=60_000, items=300, ratings=1_200_000)
    train, test = random_split(synthetic_ratings(size), 0.05, 1)
    budget, found = Budget.from_epsilon(1, 1e-5), []
    assert bounds_whole_users(PublicFacts.of(train, "rating"), budget)
    for is_bounded in (True, False):
        monkeypatch.setattr(module, "bounds_whole_users", lambda *_, is_it=is_bounded: is_it)
        fit = AlsSolver(unit=Unit.RATING, serve="fold-in").fit(train, budget)
        found.append(rmse(fit, test))
    assert found[0] < 0.975 * found[1]
