"""Comparisons with public ratings: the row with ε = 0, and users who are in both."""

from dataclasses import replace

import polars as pl
import pytest

from taciturn.accounting.units import Unit
from taciturn.data import load_public_ratings
from taciturn.data.public_ratings import with_public_ratings
from taciturn.data.splits import random_split
from taciturn.errors import InvalidParameter
from taciturn.evaluate.compare import run_comparison
from taciturn.evaluate.metrics import rmse
from taciturn.evaluate.plan import PUBLIC, Cell, Plan
from taciturn.solvers.als.public_alone import public_alone
from taciturn.solvers.als.solver import AlsSolver
from tests.solvers.helpers import random_ratings

FRAME = random_ratings(1).to_frame()
RATINGS = with_public_ratings(random_ratings(), load_public_ratings(FRAME, scale="1:5:1"))
PLAN = Plan(
    solvers=("bias", "als"),
    units=(Unit.USER, Unit.RATING),
    epsilons=(1.0,),
    seeds=1,
    has_public=True,
)


def test_the_row_is_of_the_public_ratings_alone() -> None:
    found = run_comparison(RATINGS, PLAN)
    train, test = random_split(RATINGS, PLAN.holdout, 0)
    for unit in PLAN.units:
        cell = Cell(solver=PUBLIC, unit=Unit(unit), epsilon=0.0, seed=0)
        model = public_alone(train, AlsSolver(unit=unit))
        assert found.results[cell].rmse == pytest.approx(rmse(model, test))
        assert found.statuses[PUBLIC, Unit(unit)] == "public"
    public = [each for each in found.summaries() if each.solver == PUBLIC]
    assert len(public) == 2 and all(each.difference is None for each in public)


def test_without_public_ratings_there_is_no_row() -> None:
    assert not replace(PLAN, has_public=False).public_kinds
    assert PLAN.public_kinds == [(PUBLIC, Unit.USER), (PUBLIC, Unit.RATING)]
    assert not replace(PLAN, solvers=("bias",)).public_kinds


def test_users_of_the_public_ratings_are_not_tested_if_declared() -> None:
    some = load_public_ratings(FRAME.filter(pl.col("user_id") <= 10), scale="1:5:1")
    ratings = with_public_ratings(random_ratings(), some)
    plan = replace(PLAN, solvers=("als",), units=(Unit.USER,), same_users=True)
    found = run_comparison(ratings, plan)
    train, test = random_split(ratings, PLAN.holdout, 0)
    tested = test.select(test.rows() >= 10)
    assert 0 < len(tested) < len(test)
    cell = Cell(solver=PUBLIC, unit=Unit.USER, epsilon=0.0, seed=0)
    model = public_alone(train, AlsSolver(unit=Unit.USER))
    assert found.results[cell].rmse == pytest.approx(rmse(model, tested))


def test_a_test_without_users_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="leave out same_users"):
        run_comparison(RATINGS, replace(PLAN, same_users=True))


def test_comparisons_with_other_test_users_are_not_paired() -> None:
    plan = replace(PLAN, solvers=("als",), units=(Unit.USER,))
    found = run_comparison(RATINGS, plan)
    with pytest.raises(InvalidParameter, match="was made without same_users"):
        found.against(found).earlier.check(replace(plan, same_users=True), found.ratings_digest)  # type: ignore[union-attr]
