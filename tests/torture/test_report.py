"""Reports of runs, and the last one, which stands in the documentation."""

import json
from pathlib import Path

import pytest

from tests.torture.report import page
from tests.torture.runner import Plan, carry_out

DOCS = Path(__file__).parents[2] / "docs" / "benchmarks"


def test_the_page_is_the_report_of_a_run_without_findings() -> None:
    results = json.loads((DOCS / "torture.json").read_text(encoding="utf-8"))
    assert (DOCS / "torture.md").read_text(encoding="utf-8") == page(results)
    assert results["findings"] == []
    assert results["inputs"] == sum(sum(each.values()) for each in results["outcomes"].values())
    assert results["kills"] == sum(results["kills_by_phase"].values())


@pytest.mark.slow
def test_a_run_writes_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POLARS_MAX_THREADS", "RUST_BACKTRACE"):
        monkeypatch.setenv(name, "0" if name.startswith("RUST") else "1")
    assert carry_out(Plan(inputs=60, kills=0, jobs=1), tmp_path) == 0
    results = json.loads((tmp_path / "report.json").read_text())
    assert 50 <= results["inputs"] <= 60 and results["kills"] == 0
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert f"| mutated inputs | {results['inputs']} |" in text and "| text | 4 |" in text


def test_findings_stand_in_the_report() -> None:
    results = json.loads((DOCS / "torture.json").read_text(encoding="utf-8"))
    assert "the planted one" in page(results | {"findings": ["the planted one"]})
