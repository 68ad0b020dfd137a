"""Shared groups of options: declared once, in the help of each command, passed as one object."""

from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from taciturn.cli.app import app
from taciturn.cli.options import with_options
from taciturn.data.options import Duplicates, ReadingOptions
from taciturn.evaluate.plan import DEFAULT
from taciturn.solvers.catalog import CATALOG

READING = [
    *("--scale", "--columns", "--separator", "--duplicates", "--missing", "--outside"),
    *("--item-id-type", "--no-header"),
]
MODEL = [
    *("--factors", "--iterations", "--step-size", "--regularization"),
    *("--no-pattern-features", "--no-interest"),
]
AUDITED = [*MODEL, "--solver", "--unit", "--epsilon", "--delta", "--like"]
PAPER = ["--protocol", "--stop", "--seeds", "--first-seed", "--max-factors", "--jobs"]


def help_of(command: str) -> str:
    result = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("data info", READING),
        ("train", [*READING, *MODEL, "--item-list", "--epsilon-i", "--users-out", "--output"]),
        ("compare", READING),
        ("audit two-worlds", [*READING, *AUDITED, "--output", "--json"]),
        ("audit one-run", [*READING, *AUDITED, "--output", "--json"]),
        ("audit attack", [*READING, *AUDITED, "--output", "--json"]),
        ("paper figure", PAPER),
        ("paper report", PAPER),
    ],
)
def test_every_command_lists_the_options_that_it_shares(command: str, options: list[str]) -> None:
    text = help_of(command)
    assert [option for option in options if option not in text] == []


def test_help_lists_the_solvers_of_the_catalog() -> None:
    trained, audited = help_of("train"), help_of("audit two-worlds")
    for name, entry in CATALOG.items():
        assert name in trained
        assert (name in audited) == entry.is_private, name
    assert ", ".join(DEFAULT) in help_of("compare")
    assert "{" not in audited


def test_a_group_of_options_replaces_a_parameter() -> None:
    def point(x: Annotated[int, typer.Option()] = 1, y: int = 2) -> tuple[int, int]:
        return x, y

    @with_options(where=point)
    def group(*, name: str = "a", where: tuple[int, int]) -> dict[str, Any]:
        return {"name": name, "where": where}

    seen: list[Any] = []
    cli = typer.Typer()

    @cli.command()
    @with_options(all_of_it=group)
    def command(*, all_of_it: dict[str, Any], last: bool = False) -> None:
        """Do it."""
        seen.append((all_of_it, last))

    assert CliRunner().invoke(cli, ["--y", "5", "--last"]).exit_code == 0
    assert seen == [({"name": "a", "where": (1, 5)}, True)]
    shown = CliRunner().invoke(cli, ["--help"]).output
    places = [shown.index(option) for option in ("--name", "--x", "--y", "--last")]
    assert places == sorted(places) and "Do it." in shown


def test_a_command_gets_its_reading_options_as_one_object(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    seen: list[ReadingOptions] = []

    def load_source(source: str, options: ReadingOptions, **rest: Any) -> Any:
        seen.append(options)
        raise KeyboardInterrupt

    monkeypatch.setattr("taciturn.data.load_source", load_source)
    options = ["--scale", "1:5", "--duplicates", "last", "--no-header", "--separator", ";"]
    for command in (
        ["data", "info", "x.csv"],
        ["train", "x.csv", "--epsilon", "1", "-o", str(tmp_path / "r")],
        ["compare", "x.csv", "-o", str(tmp_path / "c")],
        ["audit", "two-worlds", "x.csv"],
        ["audit", "one-run", "x.csv"],
        ["audit", "attack", "x.csv"],
    ):
        CliRunner().invoke(app, [*command, *options])
    expected = ReadingOptions.of(scale="1:5", duplicates="last", header=False, separator=";")
    assert expected.duplicates is Duplicates.LAST
    assert seen == [expected] * 6
