"""docs/concepts/architecture.md: the worked example of a solver runs, named paths exist."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import taciturn
from taciturn import _core

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "concepts" / "architecture.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_worked_example_of_a_solver_passes_its_contract(tmp_path: Path) -> None:
    """In a copy of the package: one source file, one entry, one proof page, one test file."""
    found = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    source, entry, test = (body for kind, body in found if kind == "python")
    (proof,) = (body for kind, body in found if kind == "markdown")
    package = tmp_path / "src" / "taciturn"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(taciturn.__file__).parent, package, ignore=ignored)
    shutil.copy(_core.__file__, package)
    shutil.copytree(ROOT / "tests", tmp_path / "tests", ignore=ignored)
    shutil.copytree(ROOT / "docs" / "proofs", tmp_path / "docs" / "proofs")
    catalog = package / "solvers" / "catalog.py"
    end = "}\n\n\ndef make_solver("
    text = catalog.read_text(encoding="utf-8")
    assert end in text
    catalog.write_text(text.replace(end, entry + end), encoding="utf-8")
    (package / "solvers" / "item_mean.py").write_text(source, encoding="utf-8")
    (tmp_path / "docs" / "proofs" / "item-mean.md").write_text(proof, encoding="utf-8")
    (tmp_path / "tests" / "solvers" / "test_item_mean.py").write_text(test, encoding="utf-8")

    def run(*command: str) -> str:
        environment = os.environ | {"PYTHONPATH": f"{tmp_path / 'src'}{os.pathsep}{tmp_path}"}
        finished = subprocess.run(
            [sys.executable, "-c", LAUNCH, *command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert finished.returncode == 0, finished.stdout + finished.stderr
        return finished.stdout

    tests = ("test_item_mean.py", "test_catalog.py", "test_loop.py", "test_no_way_around.py")
    names = [f"tests/solvers/{name}" for name in tests]
    options = ("-q", "-p", "no:cacheprovider", "-c", os.devnull, "-o", "markers=slow")
    printed = run("pytest", *options, *names)
    assert re.search(r"\d+ passed", printed) and "failed" not in printed
    train = ("train", "synthetic:10k", "--solver", "item-mean", "--unit", "value")
    run("taciturn", *train, "--epsilon", "1", "-o", "release")
    assert "proven" in run("taciturn", "verify", "release")
    compared = ("--solvers", "item-mean,bias", "--epsilons", "1", "--seeds", "1", "-o", "compared")
    assert "item-mean" in run("taciturn", "compare", "synthetic:10k", *compared)


LAUNCH = """
import sys
sys.meta_path[:] = [each for each in sys.meta_path if "ScikitBuild" not in type(each).__name__]
import taciturn
from pathlib import Path
assert Path(taciturn.__file__).is_relative_to(Path.cwd()), taciturn.__file__
name = sys.argv.pop(1)
sys.argv[0] = name
if name == "pytest":
    import pytest
    sys.exit(pytest.main(sys.argv[1:]))
from taciturn.cli import main
main()
"""
"""Program that runs the copied package, without the import hook of an editable install."""


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = re.compile(r"`((?:src/taciturn|taciturn|tests|cpp|benchmarks|docs)/[\w./-]+\.\w+)`")
ABSENT = {"item_mean.py", "item-mean.md", "test_item_mean.py", "report.md"}
"""Files of the worked example and of benchmark results."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_exist(page: Path) -> None:
    named = set(CODE.findall(page.read_text(encoding="utf-8")))
    wanted = {name for name in named if Path(name).name not in ABSENT}
    missing = [
        name for name in wanted if not ((ROOT / name).exists() or (ROOT / "src" / name).exists())
    ]
    assert not missing


def test_every_package_is_described_in_the_architecture() -> None:
    text = PAGE.read_text(encoding="utf-8")
    package = Path(taciturn.__file__).parent
    for folder in package.iterdir():
        if (folder / "__init__.py").is_file():
            assert f"`{folder.name}/`" in text, folder.name
