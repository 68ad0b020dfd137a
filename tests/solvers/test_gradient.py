"""The descent of `gradient`: what it predicts while it trains, and what it returns."""

import math
from typing import Any

import numpy as np
import pytest

from taciturn.data.synthetic import synthetic_ratings
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.queries.prediction_errors import NORM
from taciturn.solvers import gradient
from taciturn.solvers.contract import Session
from taciturn.solvers.gradient import GradientSolver, NonPrivateGradientSolver
from tests.solvers.helpers import BUDGET, random_ratings


def spied_states(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    states: list[dict[str, Any]] = []
    original = gradient.GradientDescent.step

    def step(self: Any, *arguments: Any) -> Any:
        states.append(original(self, *arguments))
        return states[-1]

    monkeypatch.setattr(gradient.GradientDescent, "step", step)
    return states


@pytest.mark.parametrize(("averaged", "last"), [(0.5, 3), (0.0, 1), (1.0, 6), (0.4, 3)])
def test_the_last_iterates_are_averaged(
    averaged: float, last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = spied_states(monkeypatch)
    solver = GradientSolver(factors=2, iterations=6, averaged=averaged)
    fit = solver.fit(random_ratings(), BUDGET, Session(noise=InsecureTestNoise(1)))
    users = np.mean([state["users"] for state in states[-last:]], axis=0)
    assert np.allclose(
        fit.model.users.biases, users[:, 0], atol=1e-6
    )  # the scale is 4 wide: one unit
    assert np.allclose(fit.model.users.factors, users[:, 1:], atol=1e-6)
    assert fit.model.mean == 3.0


@pytest.mark.parametrize("scale", ["1:5:1", "0:10"])
def test_the_pass_predicts_what_the_profiles_say(
    scale: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error that the pass sees is that of mean + biases + product at the same iterate."""
    ratings = random_ratings(3, users=50, items=30, scale=scale)
    solver = NonPrivateGradientSolver(factors=3, iterations=4)
    descent = solver.descent(ratings, None)
    states = spied_states(monkeypatch)
    solver.fit(ratings)
    unit = ratings.scale.range / 4
    values = descent.pairs.values(ratings, descent.grid, descent.middle)
    step = math.ldexp(1.0, descent.grid.exponent)
    for state in states:
        tables = descent.sums(0, *descent.sides(state)).tables(values)
        seen = math.sqrt(tables.squares / len(ratings)) * step
        users, items = state["users"], state["items"]
        rows, columns = ratings.rows(), ratings.by_user.columns
        product = np.einsum("nk,nk->n", users[rows, 1:], items[columns, 1:])
        predicted = descent.middle + unit * (users[rows, 0] + items[columns, 0] + product)
        errors = predicted - ratings.values()
        assert seen == pytest.approx(math.sqrt(np.mean(errors**2)), abs=2 * step / math.sqrt(12))
        # And the released table is the gradient of that error, but for the factor of a row.
        features, shrink = descent._steps.features(items)
        expected = np.zeros_like(users)
        np.add.at(expected, rows, errors[:, None] * (features * shrink[:, None])[columns])
        assert np.abs(tables.users * (step / NORM) - expected).max() < 0.05 * ratings.scale.range


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
