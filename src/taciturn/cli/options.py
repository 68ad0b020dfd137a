"""Options shared by several commands, and a decorator that groups options into one object."""

import functools
import inspect
import re
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from taciturn._internal import validate
from taciturn.errors import InvalidParameter

Made = TypeVar("Made")


def number_option(help_text: str, *, panel: str | None = None) -> Any:
    """Option that takes a number; the error for any other text shows what was given."""

    def number(text: str | float) -> float:
        try:
            return float(text)
        except ValueError:
            raise typer.BadParameter(f"expected a number, got {text!r}") from None

    return typer.Option(parser=number, metavar="NUMBER", help=help_text, rich_help_panel=panel)


def count_option(help_text: str, *names: str, panel: str | None = None) -> Any:
    """Option that takes a whole number, under its own name or under `names`."""

    def count(text: str | int) -> int:
        try:
            return int(text)
        except ValueError:
            raise typer.BadParameter(f"expected a whole number, got {str(text)[:40]!r}") from None

    return typer.Option(
        *names, parser=count, metavar="COUNT", help=help_text, rich_help_panel=panel
    )


def day_option(help_text: str) -> Any:
    """Option that takes a calendar day; the error for any other text shows the expected form."""

    def day(text: str | date) -> date:
        try:
            return validate.day("it", text)
        except InvalidParameter as error:
            raise typer.BadParameter(str(error)) from None

    return typer.Option(parser=day, metavar="YYYY-MM-DD", help=help_text)


def age_option(help_text: str) -> Any:
    """Option that takes a time span in hours, days or weeks."""

    def age(text: str | timedelta) -> timedelta:
        if isinstance(text, timedelta):
            return text
        units = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
        if re.fullmatch("[0-9]{1,6}[hdw]", text) is None:
            raise typer.BadParameter(f"expected a time such as 30d, 12h or 2w, got {text[:40]!r}")
        return int(text[:-1]) * units[text[-1]]

    return typer.Option(parser=age, metavar="TIME", help=help_text)


Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout instead of text.")
]
Delta = Annotated[
    float,
    number_option("Overall δ. Choose it well below 1 / number of users."),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="File for a plot of ε against the number of releases, with one line for each "
        "accounting method (.png, .svg or .pdf). Needs the extra `plots`.",
    ),
]
Threads = Annotated[int | None, count_option("Number of threads. Default: one for each processor.")]


def with_options(
    **groups: Callable[..., Any],
) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """Replace parameters of a command, or of a group, with groups of options.

    A group is a function whose parameters declare options and that builds one object from them. The
    command receives that object as the parameter with the group's name. In the help, the options
    appear at the position of that parameter.
    """

    def decorate(command: Callable[..., Made]) -> Callable[..., Made]:
        members = {name: inspect.signature(group).parameters for name, group in groups.items()}
        declared = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name, own in inspect.signature(command).parameters.items()
            for parameter in (members[name].values() if name in groups else [own])
        ]

        @functools.wraps(command)
        def run(**given: Any) -> Made:
            for name, group in groups.items():
                given[name] = group(**{option: given.pop(option) for option in members[name]})
            return command(**given)

        # Typer reads the options from these.
        run.__signature__ = inspect.Signature(declared)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in declared}
        return run

    return decorate
