"""The reference of comparisons, and the variational algorithm that it runs."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from taciturn import load_item_features, with_item_features
from taciturn.accounting.budget import Budget
from taciturn.accounting.ledger import Status
from taciturn.accounting.public_inputs import InputKind
from taciturn.data import load
from taciturn.data.pattern import Axis
from taciturn.data.ratings import Ratings
from taciturn.data.splits import random_split
from taciturn.data.synthetic import synthetic_ratings
from taciturn.evaluate.metrics import rmse
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.queries.executor import LocalExecutor
from taciturn.solvers.catalog import make_solver
from taciturn.solvers.contract import PLAIN, Session
from taciturn.solvers.loop import Training
from taciturn.solvers.non_private import NonPrivateSolver
from taciturn.solvers.variational import VariationalAlgorithm, VariationalState
from tests.solvers.contract import LearnsCheckerboard
from tests.solvers.helpers import random_ratings

Rows = npt.NDArray[np.float64]


class TestNonPrivate(LearnsCheckerboard):
    name = "non-private"
    small: ClassVar = {"factors": 3, "iterations": 4}
    status = Status.NONE


def solved(
    algorithm: VariationalAlgorithm, axis: Axis, state: VariationalState
) -> tuple[Rows, Rows]:
    """Rows of an axis and their mean covariance over ratings, one row at a time."""
    layout, own, others = algorithm._layout, state.along(axis), state.along(axis.other)
    pattern, factors = layout.pattern(axis), layout.factors
    precision = state.variance * np.linalg.inv(own.prior)
    rows, total = np.zeros_like(own.rows), np.zeros_like(own.prior)
    for row in range(len(rows)):
        entries = slice(pattern.starts[row], pattern.starts[row + 1])
        mean = layout.regressors[axis][row] @ own.slopes
        gram, right = precision.copy(), np.zeros(len(mean))
        for column, value in zip(
            pattern.columns[entries], state.values(axis)[entries], strict=True
        ):
            other, features = others.rows[column], layout.pattern_features
            design = np.concatenate([[1.0], other[1 : 1 + factors], features[axis.other][column]])
            known = other[0] + features[axis][row] @ other[1 + factors :] + mean @ design
            gram += np.outer(design, design)
            gram[1 : 1 + factors, 1 : 1 + factors] += others.covariance[
                1 : 1 + factors, 1 : 1 + factors
            ]
            right += design * (value - known)
        rows[row] = mean + np.linalg.solve(gram, right)
        total += pattern.counts[row] * state.variance * np.linalg.inv(gram)
    return rows, total / layout.total


@pytest.mark.parametrize("axis", list(Axis))
def test_rows_solve_their_normal_equations(axis: Axis) -> None:
    ratings = random_ratings(5)
    facts = NonPrivateSolver().public_facts(ratings)
    algorithm = VariationalAlgorithm(facts, factors=3, iterations=3, threads=1)
    training = Training(algorithm, LocalExecutor(ratings, 1), PLAIN)
    state = training.run()
    found = algorithm._solved(axis, state)
    rows, covariance = solved(algorithm, axis, state)
    assert np.allclose(found.rows, rows, atol=1e-4)
    assert np.allclose(found.covariance, covariance, atol=1e-4)


def test_the_result_does_not_depend_on_the_size_of_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    ratings = random_ratings(3)
    solver = NonPrivateSolver(factors=3, iterations=3)
    rows = [np.arange(len(ratings)) % count for count in ratings.shape]
    whole = solver.fit(ratings).model.predict_rows(*rows)
    monkeypatch.setattr("taciturn.solvers.variational._NUMBERS", 1)
    assert np.allclose(solver.fit(ratings).model.predict_rows(*rows), whole, atol=1e-4)


def test_noise_is_not_learnt() -> None:
    ratings = random_ratings(2, users=60, items=40)
    fresh = random_ratings(3, users=60, items=40)
    mean = float(np.mean((fresh.values() - ratings.values().mean()) ** 2)) ** 0.5
    assert rmse(NonPrivateSolver().fit(ratings), fresh) < 1.05 * mean


def test_public_item_features_are_used_and_named() -> None:
    random = np.random.default_rng(0)
    kinds, rows = random.normal(size=80), np.arange(1600)
    users, items = rows % 200, (rows * 7 + rows // 200) % 80
    values = np.clip(np.rint(3 + kinds[items] + random.normal(0, 0.5, rows.size)), 1, 5)
    frame = pl.DataFrame({"user_id": users, "item_id": items, "rating": values})
    frame = frame.unique(["user_id", "item_id"], maintain_order=True)
    ratings = load(frame, scale="1:5:1")
    # Most items have a single rating left, so that their features say more than their ratings.
    keep = (ratings.by_user.columns < 40) | (ratings.rows() == ratings.by_user.columns % 7)
    train, test = ratings.select(keep), ratings.select(~keep)
    features = load_item_features(pl.DataFrame({"item_id": np.arange(80), "kind": kinds}))
    fit = NonPrivateSolver().fit(with_item_features(train, features))
    (named,) = fit.ledger.public_inputs
    assert named.kind is InputKind.ITEM_FEATURES
    assert rmse(fit, test) < 0.9 * rmse(NonPrivateSolver().fit(train), test)


@pytest.mark.slow
def test_many_factors_are_hardly_worse() -> None:
    train, test = random_split(synthetic_ratings("100k"), 0.1, seed=1)
    usual, many = (rmse(NonPrivateSolver(factors=each).fit(train), test) for each in (20, 64))
    assert many < 1.01 * usual


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ml-100k", "ml-1m"])
def test_no_private_training_is_better(real_ratings: Callable[[str], Ratings], name: str) -> None:
    train, test = random_split(real_ratings(name), 0.1, seed=11)
    reference = rmse(NonPrivateSolver().fit(train), test)
    for unit in ("value", "rating", "user"):
        for serve in ("fold-in",) if unit == "user" else ("profiles", "fold-in"):
            solver = make_solver("als", unit=unit, serve=serve)
            session = Session(noise=InsecureTestNoise(1))
            fit = solver.fit(train, Budget.from_epsilon(20, 1e-5), session)
            assert reference < rmse(fit, test)
