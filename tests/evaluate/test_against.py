"""Paired differences from an earlier comparison: by hand, and refused where splits differ."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taciturn.accounting.units import Unit
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.evaluate import compare
from taciturn.evaluate.against import EarlierRuns, PairedDifference
from taciturn.evaluate.compare import Comparison, run_comparison
from taciturn.evaluate.compare_report import as_html, as_text, write_comparison
from taciturn.evaluate.plan import Cell, Plan
from tests.conftest import Command
from tests.narrow import present
from tests.solvers.helpers import random_ratings

RATINGS = random_ratings(3, users=60, items=30, density=0.4)
PLAN = Plan(solvers=("bias", "non-private-bias"), epsilons=(1.0, 10.0), seeds=2)
AT_ONE: dict[str, Any] = {"solver": "bias", "unit": Unit.RATING, "epsilon": 1.0}
NOT_PRIVATE: dict[str, Any] = {"solver": "non-private-bias", "unit": None, "epsilon": None}


def document(errors: dict[Cell, float], **changes: Any) -> dict[str, Any]:
    """Document as written before it had a digest of the ratings and bands of users."""
    runs = [
        {
            "solver": cell.solver,
            "unit": cell.unit,
            "epsilon": cell.epsilon,
            "seed": cell.seed,
            "rmse": error,
            "mae": 0.7,
            "rmse_by_popularity": [1.0, None, 1.0, 1.0, 1.0],
            "unknown_users": 0,
        }
        for cell, error in errors.items()
    ]
    return {"view": "owner", "source": "old.csv", "delta": 1e-5, "holdout": 0.1, "runs": runs} | (
        changes
    )


def old_errors(plan: Plan = PLAN) -> dict[Cell, float]:
    return dict.fromkeys(plan.cells, 1.0)


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return run_comparison(RATINGS, PLAN, source="made up")


def write(folder: Path, content: object) -> Path:
    file = folder / "results.json"
    file.write_text(json.dumps(content))
    return file


def test_differences_match_a_computation_by_hand() -> None:
    old = {
        Cell(**AT_ONE, seed=0): 1.00,
        Cell(**AT_ONE, seed=1): 1.10,
        Cell(**AT_ONE, seed=7): 9.00,
        Cell(**NOT_PRIVATE, seed=1): 0.90,
    }
    new = {
        Cell(**AT_ONE, seed=0): 1.01,
        Cell(**NOT_PRIVATE, seed=0): 0.50,
        Cell(**AT_ONE, seed=1): 1.14,
        Cell(**AT_ONE | {"unit": Unit.USER}, seed=1): 1.50,
        Cell(**NOT_PRIVATE, seed=1): 0.88,
    }
    pairing = EarlierRuns.from_dict(document(old), "old.json").pair(new)
    first, second = pairing.differences
    # Differences of 0.01 and 0.04: mean 0.025, standard deviation 0.03/√2, over √2.
    assert (first.solver, first.unit, first.epsilon, first.pairs) == (*AT_ONE.values(), 2)
    assert first.difference == pytest.approx(0.025) and first.error == pytest.approx(0.015)
    expected = PairedDifference(**NOT_PRIVATE, pairs=1, difference=0.88 - 0.90, error=None)
    assert second == expected
    assert "2 of 5 runs of this comparison, 1 of 4 in old.json" in pairing.notes[-1]


def test_a_run_is_paired_with_a_document_without_a_digest(
    tmp_path: Path, comparison: Comparison
) -> None:
    paired = comparison.against(write(tmp_path, document(old_errors()))).pairing()
    assert paired is not None and comparison.pairing() is None
    assert [each.pairs for each in paired.differences] == [2, 2, 2]
    gaps = [present(comparison.results[Cell(**AT_ONE, seed=seed)].rmse) - 1 for seed in (0, 1)]
    assert paired.differences[0].difference == pytest.approx(sum(gaps) / 2)
    assert paired.differences[0].error == pytest.approx(abs(gaps[0] - gaps[1]) / 2)
    (note,) = paired.notes
    assert "no digest of its ratings" in note and "old.csv" in note


def test_a_comparison_differs_from_itself_by_nothing(
    tmp_path: Path, comparison: Comparison
) -> None:
    file = write_comparison(tmp_path, comparison)[0]
    for earlier in (comparison, file, str(file)):
        paired = comparison.against(earlier).pairing()
        assert paired is not None and paired.notes == ()
        assert all(each.difference == each.error == 0 for each in paired.differences)
    # A document that has differences of its own can be an earlier one too.
    again = write_comparison(tmp_path, comparison.against(file))[0]
    assert comparison.against(again).earlier is not None


def test_differences_are_in_text_page_and_json(tmp_path: Path, comparison: Comparison) -> None:
    earlier = document(old_errors() | {Cell(**AT_ONE, seed=9): 1.0}, source="<old>")
    paired = comparison.against(write(tmp_path, earlier))
    files = write_comparison(tmp_path, paired)
    written, page = json.loads(files[0].read_text())["against"], files[3].read_text()
    assert written["source"] == "<old>" and len(written["notes"]) == 2
    first = written["differences"][0]
    assert first["pairs"] == 2 and first["rmse_difference"] == pytest.approx(
        comparison.summaries()[0].means["rmse"] - 1  # type: ignore[operator]
    )
    shown = f"{first['rmse_difference']:+.4f} ± {first['rmse_difference_error']:.4f}"
    assert shown in as_text(paired) and shown in page
    assert shown in as_html(paired) and shown in repr(paired)
    assert "&lt;old&gt;" in page and "<old>" not in page
    assert shown not in as_text(comparison) and "against" not in comparison.to_dict()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"holdout": 0.2}, "holdout 0.2, not 0.1"),
        ({"delta": 1e-6}, "delta 1e-06, not 1e-05"),
        ({"ratings_digest": "0" * 64}, "other ratings"),
        ({"runs": []}, "no run of"),
        ({"runs": document({Cell(**AT_ONE, seed=2): 1.0})["runs"]}, "no run of"),
    ],
)
def test_other_splits_are_refused_before_the_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], message: str
) -> None:
    file = write(tmp_path, document(old_errors(), **change))
    monkeypatch.setattr(compare, "_fit", lambda *_: pytest.fail("run"))
    with pytest.raises(InvalidParameter, match=message) as caught:
        run_comparison(RATINGS, PLAN, against=file)
    assert "\n" not in str(caught.value)


def test_comparisons_of_other_ratings_are_not_paired(comparison: Comparison) -> None:
    others = random_ratings(4, users=60, items=30, density=0.4)
    other = run_comparison(others, replace(PLAN, solvers=("non-private-bias",)))
    with pytest.raises(InvalidParameter, match="other ratings"):
        comparison.against(other)


def without(name: str) -> Callable[[dict[str, Any]], object]:
    return lambda whole: {key: value for key, value in whole.items() if key != name}


def with_run(**changes: Any) -> Callable[[dict[str, Any]], object]:
    return lambda whole: whole | {"runs": [whole["runs"][0] | changes]}


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: [],
        lambda whole: "runs",
        lambda whole: None,
        *(without(name) for name in ("runs", "source", "delta", "holdout")),
        lambda whole: whole | {"runs": 3},
        lambda whole: whole | {"runs": [1]},
        lambda whole: whole | {"delta": "small"},
        lambda whole: whole | {"holdout": True},
        lambda whole: whole | {"ratings_digest": 5},
        with_run(unit="household"),
        with_run(unit=[]),
        with_run(epsilon="1"),
        with_run(seed=0.5),
        with_run(solver=None),
        with_run(rmse=None),
        with_run(rmse=10**400),
    ],
)
def test_other_documents_are_refused(tmp_path: Path, damage: Callable[..., object]) -> None:
    file = write(tmp_path, damage(document(old_errors())))
    with pytest.raises(InvalidDocument, match="not a document of taciturn compare"):
        EarlierRuns.read(file)


def test_repeated_runs_and_missing_files_are_refused(tmp_path: Path) -> None:
    whole = document(old_errors())
    with pytest.raises(InvalidDocument, match="two runs of one solver"):
        EarlierRuns.read(write(tmp_path, whole | {"runs": whole["runs"] * 2}))
    with pytest.raises(InvalidDocument, match="does not exist"):
        EarlierRuns.read(tmp_path / "none.json")


def test_the_command_pairs_with_its_own_output(taciturn: Command, tmp_path: Path) -> None:
    options = ["--epsilons", "2", "--solvers", "bias", "--units", "value", "--seeds"]
    first = taciturn("compare", "synthetic:10k", *options, "2", "-o", tmp_path / "old", "--json")
    printed = tmp_path / "printed.json"
    printed.write_text(first.stdout)
    options += ["3", "--against"]
    result = taciturn("compare", "synthetic:10k", *options, printed, "-o", tmp_path / "new")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    row = lines[lines.index("RMSE difference from the earlier run on the same splits") + 2].split()
    assert row[:4] == ["bias", "value", "2", "2"] and math.isfinite(float(row[4]))
    assert "1 of 3 runs of this comparison, 0 of 2 in" in result.stderr
    assert "digest" not in result.stderr
    file = tmp_path / "old" / "compare.json"
    options = ["--holdout", "0.2", *options]
    refused = taciturn("compare", "synthetic:10k", *options, file, "-o", tmp_path / "none")
    assert refused.returncode == 2 and len(refused.stderr.splitlines()) == 1
    assert "--holdout 0.1, not 0.2" in refused.stderr and not (tmp_path / "none").exists()
