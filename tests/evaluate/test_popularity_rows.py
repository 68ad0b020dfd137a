"""Rows of popularity in a comparison: always there, never the baseline, without errors."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.accounting.units import Unit
from taciturn.data.splits import random_split
from taciturn.evaluate.compare import METRICS, Comparison, run_comparison
from taciturn.evaluate.compare_plot import draw_comparison
from taciturn.evaluate.compare_report import LISTS_TITLE, as_text, write_comparison
from taciturn.evaluate.cross_validation import cross_validate
from taciturn.evaluate.plan import Cell, Plan
from taciturn.solvers.popularity import PopularitySolver
from tests.conftest import Command
from tests.narrow import present
from tests.solvers.helpers import BUDGET, random_ratings

RATINGS = random_ratings(3, users=60, items=30, density=0.4)
UNITS = (Unit.VALUE, Unit.USER)
PLAN = Plan(solvers=("bias", "non-private-bias"), units=UNITS, epsilons=(1.0, 5.0), seeds=2)
EXACT = Cell(solver="non-private-popularity", unit=None, epsilon=None, seed=0)


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return run_comparison(RATINGS, PLAN, source="made up")


def kinds(plan: Plan) -> list[tuple[str, str | None, float | None]]:
    return [
        (cell.solver, cell.unit, cell.epsilon)
        for cell in plan.cells
        if cell.seed == plan.first_seed and "popularity" in cell.solver
    ]


def test_popularity_is_compared_under_every_unit_and_budget() -> None:
    found = kinds(PLAN)
    assert found == [
        ("popularity", "value", 0.0),
        ("popularity", "user", 1.0),
        ("popularity", "user", 5.0),
        ("non-private-popularity", None, None),
    ]
    named = replace(PLAN, solvers=("popularity", "bias", "non-private-popularity"))
    assert sorted(kinds(named), key=str) == sorted(found, key=str)
    assert len(set(named.cells)) == len(named.cells)
    value_only = replace(PLAN, solvers=("gradient",), units=(Unit.RATING,))
    assert {unit for _, unit, _ in kinds(value_only)} == {"rating", "value", None}


def test_popularity_is_never_the_baseline(comparison: Comparison) -> None:
    assert PLAN.baseline == ("bias", Unit.VALUE)
    assert replace(PLAN, solvers=("popularity", "bias")).baseline == ("bias", Unit.VALUE)
    alone = replace(PLAN, solvers=("popularity",), seeds=1)
    assert alone.baseline is None
    document = run_comparison(RATINGS, alone).to_dict()
    assert document["compared_with"] is None and document["compared_with_unit"] is None
    assert all(
        (each.difference is None) == ("popularity" in each.solver or each.epsilon is None)
        for each in comparison.summaries()
        if (each.solver, each.unit) != PLAN.baseline
    )


def test_popularity_has_lists_and_no_errors(comparison: Comparison) -> None:
    document = json.loads(json.dumps(comparison.to_dict()))
    for row in [*document["results"], *document["runs"]]:
        has_errors = "popularity" not in row["solver"]
        assert all((row[METRICS[name]] is None) != has_errors for name in ("rmse", "mae"))
        for name in ("ndcg", "recall", "item_coverage", "novelty"):
            assert row[METRICS[name]] >= 0
    errors, lists = as_text(comparison).split("\n\n")[:2]
    assert "popularity" not in errors and lists.startswith(LISTS_TITLE)
    assert sum("popularity" in line for line in lists.splitlines()) == 4


def test_exact_popularity_lists_the_items_with_most_ratings(comparison: Comparison) -> None:
    """NDCG@10 by hand."""
    train, test = random_split(RATINGS, PLAN.holdout, 0)
    counts = np.diff(train.by_item.starts)
    gains, found = 1 / np.log2(np.arange(2, 12)), []
    for user in range(RATINGS.shape[0]):
        mine = slice(*test.by_user.starts[user : user + 2])
        relevant = set(test.by_user.columns[mine][test.values()[mine] >= 4].tolist())
        if not relevant:
            continue
        seen = train.by_user.columns[slice(*train.by_user.starts[user : user + 2])]
        order = [i for i in np.argsort(-counts, kind="stable") if i not in set(seen.tolist())]
        hits = np.array([item in relevant for item in order[:10]])
        found.append((hits * gains[: hits.size]).sum() / gains[: len(relevant)].sum())
    assert comparison.results[EXACT].ndcg == pytest.approx(np.mean(found), rel=1e-9)
    value = Cell(solver="popularity", unit=Unit.VALUE, epsilon=0.0, seed=0)
    assert comparison.results[value] == comparison.results[EXACT]


def test_rows_of_popularity_are_not_paired_with_an_earlier_run(
    tmp_path: Path, comparison: Comparison
) -> None:
    for earlier in (comparison, write_comparison(tmp_path, comparison)[0]):
        pairing = present(comparison.against(earlier).pairing())
        assert {each.solver for each in pairing.differences} == set(PLAN.solvers)
        assert pairing.notes == ()


def test_the_plot_shows_popularity_beside_lists_only(comparison: Comparison) -> None:
    errors, lists = draw_comparison(comparison).axes
    shown = [
        {label.partition(",")[0] for label in panel.get_legend_handles_labels()[1]}
        for panel in (errors, lists)
    ]
    assert shown[0] == {"bias", "non-private-bias (not private)"}
    assert shown[1] - shown[0] == {"popularity", "non-private-popularity (not private)"}


def test_cross_validation_of_popularity_measures_lists_alone() -> None:
    found = cross_validate(RATINGS, PopularitySolver(), BUDGET, folds=2)
    assert found.mean("rmse") is None and "RMSE" not in repr(found)
    assert present(found.mean("ndcg")) > 0 and "NDCG@10" in repr(found)
    assert found.to_frame()["rmse"].to_list() == [None, None]


def test_text_tables_fit_a_terminal_of_120_columns(comparison: Comparison) -> None:
    assert max(map(len, as_text(comparison).splitlines())) <= 120


def test_the_command_adds_the_rows_that_were_not_named(taciturn: Command, tmp_path: Path) -> None:
    options: list[Any] = ["--solvers", "bias", "--epsilons", "1", "--seeds", "1", "--json"]
    result = taciturn("compare", "synthetic:10k", *options, "-o", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)["results"]
    assert [row["solver"] for row in rows] == ["bias", "popularity", "non-private-popularity"]
    assert [row["rmse"] is None for row in rows] == [False, True, True]
    assert all(math.isfinite(row["novelty@10_unrated"]) for row in rows)
