"""The `gradient` solver: predictions during training, averaged iterates, falling errors."""

import math
from typing import ClassVar

import numpy as np
import pytest

from taciturn.accounting.events import GaussianRelease
from taciturn.accounting.ledger import Status
from taciturn.accounting.units import Unit
from taciturn.data.synthetic import synthetic_ratings
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.queries.executor import LocalExecutor
from taciturn.queries.features import NORM
from taciturn.solvers.contract import PublicFacts, Session
from taciturn.solvers.gradient import DescentState, GradientSolver, NonPrivateGradientSolver
from taciturn.solvers.loop import Training
from tests.solvers.contract import LearnsCheckerboard, ValueContract
from tests.solvers.helpers import BUDGET, random_ratings


class TestGradient(LearnsCheckerboard, ValueContract):
    name = "gradient"
    small: ClassVar = {"factors": 3, "iterations": 6}

    def test_events_name_their_rows(self) -> None:
        ratings = random_ratings(1, users=13, items=9)
        events = self.run(ratings).ledger.events
        rows = [event.rows for event in events if isinstance(event, GaussianRelease)]
        assert rows[:2] == ["users", "items"]
        assert "user" in events[0].purpose and "item" in events[1].purpose


class TestNonPrivateGradient(LearnsCheckerboard):
    name = "non-private-gradient"
    small: ClassVar = {"factors": 3, "iterations": 6}
    status = Status.NONE


@pytest.mark.parametrize(("averaged", "last"), [(0.5, 3), (0.0, 1), (1.0, 6), (0.4, 3)])
def test_the_last_iterates_are_averaged(averaged: float, last: int) -> None:
    solver = GradientSolver(factors=2, iterations=6, averaged=averaged)
    ratings = random_ratings()
    algorithm = solver.algorithm(PublicFacts.of(ratings, Unit.VALUE), BUDGET)
    session = Session(noise=InsecureTestNoise(1))
    training = Training(algorithm, LocalExecutor(ratings), session)
    states = [done.after for done in training.steps()]
    model = algorithm.model(states[-1])
    users = np.mean([state.users for state in states[-last:]], axis=0)
    assert model.users is not None and model.mean == 3.0
    # The rating scale factor is 1 on a scale of width 4.
    assert np.allclose(model.users.biases, users[:, 0], atol=1e-6)
    assert np.allclose(model.users.factors, users[:, 1:], atol=1e-6)


@pytest.mark.parametrize("scale", ["1:5:1", "0:10"])
def test_the_pass_has_the_prediction_errors_of_the_profiles(scale: str) -> None:
    """Prediction errors of the pass are those of mean + biases + product at the same iterate."""
    ratings = random_ratings(3, users=50, items=30, scale=scale)
    solver = NonPrivateGradientSolver(factors=3, iterations=4)
    algorithm = solver.algorithm(PublicFacts.of(ratings, Unit.VALUE), None)
    executor = LocalExecutor(ratings)
    unit, middle = ratings.scale.range / 4, (ratings.scale.low + ratings.scale.high) / 2
    for done in Training(algorithm, executor, Session()).steps():
        state: DescentState = done.before
        spec = done.released.spec
        step = math.ldexp(1.0, spec.view.grid.exponent)
        tables = spec.tables(executor.values(spec.view))
        seen = math.sqrt(tables.squares / len(ratings)) * step
        users, items = state.users, state.items
        rows, columns = ratings.rows(), ratings.by_user.columns
        product = np.einsum("nk,nk->n", users[rows, 1:], items[columns, 1:])
        predicted = middle + unit * (users[rows, 0] + items[columns, 0] + product)
        errors = predicted - ratings.values()
        # The first profiles are long: their predictions are clipped at the margin.
        if done.step > 0:
            exact = pytest.approx(math.sqrt(np.mean(errors**2)), abs=2 * step / math.sqrt(12))
            assert seen == exact
            # The released table is the gradient of that error, except for the factor of a row.
            features, shrink = algorithm._steps.features(items)
            expected = np.zeros_like(users)
            np.add.at(expected, rows, errors[:, None] * (features * shrink[:, None])[columns])
            found = tables.users * (step / NORM)
            assert np.abs(found - expected).max() < 0.05 * ratings.scale.range


def test_the_error_falls_without_noise() -> None:
    ratings = synthetic_ratings("10k")
    users, items = ratings.rows(), ratings.by_user.columns
    errors = []
    for iterations in (1, 5, 20, 60):
        fit = NonPrivateGradientSolver(iterations=iterations, averaged=0.0).fit(ratings)
        errors.append(
            float(np.mean((fit.owner_model.predict_rows(users, items) - ratings.values()) ** 2))
        )
    assert errors == sorted(errors, reverse=True)
