"""Catalogue of all messages in the source: errors, warnings and remarks.

Write it again with `python -m tests.messages` after a message was changed, and read the difference.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import taciturn
from taciturn import errors
from taciturn.tables.opening import UnreadableTable

PACKAGE = Path(taciturn.__file__).parent
CATALOGUE = Path(__file__).with_name("messages.txt")

SPOKEN = ("warn", "note", "fail", "add_note")
"""Functions that print or attach a message."""

ERRORS = {
    *(name for name, kind in vars(errors).items() if isinstance(kind, type)),
    UnreadableTable.__name__,
    "BadParameter",
}
"""Exceptions whose messages reach users."""

RETURNING = (
    *("_internal/memory.py", "cli/outcome.py", "data/rows.py", "release/write.py"),
    "tables/diagnosis.py",
)
"""Files with functions that return messages."""

HEAD = (
    "All messages in the source, by file. Expressions in braces are filled in.\n"
    "Written by python -m tests.messages.\n"
)


def catalogue() -> str:
    """All messages, as text."""
    parts = [HEAD]
    for file in sorted(PACKAGE.rglob("*.py")):
        name = file.relative_to(PACKAGE).as_posix()
        tree = ast.parse(file.read_text(encoding="utf-8"))
        if found := sorted(set(messages(tree, returns=name in RETURNING))):
            parts.append("\n".join([name, *found]) + "\n")
    return "\n".join(parts)


def messages(tree: ast.AST, *, returns: bool = False) -> Iterator[str]:
    """Kind and text of each message in a module; only those that the module words itself."""
    for node in ast.walk(tree):
        if returns and isinstance(node, ast.Return) and node.value is not None:
            text = _text(node.value)
            if text is not None and text.count(" ") > 3:
                yield f"  message: {text}"
        call = node.exc if isinstance(node, ast.Raise) else node
        if not isinstance(call, ast.Call) or not call.args:
            continue
        name = ast.unparse(call.func).rpartition(".")[2]
        if not isinstance(node, ast.Raise) and not (name in SPOKEN or name[:1].isupper()):
            continue
        text = _text(call.args[0])
        if text is not None and (name in SPOKEN or name in ERRORS):
            yield f"  {name}: {text}"


def _text(node: ast.expr) -> str | None:
    """Text of a string, with the expressions of an f-string in braces; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_part(value) for value in node.values)
    return None


def _part(node: ast.expr) -> str:
    if isinstance(node, ast.FormattedValue):
        return _option(node.value) or f"{{{ast.unparse(node.value)}}}"
    return str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node)


def _option(node: ast.expr) -> str | None:
    """An option as the command line spells it, if the expression is one in constants."""
    if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "option"):
        return None
    if not all(isinstance(argument, ast.Constant) for argument in node.args):
        return None
    name, *value = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
    no = "no-" if value == [False] else ""
    spelt = f"--{no}{str(name).replace('_', '-')}"
    return f"{spelt} {value[0]}" if value and isinstance(value[0], str) else spelt


if __name__ == "__main__":
    CATALOGUE.write_text(catalogue(), encoding="utf-8")
