"""Variances of `als` under every unit and way of serving."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.accounting.budget import Budget
from taciturn.accounting.units import Unit
from taciturn.data import load
from taciturn.data.ratings import Ratings
from taciturn.data.splits import random_split
from taciturn.errors import InvalidDocument, InvalidParameter, TaciturnError
from taciturn.evaluate.metrics import coverage, rmse
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.model.factor_model import FactorModel
from taciturn.recommend.serve import Recommender
from taciturn.release import bundle
from taciturn.release.read import load_release
from taciturn.release.tables import table_bytes
from taciturn.release.write import UsersOut, write_release
from taciturn.solvers.als.solver import AlsSolver, Serve
from taciturn.solvers.contract import Fit, Session
from tests.release.helpers import certificate, reseal
from tests.solvers.helpers import BUDGET, random_ratings

SERVED = [
    (Unit.VALUE, Serve.FOLD_IN),
    (Unit.RATING, Serve.PROFILES),
    (Unit.RATING, Serve.FOLD_IN),
    (Unit.USER, Serve.FOLD_IN),
]
FOLDED = [each for each in SERVED if each[1] is Serve.FOLD_IN]
NOMINAL = (0.5, 0.8, 0.95)


def fitted(
    ratings: Ratings, unit: Unit, serve: Serve, budget: Budget = BUDGET, **options: Any
) -> Fit:
    session = Session(seed=1, noise=InsecureTestNoise(1))
    solver = AlsSolver(unit=unit, serve=serve, **({"uncertainty": True} | options))
    return solver.fit(ratings, budget, session)


@pytest.mark.parametrize(("unit", "serve"), SERVED)
def test_intervals_have_their_nominal_coverage(unit: Unit, serve: Serve) -> None:
    """Within 4 points on held-out ratings; 10,000 of them have a standard error of half a point."""
    train, test = random_split(load("synthetic:100k"), 0.1, 1)
    fit = fitted(train, unit, serve, Budget.from_epsilon(5, 1e-5))
    assert coverage(fit, test, NOMINAL) == pytest.approx(NOMINAL, abs=0.04)


@pytest.mark.parametrize(("unit", "serve"), SERVED)
def test_variances_change_no_prediction(unit: Unit, serve: Serve) -> None:
    """They are computed after the last release, from the numbers that were released."""
    ratings = random_ratings(4)
    options: dict[str, Any] = {"factors": 2, "iterations": 3}
    one, two = (
        fitted(ratings, unit, serve, uncertainty=chosen, **options) for chosen in (True, False)
    )
    assert two.model.residual_variance is None and not two.model.has_item_variances
    assert rmse(one, ratings) == rmse(two, ratings)
    assert one.ledger.events == two.ledger.events


@pytest.mark.parametrize(("unit", "serve"), SERVED)
def test_rows_with_more_ratings_are_more_certain(unit: Unit, serve: Serve) -> None:
    train, _ = random_split(load("synthetic:100k"), 0.1, 1)
    model = fitted(train, unit, serve, Budget.from_epsilon(5, 1e-5)).owner_model
    for counts, profiles in (
        (train.pattern.by_user.counts, model.user_profiles),
        (train.pattern.by_item.counts, model.item_profiles),
    ):
        assert profiles.bias_variances is not None
        order = np.argsort(counts)
        few, many = order[: len(order) // 4], order[-len(order) // 4 :]
        assert profiles.bias_variances[many].mean() < profiles.bias_variances[few].mean()


@pytest.mark.parametrize(("unit", "serve"), SERVED)
@pytest.mark.parametrize("epsilon", [0.01, 20.0])
def test_little_data_have_finite_deviations(unit: Unit, serve: Serve, epsilon: float) -> None:
    ratings = random_ratings(2)
    budget = Budget.from_epsilon(epsilon, 1e-5)
    for options in ({}, {"factors": 2, "iterations": 2}, {"factors": 1, "iterations": 1}):
        model = fitted(ratings, unit, serve, budget, **options).owner_model
        items = np.arange(len(model.item_profiles))
        found = model.standard_deviation_rows(np.zeros_like(items), items)
        assert np.isfinite(found).all() and (found > 0).all() and (found < 40).all()


@pytest.mark.parametrize(("unit", "serve"), SERVED)
def test_a_scale_too_wide_for_variances_is_refused(unit: Unit, serve: Serve) -> None:
    with pytest.raises(InvalidParameter, match="no wider than 1,000,000"):
        fitted(random_ratings(scale="0:100000000"), unit, serve)


@pytest.mark.parametrize(("unit", "serve"), FOLDED)
def test_an_owner_has_the_variances_that_users_compute(unit: Unit, serve: Serve) -> None:
    ratings = random_ratings(5)
    fit = fitted(ratings, unit, serve, factors=2, iterations=3)
    assert fit.model.users is None and fit.private_users is not None
    assert fit.private_users.variances is not None
    assert fit.private_users.bias_variances is not None
    frame = ratings.to_frame()
    for row, user in enumerate(ratings.user_ids.head(5)):
        mine = frame.filter(frame["user_id"] == user)
        own = dict(zip(mine["item_id"], mine["rating"], strict=True))
        folded = fit.model.fold_in(own)
        expected = [fit.private_users.bias_variances[row], *fit.private_users.variances[row]]
        assert folded.variances == pytest.approx(expected, rel=1e-3)


def test_variances_of_a_user_are_those_of_the_regression() -> None:
    """The inverse of the normal equations, and the prior for a user without ratings."""
    ratings = random_ratings(5)
    model = fitted(ratings, Unit.USER, Serve.FOLD_IN, factors=2, iterations=3).model
    assert model.prior is not None
    items = model.item_profiles
    rated = {items.ids[row]: 4.0 for row in (0, 2, 3)}
    design = np.column_stack([np.ones(3), items.factors[[0, 2, 3]]]).astype(np.float64)
    precision = design.T @ design / model.prior.residual_variance
    precision += np.diag(1 / np.array(model.prior.variances))
    assert model.fold_in(rated).variances == pytest.approx(np.diag(np.linalg.inv(precision)))
    nobody = ratings.select(np.zeros(len(ratings), dtype=np.bool_))
    fit = fitted(nobody, Unit.RATING, Serve.FOLD_IN, factors=1, iterations=2)
    assert fit.private_users is not None and fit.model.prior is not None
    assert fit.private_users.bias_variances == pytest.approx(fit.model.prior.variances[0])


@pytest.mark.parametrize(("unit", "serve"), FOLDED)
def test_a_release_has_variances_of_items_only(unit: Unit, serve: Serve, tmp_path: Path) -> None:
    fit = fitted(random_ratings(6), unit, serve, factors=2, iterations=3)
    write_release(fit, certificate(fit), tmp_path / "r", users_out=UsersOut.NONE)
    release = load_release(tmp_path / "r")
    model, items = release.model, fit.model.item_profiles
    assert model.users is None and model.prior == fit.model.prior
    assert model.residual_variance == fit.model.residual_variance
    assert np.array_equal(_variances(model), _variances(fit.model))
    serving, first = Recommender(release), items.ids[0]
    mine = serving.fold_in({first: 5.0})
    found = serving.distribution_profile(mine, items.ids[1])
    assert found is not None and found.probabilities is not None
    assert list(found.probabilities) == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert sum(found.probabilities.values()) == pytest.approx(1)
    assert found.standard_deviation > np.sqrt(fit.model.residual_variance or 0)


@pytest.mark.parametrize(("unit", "serve"), FOLDED)
def test_a_release_with_users_who_fold_in_is_refused(
    unit: Unit, serve: Serve, tmp_path: Path
) -> None:
    """Exact profiles and variances of users, which a forger adds to a release."""
    fit = fitted(random_ratings(6), unit, serve, factors=2, iterations=3)
    with pytest.raises(TaciturnError, match="cannot contain users"):
        write_release(fit, certificate(fit), tmp_path / "r")
    write_release(fit, certificate(fit), tmp_path / "r", users_out=UsersOut.NONE)
    assert fit.private_users is not None
    users = table_bytes(fit.private_users, "user_id")
    (tmp_path / "r" / bundle.USERS).write_bytes(users)
    changes: tuple[Mapping[str, Any], ...] = (
        {},
        {"users": len(fit.private_users)},
        {"users": len(fit.private_users), "user_ids": "ids"},
    )
    path = tmp_path / "r" / bundle.CERTIFICATE
    original = json.loads(path.read_text())
    for change in changes:
        path.write_text(json.dumps(original | {"facts": original["facts"] | change}))
        reseal(tmp_path / "r")
        with pytest.raises(InvalidDocument):
            load_release(tmp_path / "r")


def test_a_release_without_item_variances_cannot_state_a_residual_variance(tmp_path: Path) -> None:
    fit = fitted(random_ratings(6), Unit.USER, Serve.FOLD_IN, factors=2, iterations=3)
    write_release(fit, certificate(fit), tmp_path / "r", users_out=UsersOut.NONE)
    items = replace(fit.model.item_profiles, bias_variances=None, variances=None)
    (tmp_path / "r" / bundle.ITEMS).write_bytes(table_bytes(items, "item_id"))
    reseal(tmp_path / "r")
    with pytest.raises(InvalidDocument):
        load_release(tmp_path / "r")


def _variances(model: FactorModel) -> Any:
    profiles = model.item_profiles
    assert profiles.bias_variances is not None and profiles.variances is not None
    return np.column_stack([profiles.bias_variances, profiles.variances])
