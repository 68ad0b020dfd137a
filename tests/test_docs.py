"""What the documentation shows is what happens: its commands and code are run."""

import contextlib
import io
import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.events import ExactRelease, PatternRelease
from taciturn.accounting.ledger import Ledger
from taciturn.accounting.units import Unit
from tests.accounting.test_ledger import ITEMS, USERS
from tests.conftest import Command
from tests.release.helpers import write_small

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


CONSOLE = [
    pytest.param(body, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, (kind, body) in enumerate(blocks(page))
    if kind == "console"
]


@pytest.mark.parametrize("body", CONSOLE)
def test_commands_print_what_is_shown(taciturn: Command, body: str) -> None:
    command, _, expected = body.partition("\n")
    prompt, name, *arguments = shlex.split(command)
    assert (prompt, name) == ("$", "taciturn")
    assert taciturn(*arguments).stdout == expected


RUN = [
    "README.md",
    *(f"docs/guides/{name}.md" for name in ("mechanisms", "data", "training", "serving")),
]


@pytest.mark.parametrize("page", RUN)
def test_code_prints_what_is_shown(page: str) -> None:
    kinds = dict(blocks(ROOT / page))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(kinds["python"], {})  # noqa: S102 the documentation's own code
    assert printed.getvalue() == kinds["text"]


def test_readme_figure_of_the_attacker() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"a true-positive rate of at most ([\d.]+) %", page)
    mu = Budget.from_epsilon(1, 1e-5).mu
    ledger = Ledger([replace(ITEMS, sensitivity=1.0, noise_scale=1 / mu)])
    certificate = Certificate.from_ledger(ledger, 1e-5)
    limits = f"at a false-positive rate of 1%, the true-positive rate is at most {shown}%"
    assert limits in certificate.to_text()


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recipe for checking a certificate without Taciturn, as a script."""
    (body,) = [body for kind, body in blocks(ROOT / "docs" / "certificate.md") if kind == "python"]
    assert len([line for line in body.splitlines() if line.strip()]) <= 20
    file = tmp_path_factory.mktemp("recipe") / "check.py"
    file.write_text(body, encoding="utf-8")
    return file


def run_recipe(recipe: Path, document: dict[str, object]) -> subprocess.CompletedProcess[str]:
    file = recipe.with_name("certificate.json")
    file.write_text(json.dumps(document))
    # Isolated and without site packages: neither Taciturn nor anything else can be imported.
    command = [sys.executable, "-I", "-S", str(recipe), str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("epsilon_scale", [100.0, 20.0, 4.0, 0.4])
def test_recipe_accepts_true_certificates(recipe: Path, epsilon_scale: float) -> None:
    ledger = Ledger([replace(ITEMS, noise_scale=epsilon_scale), replace(USERS, noise_scale=50.0)])
    result = run_recipe(recipe, Certificate.from_ledger(ledger, 1e-5).to_dict())
    assert result.returncode == 0, result.stderr
    assert "follows, unit value" in result.stdout


def test_recipe_takes_the_certificate_of_a_release(recipe: Path, tmp_path: Path) -> None:
    for solver in ("gradient", "als"):  # of which the second publishes features of the mask
        write_small(tmp_path / solver, solver)
        document = json.loads((tmp_path / solver / "certificate.json").read_text())
        assert run_recipe(recipe, document).returncode == 0


@pytest.mark.parametrize(
    ("ledger", "reason"),
    [
        (Ledger([replace(ITEMS, noise="test")]), "for tests"),
        (Ledger([replace(ITEMS, flaw="unbounded")]), "no valid proof"),
        (Ledger([ExactRelease(purpose="mean", unit=ITEMS.unit)]), "without noise"),
        (
            Ledger(
                [
                    replace(ITEMS, unit="rating"),
                    PatternRelease(purpose="features", unit=Unit.RATING),
                ]
            ),
            "without noise",
        ),
    ],
)
def test_recipe_refuses_what_is_no_guarantee(recipe: Path, ledger: Ledger, reason: str) -> None:
    result = run_recipe(recipe, Certificate.from_ledger(ledger, 1e-5).to_dict())
    assert result.returncode == 1 and reason in result.stderr


def test_recipe_refuses_a_forged_epsilon(recipe: Path) -> None:
    document = Certificate.from_ledger(Ledger([ITEMS]), 1e-5).to_dict()
    document["statement"]["epsilon"] *= 0.9999
    result = run_recipe(recipe, document)
    assert result.returncode == 1 and "delta is" in result.stderr


def test_documentation_builds_its_links() -> None:
    """Every relative link of every page leads to a file."""
    link = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]:
        for target in link.findall(page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
