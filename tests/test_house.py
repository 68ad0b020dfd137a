"""House rules: sizes of files and functions, names of tests, and first words of docstrings."""

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

import taciturn
from taciturn.cli.app import app

ROOT = Path(__file__).parent.parent
PACKAGE = Path(taciturn.__file__).parent
FOLDERS = ("src", "cpp", "benchmarks", "tests")
SUFFIXES = {".py", ".cpp", ".hpp"}
FILE_LINES = 400
FUNCTION_LINES = 80
PARAMETERS = 10
NAME_WORDS = 3
HOLLOW = re.compile(r"(Return (what|how|which|whether|where)|What|How)\b")
"""First words of a docstring that should start with a noun or verb of its own."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def listed_files(root: Path) -> list[Path]:
    """Files that git knows or would add; without git, every file."""
    if (root / ".git").exists() and shutil.which("git"):
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *FOLDERS]
        listing = subprocess.run(command, cwd=root, check=True, capture_output=True, timeout=60)
        names = listing.stdout.decode().split("\0")
        return [root / name for name in names if name]
    return [path for folder in FOLDERS for path in (root / folder).rglob("*")]


def source_files(root: Path) -> list[Path]:
    return sorted(path for path in listed_files(root) if path.suffix in SUFFIXES and path.is_file())


def functions(tree: ast.AST, scope: str = "") -> Iterator[tuple[str, Function, bool]]:
    """Qualified name of each function in a tree, its node, and whether it is a method."""
    for node in ast.iter_child_nodes(tree):
        inner = scope
        if isinstance(node, Function):
            yield f"{scope}{node.name}", node, isinstance(tree, ast.ClassDef)
        if isinstance(node, Function | ast.ClassDef):
            inner = f"{scope}{node.name}."
        yield from functions(node, inner)


def parameters(function: Function, method: bool) -> int:
    """Number of parameters that a caller can pass: the instance or class is not counted."""
    declared = function.args
    named = [*declared.posonlyargs, *declared.args]
    decorators = {node.id for node in function.decorator_list if isinstance(node, ast.Name)}
    bound = method and bool(named) and "staticmethod" not in decorators
    extra = sum(argument is not None for argument in (declared.vararg, declared.kwarg))
    return len(named) - bound + len(declared.kwonlyargs) + extra


def command_declarations(commands: typer.Typer) -> set[tuple[str, str]]:
    """Module and name of every function that a command line was built from."""
    registered = [*commands.registered_commands, commands.registered_callback]
    callbacks = [each.callback for each in registered if each is not None]
    found = {(each.__module__, each.__qualname__) for each in callbacks if each is not None}
    for group in commands.registered_groups:
        if group.typer_instance is not None:
            found |= command_declarations(group.typer_instance)
    return found


def too_large(file: Path, module: str, excepted: set[tuple[str, str]]) -> list[str]:
    """Functions of a file that break a limit."""
    found = []
    for name, node, method in functions(ast.parse(file.read_text(encoding="utf-8"))):
        is_group = module.startswith("taciturn.cli.") and name.endswith("_options")
        if (module, name) in excepted or is_group:
            continue  # a command, or a group of options that commands share
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        count = parameters(node, method)
        if lines > FUNCTION_LINES or count > PARAMETERS:
            found.append(f"{module}.{name}: {lines} lines, {count} parameters")
    return found


def short_names(tree: ast.AST) -> list[str]:
    """Tests whose names are too short to be a sentence."""
    names = [name.rpartition(".")[2] for name, _, _ in functions(tree)]
    tests = [name for name in names if name.startswith("test_")]
    return [name for name in tests if len(name.split("_")) <= NAME_WORDS]


def hollow_docstrings(tree: ast.AST) -> list[str]:
    """Docstrings, also of fields and constants, that start with a hollow phrase."""
    texts = [
        node.value.value.strip()
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]
    return [text.partition("\n")[0] for text in texts if HOLLOW.match(text)]


def python_trees() -> dict[Path, ast.AST]:
    """Syntax tree of each Python file in the repository."""
    files = [path for path in source_files(ROOT) if path.suffix == ".py"]
    return {path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8")) for path in files}


def test_every_test_has_a_name_of_at_least_three_words() -> None:
    trees = {path: tree for path, tree in python_trees().items() if path.parts[0] == "tests"}
    assert len(trees) > 50
    found = {str(path): short_names(tree) for path, tree in trees.items()}
    assert {path: names for path, names in found.items() if names} == {}


def test_no_docstring_starts_with_a_hollow_phrase() -> None:
    found = {str(path): hollow_docstrings(tree) for path, tree in python_trees().items()}
    assert {path: texts for path, texts in found.items() if texts} == {}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def test_keys(): pass", ["test_keys"]),
        ("class C:\n    def test_known_noise(self): pass", ["test_known_noise"]),
        ("def test_unknown_item_is_refused(): pass", []),
        ("def tested_keys(): pass", []),
    ],
)
def test_the_check_sees_short_names(source: str, names: list[str]) -> None:
    assert short_names(ast.parse(source)) == names


@pytest.mark.parametrize(
    ("text", "hollow"),
    [
        ("Return what a step measures.", True),
        ("Return whether it is.", True),
        ("How it ends.", True),
        ("What is asked.", True),
        ("Query of a step.", False),
        ("Return the mean.", False),
        ("However large it is.", False),
    ],
)
def test_the_check_sees_hollow_docstrings(text: str, hollow: bool) -> None:
    sources = (f'"""{text}"""', f'def f():\n    """{text}"""', f'X = 1\n"""{text}"""')
    assert all(bool(hollow_docstrings(ast.parse(source))) is hollow for source in sources)


def test_no_source_file_has_more_than_400_lines() -> None:
    files = source_files(ROOT)
    assert {path.relative_to(ROOT).parts[0] for path in files} == set(FOLDERS)
    sizes = {
        path.relative_to(ROOT): len(path.read_text(encoding="utf-8").splitlines()) for path in files
    }
    assert {name: lines for name, lines in sizes.items() if lines > FILE_LINES} == {}


def test_no_function_has_more_than_80_lines_or_10_parameters() -> None:
    excepted = command_declarations(app)
    assert all(module.startswith("taciturn.cli.") for module, _ in excepted)
    found = []
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        found += too_large(file, ".".join(parts), excepted)
    assert found == []


def test_every_command_is_recognised_as_a_declaration() -> None:
    declared = command_declarations(app)
    assert ("taciturn.cli.overview", "_root") in declared  # the callback of the whole command line
    assert ("taciturn.cli.train", "train") in declared  # registered by a call
    assert ("taciturn.cli.budget", "calibrate") in declared  # decorated, in a group


@pytest.mark.parametrize(
    ("source", "large"),
    [
        ("def f({ten}): pass", False),
        ("def f({ten}, k): pass", True),
        ("def f({ten}, *, k): pass", True),
        ("def f({ten}, **k): pass", True),
        ("class C:\n    def f(self, {ten}): pass", False),
        ("class C:\n    def f(self, {ten}, k): pass", True),
        ("class C:\n    @staticmethod\n    def f({ten}, k): pass", True),
        ("def g():\n    async def f({ten}, k): pass", True),
        ("if True:\n    def f({ten}, k): pass", True),
        ("def f():" + "\n    pass" * 79, False),
        ("def f():" + "\n    pass" * 80, True),
    ],
)
def test_the_check_sees_functions_over_a_limit(tmp_path: Path, source: str, large: bool) -> None:
    file = tmp_path / "example.py"
    file.write_text(source.format(ten=", ".join("abcdehijlm")))
    assert bool(too_large(file, "example", set())) is large
    assert (
        too_large(file, "example", {("example", "f"), ("example", "C.f"), ("example", "g.f")}) == []
    )


def test_files_are_found_without_git(tmp_path: Path) -> None:
    (tmp_path / "cpp").mkdir()
    for name in ("kernel.cpp", "kernel.hpp", "edges.inc"):
        (tmp_path / "cpp" / name).touch()
    assert [path.name for path in source_files(tmp_path)] == ["kernel.cpp", "kernel.hpp"]
