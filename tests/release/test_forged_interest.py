"""Releases whose interest does not fit their solver, settings or ledger: each is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.ledger import Ledger
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidDocument
from taciturn.model.interest import Interest
from taciturn.release.verify import verify_release
from taciturn.release.write import UsersOut, write_release
from taciturn.solvers.catalog import make_solver
from taciturn.solvers.contract import Fit
from taciturn.solvers.entry import INTEREST_FACTORS_MAX, PATTERN_INTEREST
from taciturn.solvers.interest.part import RANKS
from taciturn.solvers.interest.pattern import _FACTORS
from tests.model.helpers import with_interest
from tests.solvers.helpers import random_ratings

BUDGET = Budget.from_epsilon(5, 1e-5)
RATINGS = random_ratings(1, users=60, items=30, density=0.5)


def fitted(name: str, **options: Any) -> Fit:
    fit: Fit = make_solver(name, **options).fit(RATINGS, BUDGET)
    return fit


def problems(fit: Fit, folder: Path) -> list[str]:
    """Failed checks of a release of a fit, in words."""
    users = UsersOut.NONE if fit.model.users is None else UsersOut.IDS
    certificate = Certificate.from_ledger(fit.ledger, 1e-5)
    write_release(fit, certificate, folder / "release", users_out=users)
    verdict = verify_release(folder / "release")
    return [check.detail for check in verdict.checks if not check.passed]


def with_counts(fit: Fit) -> Fit:
    """The fit with exact numbers of ratings as popularity."""
    items, users = fit.model.item_profiles, fit.model.users
    counts = np.diff(RATINGS.by_item.starts).astype(np.float32)[:, None]
    if users is not None:
        users = replace(users, interests=np.ones((len(users), 1), dtype=np.float32))
    model = replace(
        fit.model.without_interest(),
        users=users,
        items=replace(items, interests=counts),
        interest=Interest(rating_weight=1.0, unseen_weight=0.5, regularization=0.01),
    )
    return replace(fit, model=model)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("bias", {"unit": "value"}),
        ("bias", {"unit": "rating"}),
        ("bias", {"unit": "user"}),
        ("gradient", {"factors": 2, "iterations": 2}),
        ("als", {"unit": "value", "interest": False}),
        ("als", {"unit": "rating", "interest": False}),
        ("als", {"unit": "user", "interest": False}),
        ("als", {"unit": "value", "pattern_features": False}),
    ],
)
def test_exact_counts_where_no_interest_is_learnt_are_refused(
    name: str, options: dict[str, Any], tmp_path: Path
) -> None:
    (found,) = problems(with_counts(fitted(name, **options)), tmp_path)
    assert "does not learn interest" in found


@pytest.mark.parametrize("name", ["als", "popularity"])
@pytest.mark.parametrize("unit", ["value", "rating", "user"])
def test_interest_that_is_missing_is_refused(name: str, unit: str, tmp_path: Path) -> None:
    fit = fitted(name, unit=unit)
    (found,) = problems(replace(fit, model=fit.model.without_interest()), tmp_path)
    assert "learns interest" in found


def test_interest_of_the_pattern_without_its_event_is_refused(tmp_path: Path) -> None:
    fit = fitted("als", unit="value")
    rest = [event for event in fit.ledger.events if event.purpose != PATTERN_INTEREST]
    with pytest.raises(InvalidDocument, match="lacks the release of interest"):
        problems(replace(fit, ledger=Ledger(rest, run=fit.ledger.run)), tmp_path)


@pytest.mark.parametrize("settings", [{"interest": False}, {"pattern_features": False}])
def test_an_event_of_interest_that_is_not_learnt_is_refused(
    settings: dict[str, bool], tmp_path: Path
) -> None:
    fit = fitted("als", unit="value")
    with pytest.raises(InvalidDocument, match="publishes features of the rating pattern"):
        problems(replace(fit, settings={**fit.settings, **settings}), tmp_path)


@pytest.mark.parametrize("unit", ["value", "rating", "user"])
@pytest.mark.parametrize("part", ["mean", "biases", "columns"])
def test_a_release_of_popularity_with_anything_else_is_refused(
    unit: str, part: str, tmp_path: Path
) -> None:
    """Exact means would be certified at ε = 0 under `value`."""
    fit = fitted("popularity", unit=unit)
    model, items = fit.model, fit.model.item_profiles
    if part == "mean":
        model = replace(model, mean=3.2)
    elif part == "biases":
        model = replace(model, items=replace(items, biases=items.biases + np.float32(0.1)))
    else:
        twice = {
            axis: replace(profiles, interests=np.hstack([profiles.interests] * 2))
            for axis, profiles in (("users", model.users), ("items", items))
            if profiles is not None and profiles.interests is not None
        }
        model = replace(model, **twice)  # type: ignore[arg-type]
    (found,) = problems(replace(fit, model=model), tmp_path)
    assert "nothing but popularity" in found


@pytest.mark.parametrize("unit", ["value", "rating", "user"])
@pytest.mark.parametrize("name", ["als", "popularity", "bias"])
def test_releases_as_they_were_trained_are_accepted(name: str, unit: str, tmp_path: Path) -> None:
    assert problems(fitted(name, unit=unit), tmp_path) == []


@pytest.mark.parametrize("unit", Unit)
def test_more_interest_factors_than_a_solver_learns_are_refused(unit: Unit, tmp_path: Path) -> None:
    fit, most = fitted("als", unit=unit), INTEREST_FACTORS_MAX[unit]
    assert (max(RANKS) if unit is not Unit.VALUE else _FACTORS[-1][1]) == most
    for columns, expected in ((1 + most, 0), (2 + most, 1)):
        wide = replace(fit, model=with_interest(fit.model, columns))
        (tmp_path / str(columns)).mkdir()
        found = problems(wide, tmp_path / str(columns))
        assert len(found) == expected and all("more interest factors" in each for each in found)
