"""Layers import only layers above them, and the top-level package imports lazily."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import taciturn

PACKAGE = Path(taciturn.__file__).parent

# In the order of the data flow: a layer imports only itself and earlier ones.
LAYERS = [
    "_version",
    "errors",
    "_core",
    "_internal",
    "scale",
    "config_file",
    "tables",
    "data",
    "model",
    "accounting",
    "mechanisms",
    "queries",
    "solvers",
    "release",
    "recommend",
    "evaluate",
    "training",
    "audit",
    "reproduction",
    "cli",
]


def imported_layers(file: Path) -> set[str]:
    """Layers that a file imports, also inside functions."""
    layers = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            assert "taciturn" not in names, f"{file} imports the top-level package"
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} uses a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        layers |= {name.split(".")[1] for name in names if name.startswith("taciturn.")}
    return layers


def test_every_module_belongs_to_a_layer() -> None:
    found = {path.relative_to(PACKAGE).parts[0].split(".")[0] for path in PACKAGE.rglob("*.py")}
    assert found - {"__init__", "__pycache__"} <= set(LAYERS)


def test_layers_import_only_layers_above_them() -> None:
    for file in PACKAGE.rglob("*.py"):
        layer = file.relative_to(PACKAGE).parts[0].split(".")[0]
        if layer == "__init__":
            continue
        allowed = set(LAYERS[: LAYERS.index(layer) + 1])
        assert imported_layers(file) <= allowed, f"{file.name} imports a layer below its own"


def test_the_check_sees_an_import_inside_a_function(tmp_path: Path) -> None:
    file = tmp_path / "example.py"
    file.write_text(
        "def f():\n    from taciturn.cli import main\n    import taciturn.accounting.units\n"
    )
    assert imported_layers(file) == {"cli", "accounting"}


def test_the_top_level_package_is_lazy_and_complete() -> None:
    code = (
        "import sys, taciturn\n"
        "heavy = {'numpy', 'scipy', 'polars', 'typer', 'rich', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "names = set(taciturn._HOME) | {'__version__'}\n"
        "assert names == set(taciturn.__all__) == set(dir(taciturn))\n"
        "for name in taciturn.__all__: getattr(taciturn, name)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    ("module", "slow"),
    [
        ("taciturn.cli.app", {"numpy", "scipy", "polars", "matplotlib"}),
        ("taciturn.training.train", {"scipy.optimize", "scipy.stats", "matplotlib"}),
    ],
)
def test_slow_imports_are_deferred(module: str, slow: set[str]) -> None:
    code = f"import sys, {module}; found = {slow} & set(sys.modules); assert not found, found"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


PRIVATE = {"data", "mechanisms", "queries", "training", "evaluate", "audit"}
"""Packages that hold ratings, noise or a gate."""

CLOSURES = {
    "taciturn.accounting.certificate": {"_core", "model", "tables", *PRIVATE},
    "taciturn.tables.whole": {"_core", "model", "accounting", *PRIVATE},
    "taciturn.model.factor_model": {"_core", "tables", "accounting", *PRIVATE},
    "taciturn.solvers.catalog": {"_core", "model", "tables", *PRIVATE},
    "taciturn.release.read": {"_core", "tables", *PRIVATE},
    "taciturn.release.verify": {"_core", "tables", *PRIVATE},
    "taciturn.recommend.serve": PRIVATE,
    "taciturn.recommend.requests": PRIVATE,
    "taciturn.recommend.export": PRIVATE,
}
"""Packages that an entry point must not import, directly or indirectly."""


@pytest.mark.parametrize("entry", CLOSURES)
def test_an_entry_point_imports_no_forbidden_package(entry: str) -> None:
    code = (
        f"import sys, {entry}\n"
        "found = {name.split('.')[1] for name in sys.modules if name.startswith('taciturn.')}\n"
        f"wrong = found & {CLOSURES[entry]}\n"
        "assert not wrong, wrong\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
