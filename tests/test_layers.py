"""Layers import only layers above them; the facade is lazy."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tacit

PACKAGE = Path(tacit.__file__).parent

# In the order that data flows. Modules of the root that belong to no layer come first.
LAYERS = [
    "_version",
    "errors",
    "_validate",
    "_json",
    "_files",
    "_optional",
    "_roots",
    "_deviations",
    "_html",
    "_drawing",
    "_core",
    "_parallel",
    "_ridge",
    "_processes",
    "data",
    "_fold_in",
    "privacy",
    "solvers",
    "release",
    "recommend",
    "evaluate",
    "training",
    "paper",
    "audit",
    "cli",
]


def imported_layers(file: Path) -> set[str]:
    """Return the layers that a file imports, wherever in it the import stands."""
    layers = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            assert "tacit" not in names, f"{file} imports the facade"
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} uses a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        layers |= {name.split(".")[1] for name in names if name.startswith("tacit.")}
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
    file.write_text("def f():\n    from tacit.cli import main\n    import tacit.privacy.units\n")
    assert imported_layers(file) == {"cli", "privacy"}


def test_facade_is_lazy_and_complete() -> None:
    code = (
        "import sys, tacit\n"
        "heavy = {'numpy', 'scipy', 'polars', 'typer', 'rich', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert set(tacit._HOME) | {'__version__'} == set(tacit.__all__) == set(dir(tacit))\n"
        "for name in tacit.__all__: getattr(tacit, name)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    ("module", "slow"),
    [
        ("tacit.cli.app", {"numpy", "scipy", "polars", "matplotlib"}),
        ("tacit.training", {"scipy.optimize", "scipy.stats", "matplotlib"}),
    ],
)
def test_what_is_slow_to_import_waits(module: str, slow: set[str]) -> None:
    code = f"import sys, {module}; found = {slow} & set(sys.modules); assert not found, found"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
