"""Trainings that shrink items to public ratings, and predictions from public ratings alone."""

from functools import cache

import numpy as np
import polars as pl
import pytest

from taciturn.accounting.budget import Budget
from taciturn.accounting.public_inputs import InputKind
from taciturn.accounting.units import Unit
from taciturn.data import load
from taciturn.data.public_ratings import with_public_ratings
from taciturn.data.ratings import PublicRatings, Ratings
from taciturn.data.splits import random_split
from taciturn.errors import InvalidParameter
from taciturn.evaluate.metrics import rmse
from taciturn.solvers.als.public_alone import public_alone
from taciturn.solvers.als.public_items import PublicItems, fitted
from taciturn.solvers.als.solver import AlsSolver, Serve
from taciturn.solvers.bias import BiasSolver
from taciturn.solvers.contract import PublicFacts, Session
from taciturn.solvers.descent import DescentSteps
from tests.solvers.als.test_public_model import drawn

STEPS = DescentSteps(factors=3, iterations=1)
BUDGET = Budget.from_epsilon(1, 1e-5)


@cache
def public() -> PublicRatings:
    return PublicRatings(ratings=drawn(600)[0], source="theirs", digest="0" * 64)


@cache
def private(users: int = 300) -> tuple[Ratings, Ratings]:
    """Ratings of other users of the same items, with public ratings, and those held out."""
    return random_split(with_public_ratings(drawn(users, seed=7)[0], public()), 0.2, 0)


def plain(ratings: Ratings) -> Ratings:
    return load(ratings.to_frame(), scale="-4:4")


def public_items(ratings: Ratings) -> PublicItems:
    found = PublicItems.of(PublicFacts.of(ratings, Unit.USER))
    assert found is not None
    return found


def error(solver: AlsSolver, ratings: Ratings, budget: Budget = BUDGET) -> float:
    fit = solver.fit(ratings, budget, Session(seed=3))
    return float(rmse(fit, private()[1]))


@pytest.mark.parametrize(
    ("solver", "epsilon", "gain"),
    [
        (AlsSolver(unit=Unit.USER), 1, 0.1),
        (AlsSolver(unit=Unit.RATING), 3, 0.0),
        (AlsSolver(unit=Unit.RATING, serve=Serve.FOLD_IN), 1, 0.1),
        (AlsSolver(unit=Unit.VALUE, serve=Serve.FOLD_IN), 8, 0.03),
    ],
    ids=["user", "rating", "rating, fold-in", "value, fold-in"],
)
def test_public_ratings_of_other_users_lower_the_error(
    solver: AlsSolver, epsilon: float, gain: float
) -> None:
    train, _ = private()
    budget = Budget.from_epsilon(epsilon, 1e-5)
    assert error(solver, train, budget) < error(solver, plain(train), budget) - gain


def test_the_ledger_names_public_ratings_and_their_cost_is_nothing() -> None:
    train, _ = private()
    solver = AlsSolver(unit=Unit.USER)
    fit = solver.fit(train, BUDGET)
    (named,) = fit.ledger.public_inputs
    assert (named.kind, named.name) == (InputKind.PUBLIC_RATINGS, "theirs")
    assert named.ratings == len(public().ratings)
    without = solver.fit(plain(train), BUDGET).ledger
    assert not without.public_inputs
    assert fit.ledger.spend().mu == pytest.approx(without.spend().mu)


def test_a_solver_that_does_not_use_them_ignores_them() -> None:
    train, _ = private()
    solver = BiasSolver(unit=Unit.VALUE)
    assert solver.public_facts(train).public_ratings is None
    assert not solver.fit(train, BUDGET).ledger.public_inputs


def test_public_factors_are_used_where_the_private_ratings_support_none() -> None:
    train, _ = private(30)
    solver, budget = AlsSolver(unit=Unit.USER), Budget.from_epsilon(0.1, 1e-5)
    assert solver.fit(plain(train), budget).model.factor_count == 0
    assert solver.fit(train, budget).model.factor_count == 2
    rated = AlsSolver(unit=Unit.RATING)
    assert rated.fit(plain(train), budget).model.factor_count == 0
    assert rated.fit(train, budget).model.factor_count == 2


@pytest.mark.parametrize("unit", [Unit.USER, Unit.RATING])
def test_a_chosen_number_of_factors_is_kept(unit: Unit) -> None:
    train, _ = private()
    for factors in (1, 5):
        fit = AlsSolver(unit=unit, factors=factors, iterations=2).fit(train, BUDGET)
        assert fit.model.factor_count == factors


def test_few_ratings_under_value_shrink_to_public_biases() -> None:
    train, _ = private(4)
    fit = AlsSolver(unit=Unit.VALUE).fit(train, Budget.from_epsilon(0.01, 1e-5))
    assert fit.model.factor_count == 0
    biases = fit.model.item_profiles.biases
    np.testing.assert_allclose(biases, public_items(train).biases, atol=0.05)


def test_items_without_public_ratings_have_no_prior_of_their_own() -> None:
    ratings, _ = drawn(20)
    frame = ratings.to_frame().with_columns(pl.col("item_id") + 30)
    items = public_items(with_public_ratings(load(frame, scale="-4:4"), public()))
    known = items.rows.any(axis=1)
    assert known.tolist() == [True] * 30 + [False] * 30
    assert (items.precision[~known] == 1).all() and (items.precision[known] > 3).all()
    np.testing.assert_array_equal(items.rows[:30], items.model.rows[30:])


def test_centres_are_in_the_coordinates_of_the_descent() -> None:
    items = public_items(private()[0])
    centre = items.centre(STEPS, 2.0)
    np.testing.assert_allclose(centre[:, 0], items.biases / 2)
    # A user's factors have the standard deviations of the prior, and products are in rating units.
    products = (centre[:, 1:] * STEPS.priors[1:]) @ (centre[:, 1:] * STEPS.priors[1:]).T
    np.testing.assert_allclose(2 * 2 * products, items.rows[:, 1:] @ items.rows[:, 1:].T)
    assert not centre[:, 3].any()
    fewer = items.centre(DescentSteps(factors=1, iterations=1), 2.0)
    assert fewer.shape == (60, 2)


def test_the_model_is_fitted_once_for_all_splits() -> None:
    before = fitted(public().ratings, private()[0].scale)
    assert public_items(private()[0]).model is before


def test_the_row_of_public_ratings_alone_depends_on_no_other_user() -> None:
    train, test = private()
    folded = public_alone(train, AlsSolver(unit=Unit.USER))
    half = train.select(train.rows() < 100)
    again = public_alone(half, AlsSolver(unit=Unit.USER))
    np.testing.assert_array_equal(folded.item_profiles.factors, again.item_profiles.factors)
    np.testing.assert_array_equal(
        folded.user_profiles.factors[:100], again.user_profiles.factors[:100]
    )
    profiles = public_alone(train, AlsSolver(unit=Unit.RATING))
    assert not profiles.user_profiles.factors.any()
    assert rmse(folded, test) < rmse(profiles, test) - 0.1


def test_public_ratings_alone_need_public_ratings() -> None:
    train, _ = private()
    with pytest.raises(InvalidParameter, match="no public ratings"):
        public_alone(plain(train), AlsSolver(unit=Unit.USER))
