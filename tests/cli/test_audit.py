"""`taciturn audit` end to end."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from taciturn.release.read import load_release
from tests.conftest import Command
from tests.solvers.helpers import random_ratings

Audit = Callable[..., subprocess.CompletedProcess[str]]

KEYS = {
    "claimed_epsilon",
    "delta",
    "claimed_mu",
    "lower_bound",
    "lower_bound_mu",
    "lower_bound_gaussian",
    "confidence",
    "runs",
    "verdict",
}


@pytest.fixture
def audit(taciturn: Command) -> Audit:
    """Run `taciturn audit` and check its exit code."""

    def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        result = taciturn("audit", *arguments)
        assert result.returncode == code, result.stderr
        return result

    return run


@pytest.mark.slow
def test_the_claim_of_the_paper_is_violated(audit: Audit, tmp_path: Path) -> None:
    arguments = ("two-worlds", "--solver", "paper", "--runs", "150", "-o", tmp_path / "a")
    run = audit(*arguments, "--json", code=1)
    facts = json.loads(run.stdout)
    assert facts.keys() >= KEYS
    assert facts["verdict"] == "violated" and facts["claimed_epsilon"] == 1
    assert facts["lower_bound_mu"] > facts["claimed_mu"]
    files = {file.name for file in (tmp_path / "a").iterdir()}
    assert files == {"audit.json", "audit.png", "audit.svg", "audit.html", "runs"}
    page = (tmp_path / "a" / "audit.html").read_text(encoding="utf-8")
    assert "the claim is violated" in page and "http" not in page.replace("http://www.w3.org", "")
    again = audit(*arguments, code=1)  # resumes from the cached runs
    assert "verdict: the claim is violated" in again.stdout
    assert "FAILED" in again.stdout and "owner-only" in again.stderr


@pytest.mark.slow
def test_a_sound_solver_passes_an_audit(audit: Audit) -> None:
    run = audit("two-worlds", "--solver", "bias", "--runs", "200", "--confidence", "0.999")
    assert "verdict: no evidence against the claim" in run.stdout
    assert "private" not in run.stdout


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["rating", "user"])
def test_units_that_protect_the_rating_pattern_pass_an_audit(audit: Audit, unit: str) -> None:
    arguments = "two-worlds", "--unit", unit, "--runs", "40", "--confidence", "0.9999", "--jobs", 1
    facts = json.loads(audit(*arguments, "--json").stdout)
    assert facts["verdict"] == "no-evidence" and facts["settings"]["unit"] == unit
    assert "or not" in facts["pair"] or "or absent" in facts["pair"]
    assert all(check["passed"] for check in facts["checks"])


@pytest.mark.slow
def test_an_audit_that_is_too_small_prints_a_warning(audit: Audit) -> None:
    run = audit("two-worlds", "--solver", "bias", "--runs", "1", "--jobs", 1)
    assert "could not have refuted the claim" in run.stderr


def test_one_run_and_attack_report_their_bounds(audit: Audit, tmp_path: Path) -> None:
    ratings = tmp_path / "ratings.csv"
    random_ratings(1, users=60, items=50).to_frame().write_csv(ratings)
    common = (str(ratings), "--scale", "1:5:1", "--confidence", "0.9999", "--json")
    facts = json.loads(audit("one-run", *common, "--solver", "bias").stdout)
    assert facts.keys() >= KEYS and facts["canaries"] > 30 and facts["runs"] == 1
    command = ("attack", *common, "--values", "2:4", "--epsilon", "5")
    facts = json.loads(audit(*command, "--solver", "gradient").stdout)
    assert facts.keys() >= KEYS
    assert facts["mu_between_values"] == pytest.approx(facts["claimed_mu"] / 2, rel=1e-6)
    assert facts["true_positive_rate_bound"] < 1 and "not protected" in facts["existence"]


@pytest.mark.slow
def test_an_audit_takes_its_configuration_from_a_release(
    taciturn: Command, audit: Audit, tmp_path: Path
) -> None:
    ratings, release = tmp_path / "ratings.csv", tmp_path / "release"
    random_ratings(1).to_frame().write_csv(ratings)
    options = ("--scale", "1:5:1", "--solver", "bias", "--epsilon", "3", "-o", str(release))
    taciturn("train", str(ratings), *options)
    arguments = ("two-worlds", "--like", release, "--runs", "50", "--json")
    facts = json.loads(audit(*arguments, "--confidence", "0.9999").stdout)
    assert facts["solver"] == "bias" and facts["settings"]["regularization"] == 1
    assert facts["claimed_epsilon"] == pytest.approx(3, rel=1e-3)
    paper = tmp_path / "paper"
    taciturn(
        "train",
        ratings,
        "--scale",
        "1:5:1",
        "--solver",
        "paper",
        "--unit",
        "value",
        "--epsilon",
        1,
        "-o",
        paper,
    )
    sure = ("--scale", "1:5:1", "--confidence", "0.999999", "--json")
    run = audit("one-run", ratings, "--like", paper, *sure)
    assert json.loads(run.stdout)["claimed_mu"] == load_release(paper).certificate.mu
    refused = audit(*arguments, "--epsilon", "5", code=2)
    assert "leave other options out" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("two-worlds", "--solver", "non-private"), "no claim to audit"),
        (("two-worlds", "--solver", "magic"), "one of als"),
        (("two-worlds", "--view", "nothing"), "transcript, release"),
        (("two-worlds", "--user", "3"), "rating of real data"),
        (("two-worlds", "--runs", "0"), "runs"),
        (("one-run", "--canaries", "5"), "needs 10"),
        (("one-run", "--canaries", "20", "--guesses", "30"), "guesses"),
        (("attack", "--values", "high"), "two numbers"),
        (("attack", "--like", "nowhere"), "nowhere"),
    ],
)
def test_bad_options_get_one_line(audit: Audit, arguments: tuple[str, ...], words: str) -> None:
    run = audit(*arguments, code=2)
    assert words in run.stderr and run.stderr.count("\n") == 1
