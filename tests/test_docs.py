"""Commands and code in the documentation run and print what it shows."""

import contextlib
import inspect
import io
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import typer

import taciturn
from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.events import ExactRelease, Noise, PatternRelease
from taciturn.accounting.ledger import Ledger
from taciturn.accounting.units import Unit
from taciturn.cli.app import app
from taciturn.model.reasons import PARTS, REMAINING
from tests.accounting.test_ledger import ITEMS, USERS
from tests.conftest import Command
from tests.release.helpers import write_small

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


TUTORIALS = [
    *sorted((ROOT / "docs" / "tutorials").glob("*.md")),
    ROOT / "docs" / "how-to" / "notebook.md",
]
CONSOLE = [
    pytest.param(body, id=f"{page.stem}-{number}")
    for page in PAGES
    if page not in TUTORIALS
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
    *(f"docs/how-to/{name}.md" for name in ("item-features", "public-ratings", "ratings")),
    *(f"docs/how-to/{name}.md" for name in ("release-sums", "serve", "train")),
]


@pytest.mark.parametrize("page", RUN)
def test_code_prints_what_is_shown(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text after a page's code is what the code prints."""
    monkeypatch.chdir(tmp_path)
    found = blocks(ROOT / page)
    (place,) = [number for number, (kind, _) in enumerate(found) if kind == "python"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(found[place][1], {})  # noqa: S102 the documentation's own code
    assert found[place + 1] == ("text", printed.getvalue())


def test_certificate_in_the_readme_is_what_its_command_prints(taciturn: Command) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^`taciturn (train .*--dry-run)`", page, re.MULTILINE)
    shown = blocks(ROOT / "README.md")[-1][1]
    assert shown.startswith("Privacy certificate: proven\n")
    assert shown in taciturn(*shlex.split(command)).stdout


VARYING = (
    (re.compile(r"^release: .*$", re.MULTILINE), "release: FOLDER"),
    (re.compile(r" +\d+\.\d s  owner-only"), "TIME s  owner-only"),
    (re.compile(r"^  factors +\d+$", re.MULTILINE), "  factors COUNT"),
    (re.compile(r" +\d+\.\d{3}\b"), "  SCORE"),
    (re.compile(r"\b(crime|poetry)-\d+"), r"\1-BOOK"),
    (re.compile(f"  +({'|'.join([*PARTS, REMAINING])}|similar to .*)$", re.M), "  REASON"),
)
"""Parts that differ between two runs of a tutorial: paths, times, noisy numbers and reasons."""


def without_varying(text: str) -> str:
    for pattern, replacement in VARYING:
        text = pattern.sub(replacement, text)
    return text


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_works_from_start_to_end(
    taciturn: Command, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its code and commands run in order in one folder, and print what the page shows."""
    monkeypatch.chdir(tmp_path)
    session: dict[str, object] = {}
    printed = ""
    for kind, body in blocks(page):
        if kind == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(body, session)  # noqa: S102 the documentation's own code
            printed = output.getvalue()
        elif kind == "console":
            command, _, expected = body.partition("\n")
            prompt, name, *arguments = shlex.split(command)
            assert (prompt, name) == ("$", "taciturn")
            result = taciturn(*arguments, cwd=tmp_path)
            assert result.returncode == 0, result.stderr
            assert without_varying(result.stdout) == without_varying(expected)
        else:
            assert kind == "text"
            assert printed == body


def test_shown_true_positive_rate_is_that_of_the_certificate() -> None:
    page = (ROOT / "docs" / "concepts" / "units.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"a true-positive rate of at most\s+([\d.]+)%", page)
    mu = Budget.from_epsilon(1, 1e-5).mu
    ledger = Ledger([replace(ITEMS, sensitivity=1.0, noise_scale=1 / mu)])
    certificate = Certificate.from_ledger(ledger, 1e-5)
    limits = f"at a false-positive rate of 1%, the true-positive rate is at most {shown}%"
    assert limits in certificate.to_text()


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recipe for checking a certificate without Taciturn, as a script."""
    page = ROOT / "docs" / "how-to" / "check.md"
    (body,) = [body for kind, body in blocks(page) if kind == "python"]
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
    for solver in ("gradient", "als"):  # the second publishes pattern features
        write_small(tmp_path / solver, solver)
        document = json.loads((tmp_path / solver / "certificate.json").read_text())
        assert run_recipe(recipe, document).returncode == 0


@pytest.mark.parametrize(
    ("ledger", "reason"),
    [
        (Ledger([replace(ITEMS, noise=Noise.TEST)]), "for tests"),
        (Ledger([replace(ITEMS, flaw="unbounded")]), "no valid proof"),
        (Ledger([ExactRelease(purpose="mean", unit=ITEMS.unit)]), "without noise"),
        (
            Ledger(
                [
                    replace(ITEMS, unit=Unit.RATING),
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


ROOT_PAGES = [ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings: as the site and code hosts make them."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    headings = [heading.lower().replace("`", "") for heading in HEADING.findall(text)]
    return {re.sub(r"[^\w -]", "", heading).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "page", [*PAGES, *ROOT_PAGES], ids=lambda page: str(page.relative_to(ROOT))
)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for target, anchor in LINK.findall(text):
        file = page.parent / target if target else page
        assert file.is_file(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(file), f"{page.name} links to {target}#{anchor}"


def test_every_page_is_in_the_navigation_once() -> None:
    """The site's builder leaves out missing and unlisted pages without a word."""
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"([\w/-]+\.md)$", settings, re.MULTILINE)
    docs = ROOT / "docs"
    assert sorted(listed) == sorted(str(page.relative_to(docs)) for page in docs.rglob("*.md"))


REFERENCE = ROOT / "docs" / "reference"


def test_every_public_name_is_in_the_reference_with_a_docstring() -> None:
    page = (REFERENCE / "python.md").read_text(encoding="utf-8")
    described = re.findall(r"^::: taciturn\.(\w+)$", page, re.MULTILINE)
    assert sorted(described) == sorted(taciturn.__all__)
    names = [name for name in taciturn.__all__ if not name.startswith("__")]
    assert [name for name in names if not inspect.getdoc(getattr(taciturn, name))] == []


def command_names(command: object, path: tuple[str, ...] = ("taciturn",)) -> Iterator[str]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield " ".join(path)
        return
    for name, each in inner.items():
        yield from command_names(each, (*path, name))


def test_every_command_is_in_the_reference() -> None:
    page = (REFERENCE / "commands.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `(taciturn [a-z -]+)` \|", page, re.MULTILINE)
    assert sorted(described) == sorted(command_names(typer.main.get_command(app)))


BUDGETS = re.compile(r"(?:--epsilons? |from_epsilon\()([\d.,]+)")
MEASUREMENTS = {"accuracy.md", "performance.md", "reproduction.md"}
"""Pages whose commands repeat measurements, also at large budgets."""


def test_examples_use_budgets_of_at_most_two() -> None:
    """In code of the documentation, in the README and in the help of every command."""
    shown = [
        (page.name, body)
        for page in PAGES
        if page.name not in MEASUREMENTS
        for kind, body in blocks(page)
        if kind != "text"
    ]
    groups = [typer.main.get_command(app)]
    while groups:
        command = groups.pop()
        groups += getattr(command, "commands", {}).values()
        shown.append((command.name or "", getattr(command, "epilog", None) or ""))
    found = [
        (name, float(number))
        for name, text in shown
        for numbers in BUDGETS.findall(text)
        for number in numbers.rstrip(",.").split(",")
    ]
    assert len(found) > 15 and [each for each in found if each[1] > 2] == []
