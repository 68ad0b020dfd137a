"""Help texts of all commands."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from taciturn.cli.app import app
from taciturn.evaluate.plan import DEFAULT
from tests.conftest import Command


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, (*path, name))


@pytest.mark.parametrize("path", list(commands(typer.main.get_command(app))), ids=" ".join)
def test_flags_have_no_type_in_the_help(taciturn: Command, path: tuple[str, ...]) -> None:
    text = taciturn(*path, "--help").stdout
    assert "--help" in text and "bool" not in text


def test_defaults_are_not_cut_at_80_columns(
    taciturn: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = taciturn("compare", "--help").stdout
    assert max(map(len, text.splitlines())) == 80
    assert all(name in text for name in DEFAULT) and "perturbation" in text
