"""Reports of runs, and the last one, which stands in the documentation."""

import json
import re
from pathlib import Path

import pytest

from tests.torture.catalog import TARGETS
from tests.torture.report import page
from tests.torture.runner import Plan, carry_out
from tests.torture.workers import tried

COMMAND = re.compile(r"python -m tests\.torture '(.+)' --seed (\d+) --index (\d+)\n")
DOCS = Path(__file__).parents[2] / "docs" / "benchmarks"


def test_the_page_is_the_report_of_a_run() -> None:
    results = json.loads((DOCS / "torture.json").read_text(encoding="utf-8"))
    assert (DOCS / "torture.md").read_text(encoding="utf-8") == page(results)
    assert results["inputs"] == sum(sum(each.values()) for each in results["outcomes"].values())
    assert results["kills"] == sum(results["kills_by_phase"].values())


def test_every_finding_of_the_report_is_fixed(tmp_path: Path) -> None:
    """A finding begins with the command that repeats its input; one of a kill must not stay."""
    results = json.loads((DOCS / "torture.json").read_text(encoding="utf-8"))
    for finding in results["findings"]:
        found = COMMAND.match(finding)
        assert found is not None, finding
        name, seed, index = found.groups()
        assert tried(TARGETS[name](tmp_path), int(seed), int(index)).finding is None, found[0]


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
