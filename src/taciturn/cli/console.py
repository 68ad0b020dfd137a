"""Console output of commands: results on stdout, everything else on stderr."""

import io
import sys
from typing import Any


def emit_json(document: dict[str, Any]) -> None:
    """Print one JSON object on stdout."""
    from taciturn._internal import strict_json

    sys.stdout.write(strict_json.dumps(document))


def say(text: str = "") -> None:
    """Print a line of text on stdout."""
    sys.stdout.write(text + "\n")


def warn(text: str) -> None:
    """Print a warning on stderr, in one line."""
    sys.stderr.write(f"warning: {printable(text)}\n")


def note(text: str) -> None:
    """Print a remark on stderr, in one line."""
    sys.stderr.write(f"note: {printable(text)}\n")


def fail(text: str) -> None:
    """Print an error on stderr, in one line."""
    sys.stderr.write(f"error: {printable(text)}\n")


def prepare() -> None:
    """Replace characters that the terminal cannot encode, instead of failing on them."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def personalisation(*, is_personalised: bool) -> dict[str, Any]:
    """Fields of a JSON document that say whether a model is personalised, and why not."""
    from taciturn.model.factor_model import NOT_PERSONALISED

    if is_personalised:
        return {"personalised": True}
    return {"personalised": False, "reason": NOT_PERSONALISED}


def printable(text: str) -> str:
    """Text with control characters escaped: file names may contain anything."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def table(rows: list[tuple[str, str, str]]) -> str:
    """Rows of (name, value, remark) as aligned text."""
    names = max(len(name) for name, _, _ in rows)
    values = max(len(value) for _, value, _ in rows)
    return "\n".join(
        f"  {name:<{names}}  {value:>{values}}  {remark}".rstrip() for name, value, remark in rows
    )
