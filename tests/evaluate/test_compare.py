"""Comparisons: the same splits for all solvers, exact budgets, cached runs."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taciturn.accounting import gaussian
from taciturn.accounting.units import Unit
from taciturn.data.splits import random_split
from taciturn.errors import InvalidParameter
from taciturn.evaluate import compare
from taciturn.evaluate.compare import BAND_METRICS, METRICS, run_comparison
from taciturn.evaluate.compare_report import as_text, rows, write_comparison
from taciturn.evaluate.metrics import rmse
from taciturn.evaluate.plan import Cell, Plan, predicts_ratings
from taciturn.solvers.catalog import make_solver
from taciturn.solvers.contract import Session
from tests.conftest import Command
from tests.narrow import present
from tests.solvers.helpers import random_ratings

RATINGS = random_ratings(3, users=80, items=40, density=0.4)
PLAN = Plan(
    solvers=("gradient", "bias", "paper", "non-private"),
    units=(Unit.VALUE,),
    epsilons=(10.0, 1.0),
    seeds=2,
)


def run(folder: Path, plan: Plan = PLAN, ratings: Any = RATINGS) -> compare.Comparison:
    return run_comparison(ratings, plan, source="made up", folder=folder)


@pytest.mark.slow
def test_every_cell_is_run_once_and_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(tmp_path)
    assert list(first.results) == PLAN.cells and len(PLAN.cells) == 2 * (3 * 2 + 1 + 2)
    assert len(list((tmp_path / "cells").iterdir())) == len(PLAN.cells)
    monkeypatch.setattr(compare, "_fit", lambda *_: pytest.fail("run again"))
    assert run(tmp_path).results == first.results
    monkeypatch.undo()
    for cell in list((tmp_path / "cells").iterdir())[:3]:
        cell.unlink()
    reported: list[tuple[int, int, float]] = []
    run_comparison(
        RATINGS, PLAN, source="", folder=tmp_path, progress=lambda *facts: reported.append(facts)
    )
    total = len(PLAN.cells)
    counts, shares = [facts[:2] for facts in reported], [facts[2] for facts in reported]
    assert counts == [(total - 3 + n, total) for n in range(4)]
    assert shares[0] == 0 and 0 < shares[1] < 1 and 0 < shares[2] < 1 and shares[3] == 1
    fewer = replace(PLAN, solvers=("bias",), epsilons=(1.0,))
    assert run(tmp_path, fewer).results.keys() < first.results.keys()


@pytest.mark.parametrize("change", ["ratings", "delta", "holdout", "seeds", "first_seed"])
def test_other_ratings_or_settings_are_run(tmp_path: Path, change: str) -> None:
    small = Plan(solvers=("bias",), epsilons=(1.0,), seeds=1)
    run(tmp_path, small)
    before = len(list((tmp_path / "cells").iterdir()))
    plan, ratings = small, RATINGS
    if change == "ratings":
        ratings = random_ratings(4, users=80, items=40, density=0.4)
    else:
        others: dict[str, Any] = {"delta": 1e-6, "holdout": 0.2, "seeds": 2, "first_seed": 7}
        plan = replace(small, **{change: others[change]})
    run(tmp_path, plan, ratings)
    assert len(list((tmp_path / "cells").iterdir())) == 2 * before


@pytest.mark.slow
def test_a_cell_is_a_fit_on_the_split_of_its_seed(tmp_path: Path) -> None:
    found = run(tmp_path).results[Cell(solver="non-private", unit=None, epsilon=None, seed=1)]
    train, test = random_split(RATINGS, 0.1, 1)
    fit = make_solver("non-private").fit(train, session=Session(seed=1))
    assert found.rmse == pytest.approx(rmse(fit, test), rel=1e-9)


def test_the_paper_is_compared_at_the_same_exact_epsilon() -> None:
    cell = Cell(solver="paper", unit=Unit.VALUE, epsilon=5.0, seed=0)
    solver: Any = compare._configured(cell, PLAN)[0]
    mu = solver.epsilon_i / math.sqrt(2 * math.log(125)) * math.sqrt(solver.iterations)
    assert gaussian.epsilon(PLAN.delta, mu) == pytest.approx(5.0)


@pytest.mark.slow
def test_differences_are_paired_by_seed(tmp_path: Path) -> None:
    comparison = run(tmp_path)
    by_kind = {(each.solver, each.epsilon): each for each in comparison.summaries()}
    found = by_kind["bias", 10.0]
    at: dict[str, Any] = {"unit": Unit.VALUE, "epsilon": 10.0}
    gaps = [
        present(comparison.results[Cell(solver="bias", **at, seed=seed)].rmse)
        - present(comparison.results[Cell(solver="gradient", **at, seed=seed)].rmse)
        for seed in (0, 1)
    ]
    assert found.difference == pytest.approx((sum(gaps) / 2, abs(gaps[0] - gaps[1]) / 2), rel=1e-9)
    assert by_kind["gradient", 1.0].difference is None
    assert by_kind["non-private", None].difference is None
    assert by_kind["paper", 1.0].status == "claimed"


def test_units_are_compared_side_by_side(tmp_path: Path) -> None:
    units = (Unit.VALUE, Unit.RATING, Unit.USER)
    plan = Plan(solvers=("bias", "gradient", "non-private"), units=units, epsilons=(5.0,), seeds=1)
    comparison = run(tmp_path, plan)
    kinds = [(each.solver, each.unit) for each in comparison.summaries()]
    assert kinds == [
        *(("bias", unit) for unit in units),
        ("gradient", Unit.VALUE),
        ("non-private", None),
        *(("popularity", unit) for unit in units),
        ("non-private-popularity", None),
    ]
    assert all(0.5 < (each.means["rmse"] or 0) < 2 for each in comparison.summaries()[:5])
    assert comparison.summaries()[1].difference is not None
    page = write_comparison(tmp_path, comparison)[3].read_text()
    for unit in units:
        assert unit.facts.protects.replace("'", "&#x27;") in page or unit.facts.protects in page


def test_solvers_that_support_value_only_are_run_under_value_with_a_note(
    taciturn: Command, tmp_path: Path
) -> None:
    assert Plan().units == (Unit.RATING,)
    plan = Plan(solvers=("gradient", "bias"), units=(Unit.USER,))
    assert plan.kinds == [("gradient", Unit.VALUE), ("bias", Unit.USER)]
    assert plan.value_only == ["gradient"] and plan.units_run == [Unit.USER, Unit.VALUE]
    options = ["--epsilons", "2", "--solvers", "bias,input-perturbation", "--seeds", "1"]
    result = taciturn("compare", "synthetic:10k", *options, "-o", tmp_path / "out", "--json")
    assert "the only one they support: input-perturbation" in result.stderr
    document = json.loads(result.stdout)
    assert [row["unit"] for row in document["results"]] == ["rating", "value"] * 2 + [None]
    assert list(document["units"]) == ["rating", "value"]


@pytest.mark.slow
def test_a_comparison_is_written_as_data_figures_and_a_page(tmp_path: Path) -> None:
    comparison = run(tmp_path)
    files = write_comparison(tmp_path, comparison)
    assert [file.name for file in files] == [f"compare.{e}" for e in ("json", "png", "svg", "html")]
    document = json.loads(files[0].read_text())
    assert document["view"] == "owner" and len(document["results"]) == 9
    assert set(METRICS.values()) <= document["results"][0].keys()
    assert len(document["runs"]) == 18
    page = files[3].read_text()
    assert "owner-only" in page and "http" not in page
    assert len(rows(comparison)) == 10


def test_bands_are_in_text_page_and_json(tmp_path: Path) -> None:
    plan = Plan(solvers=("bias", "non-private-bias"), epsilons=(5.0,), seeds=2)
    comparison = run(tmp_path, plan)
    files = write_comparison(tmp_path, comparison)
    document, page = json.loads(files[0].read_text()), files[3].read_text()
    lines = as_text(comparison).splitlines()
    for name, label in BAND_METRICS.items():
        found = [getattr(each, name) for each in comparison.results.values()]
        assert [run[label] for run in document["runs"]] == [list(each) for each in found]
        for row in document["results"]:
            runs = [
                getattr(each, name)
                for cell, each in comparison.results.items()
                if (cell.solver, cell.unit) == (row["solver"], row["unit"])
            ]
            if row[label][0] is None:
                assert not predicts_ratings(row["solver"]) and name.startswith("rmse")
                continue
            assert row[label] == pytest.approx([(a + b) / 2 for a, b in zip(*runs, strict=True)])
            shown = " ".join(f"{value:.3f}" for value in row[label])
            assert any(line.startswith(row["solver"]) for line in lines if shown in line)
            assert "".join(f"<td>{value:.4f}</td>" for value in row[label]) in page


def test_a_band_that_a_split_lacks_is_shown_as_missing(tmp_path: Path) -> None:
    comparison = run(tmp_path, Plan(solvers=("non-private-bias",), seeds=2))
    cell, found = next(iter(comparison.results.items()))
    bands = (None, *found.rmse_by_activity[1:])
    comparison.results[cell] = replace(found, rmse_by_activity=bands)
    summary = comparison.summaries()[0]
    assert summary.bands["rmse_by_activity"][0] is None
    assert None not in summary.bands["rmse_by_popularity"]
    second = f"{summary.bands['rmse_by_activity'][1]:.3f}"
    assert f"      – {second} " in as_text(comparison)
    page = write_comparison(tmp_path, comparison)[3].read_text()
    assert f"<td>non-private-bias</td><td>–</td><td>–</td><td>–</td><td>{second}" in page


@pytest.mark.parametrize("content", ["", "{}", '{"rmse": 1}'])
def test_a_damaged_result_is_run_again(tmp_path: Path, content: str) -> None:
    small = Plan(solvers=("non-private",), seeds=1)
    before = run(tmp_path, small)
    files = list((tmp_path / "cells").iterdir())
    for file in files:
        file.write_text(content)
    assert run(tmp_path, small).results.keys() == before.results.keys()
    assert all("ndcg" in json.loads(file.read_text())["result"] for file in files)


@pytest.mark.parametrize(
    "options",
    [
        {"solvers": ("nothing",)},
        {"solvers": ()},
        {"solvers": ("bias", "bias")},
        {"epsilons": ()},
        {"epsilons": (1.0, 1.0)},
        {"epsilons": (-1.0,)},
        {"units": ()},
        {"units": (Unit.VALUE, Unit.VALUE)},
        {"units": ("household",)},
        {"delta": 2.0},
        {"seeds": 0},
        {"holdout": 1.5},
    ],
)
def test_bad_plans_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        replace(PLAN, **options)


def test_the_command_prints_and_writes_a_comparison(taciturn: Command, tmp_path: Path) -> None:
    options = ["--epsilons", "2,20", "--solvers", "bias,non-private", "--seeds", "2"]
    options += ["--units", "value"]
    result = taciturn("compare", "synthetic:100k", *options, "-o", tmp_path / "out", "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    rmse_at = {row["epsilon"]: row["rmse"] for row in document["results"] if row["rmse"]}
    assert rmse_at[None] < rmse_at[20.0] < rmse_at[2.0]
    assert all(Path(file).exists() for file in document["files"])
    again = taciturn("compare", "synthetic:100k", *options, "-o", tmp_path / "out")
    assert again.stdout.splitlines()[0].split()[:3] == ["solver", "unit", "ε"]
    assert "owner-only" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epsilons", "1,x"], "numbers separated by commas"),
        (["--solvers", "best"], "solvers must be"),
        (["--seeds", "0"], "seeds"),
    ],
)
def test_bad_options_are_refused_by_the_command(
    taciturn: Command, tmp_path: Path, arguments: list[str], message: str
) -> None:
    result = taciturn("compare", "synthetic:10k", *arguments, "-o", tmp_path / "out")
    assert result.returncode == 2 and message in result.stderr


def test_users_fold_in_where_the_plan_says_so() -> None:
    """Cells keep their keys, so that runs can be paired with those of published profiles."""
    published = Plan(solvers=("als", "bias"), epsilons=(5.0,), seeds=1)
    folded = replace(published, serve="fold-in")
    assert published.cells == folded.cells
    one, two = (run_comparison(RATINGS, plan) for plan in (published, folded))
    assert one.to_dict()["serve"] is None and two.to_dict()["serve"] == "fold-in"
    assert [folded.make_solver(name, None).folds_in for name in ("als", "bias")] == [True, False]
    pairing = two.against(one).pairing()
    assert pairing is not None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"solvers": ("bias",), "serve": "fold-in"}, "none of the solvers has the setting serve"),
        ({"solvers": ("als",), "units": ("user",), "serve": "profiles"}, "no user profile"),
        ({"solvers": ("als",), "serve": "both"}, "serve must be one of"),
        ({"solvers": ("als",), "serve": 1}, "serve must be one of"),
    ],
)
def test_a_plan_that_cannot_serve_users_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        Plan(**options)
