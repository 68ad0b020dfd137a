"""`taciturn paper` end to end, on a small replacement for the anime set and on real data."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.commands import MAIN
from tests.conftest import Command
from tests.reproduction.helpers import write_anime


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TACITURN_DATA", str(write_anime(tmp_path / "data")))
    monkeypatch.setenv("TACITURN_CACHE", str(tmp_path / "cache"))
    return tmp_path


def points(folder: Path, number: int) -> list[dict[str, Any]]:
    document = json.loads((folder / f"figure-{number:02}.json").read_text())
    assert document["figure"] == number
    found: list[dict[str, Any]] = document["points"]
    return found


@pytest.mark.slow
def test_figures_of_epsilon_need_no_data(taciturn: Command, tmp_path: Path) -> None:
    result = taciturn("paper", "figure", "10-11", "22", "-o", tmp_path / "figures", "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert [each["figure"] for each in document["figures"]] == [10, 11, 22]
    for each in document["figures"]:
        assert all(Path(file).stat().st_size > 500 for file in each["files"])
        assert each["largest_deviation"]["epsilon_paper"] < 0.05
    found = points(tmp_path / "figures", 10)
    assert {point["quantity"] for point in found} == {"epsilon_paper", "epsilon_exact"}
    assert max(point["x"] for point in found) == 60


def test_times_are_written_beside_those_of_the_paper(taciturn: Command, stand_in: Path) -> None:
    out = stand_in / "figures"
    result = taciturn("paper", "figure", "18", "--max-factors", "12", "-o", out)
    assert result.returncode == 0, result.stderr
    found = points(out, 18)
    assert [(point["series"], point["x"]) for point in found] == [
        (series, x) for series in ("eps_i=0.50", "non-private") for x in (4, 12)
    ]
    assert all(point["quantity"] == "ms" and point["y"] > 0 for point in found)


@pytest.mark.slow
def test_a_report_uses_the_cached_cells_of_a_figure(taciturn: Command, stand_in: Path) -> None:
    out = stand_in / "figures"
    result = taciturn("paper", "figure", "6", "-o", out)
    assert result.returncode == 0, result.stderr
    found = points(out, 6)
    quantities = {"rmse", "rmse_test", "epsilon_paper", "epsilon_exact"}
    assert {point["quantity"] for point in found} == quantities
    # Not the paper's data: errors are not compared, the overall epsilon is.
    assert all("paper" not in point for point in found if point["quantity"] == "rmse")
    cached = {file: file.stat().st_mtime_ns for file in (stand_in / "cache" / "paper").iterdir()}
    assert len(cached) == 12
    again = taciturn("paper", "report", "3", "-o", out, "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["figures"] == [3, 6]
    assert all(file.stat().st_mtime_ns == when for file, when in cached.items())
    assert len(list((stand_in / "cache" / "paper").iterdir())) == 14  # with those without noise
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Figure 3" in page and "Figure 6" in page and "held-out" in page


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_reproduction_can_be_resumed(
    taciturn: Command, stand_in: Path, sign: signal.Signals
) -> None:
    folder = str(stand_in / "figures")
    arguments = ["paper", "figure", "9", "--max-factors", "4", "-o", folder, "--jobs", "2"]
    process = subprocess.Popen(
        [*MAIN, *arguments], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    cells = stand_in / "cache" / "paper"
    deadline = time.monotonic() + 100
    while not (cells.exists() and any(cells.glob("*.json"))) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(sign)
    _, errors = process.communicate(timeout=60)
    if sign is signal.SIGINT:
        assert process.returncode == 130 and "interrupted" in errors
    # No process is left, even if the parent was killed.
    for _ in range(200):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.05)
    else:
        pytest.fail("processes are left behind")
    cached = {file: file.stat().st_mtime_ns for file in cells.glob("*.json")}
    assert 0 < len(cached) < 12
    result = taciturn(*arguments)
    assert result.returncode == 0, result.stderr
    assert all(file.stat().st_mtime_ns == when for file, when in cached.items())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figure", "28", "-o", "x"], "1 to 27"),
        (["figure", "four", "-o", "x"], "figure numbers"),
        (["figure", "5-3", "-o", "x"], "smaller number"),
        (["report", "-o", "x"], "has no figures"),
        (["leak", "--dataset", "synthetic:10k", "--epsilon-i", "1000"], "smaller epsilon"),
        (["figure", "12", "-o", "x", "--protocol", "printed"], "protocol"),
        (["figure", "12", "-o", "x", "--stop", "never"], "stop"),
        (["figure", "12", "-o", "x", "--seeds", "0"], "seeds"),
        (["figure", "12-", "-o", "x"], "figure numbers"),
        (["figure", "12", "-o", "x", "--max-factors", "3"], "at least 4"),
        (["figure", "12", "-o", "data/anime.zip"], "is a file"),
        (["leak", "-o", "data/anime.zip"], "is a file"),
        (["report", "-o", "x", "--stop", "never"], "stop"),
        (["figure", "3", "-o", "x", "--jobs", "0"], "jobs"),
        (["leak", "--dataset", "nothing"], "no set"),
        (["leak", "--dataset", "synthetic:100k", "--item", "none"], "no item"),
    ],
)
def test_bad_options_name_the_expected_value(
    taciturn: Command, stand_in: Path, arguments: list[str], message: str
) -> None:
    result = taciturn("paper", *arguments, cwd=stand_in)
    assert result.returncode == 2
    assert message in result.stderr and result.stderr.count("\n") == 1
    assert result.stdout == ""


@pytest.mark.slow
def test_a_leak_is_printed_and_written(taciturn: Command, tmp_path: Path) -> None:
    options = [
        "--dataset",
        "synthetic:100k",
        "--transcripts",
        "2",
        "--iterations",
        "4",
        "--jobs",
        1,
    ]
    result = taciturn("paper", "leak", *options, "-o", tmp_path)
    assert result.returncode == 0, result.stderr
    assert "true 3.4956" in result.stdout and "never above the recorded mu" in result.stdout
    document = json.loads((tmp_path / "leak.json").read_text())
    keys = {"counterexample", "claimed_epsilon", "claimed_delta", "items"}
    assert keys <= document.keys() and (tmp_path / "leak.svg").exists()


@pytest.mark.slow
def test_the_leak_on_real_ratings_exceeds_the_claim(
    taciturn: Command, real_set: Any, tmp_path: Path
) -> None:
    real_set("ml-1m.zip")
    result = taciturn("paper", "leak", "--item", "2858", "--transcripts", 4, "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["claimed_epsilon"] == pytest.approx(13.1837, abs=1e-4)
    (item,) = document["items"]
    assert item["raters"] == 3428
    # Every transcript shows it: four of them bound the probability by 0.005^(1/4) = 0.27.
    assert item["delta_at_claim_lower"] >= 0.25 and document["claimed_delta"] == 1e-5
