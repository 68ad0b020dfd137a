"""How commands speak: results on stdout, everything else on stderr."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit import _json

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout, for machines.")
]
Delta = Annotated[
    float,
    typer.Option(help="Overall δ: choose it well below one over the number of people."),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Draw ε against iterations for all accountants (.png, .svg, .pdf). "
        "Needs the extra `plots`.",
    ),
]


def emit_json(document: dict[str, Any]) -> None:
    """Print one JSON object on stdout."""
    sys.stdout.write(_json.dumps(document))


def say(text: str = "") -> None:
    """Print a line for people on stdout."""
    sys.stdout.write(text + "\n")


def warn(text: str) -> None:
    """Print a warning on stderr."""
    sys.stderr.write(f"warning: {text}\n")


def table(rows: list[tuple[str, str, str]]) -> str:
    """Return rows of (name, value, remark) as aligned text."""
    names = max(len(name) for name, _, _ in rows)
    values = max(len(value) for _, value, _ in rows)
    return "\n".join(
        f"  {name:<{names}}  {value:>{values}}  {remark}".rstrip() for name, value, remark in rows
    )
