"""`taciturn doctor`: installed versions, for bug reports."""

from taciturn._version import __version__
from taciturn.cli.console import emit_json, say, table
from taciturn.cli.options import Json

PACKAGES = (
    "numpy",
    "scipy",
    "polars",
    "cryptography",
    "threadpoolctl",
    "typer",
    "rich",
    "matplotlib",
)


def doctor(json: Json = False) -> None:
    """Report installed versions, the compiler and the instruction sets, for bug reports."""
    import platform

    from taciturn import _core

    facts = {
        "taciturn": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "compiler": _core.compiler(),
        "instruction_set": _core.instruction_set(),
    }
    sets = _core.instruction_sets()
    packages = {name: _version(name) for name in PACKAGES}
    if json:
        emit_json(facts | {"instruction_sets": sets, "packages": packages})
        return
    rows = facts | {"instruction_sets": ", ".join(sets)}
    rows |= {name: found or "not installed" for name, found in packages.items()}
    say(table([(name, "", fact) for name, fact in rows.items()]))


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None
