"""Options that several commands share, declared once, and what hands them over as one object."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

Made = TypeVar("Made")


def number_option(help_text: str, *, panel: str | None = None) -> Any:
    """Return an option that takes a number; a bad one is told what was expected and what came."""

    def number(text: str | float) -> float:
        try:
            return float(text)
        except ValueError:
            raise typer.BadParameter(f"expected a number, got {text!r}") from None

    return typer.Option(parser=number, metavar="NUMBER", help=help_text, rich_help_panel=panel)


def count_option(help_text: str, *names: str, panel: str | None = None) -> Any:
    """Return an option that takes a whole number, under its own name or under `names`."""

    def count(text: str | int) -> int:
        try:
            return int(text)
        except ValueError:
            raise typer.BadParameter(f"expected a whole number, got {str(text)[:40]!r}") from None

    return typer.Option(
        *names, parser=count, metavar="COUNT", help=help_text, rich_help_panel=panel
    )


Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout, for machines.")
]
Delta = Annotated[
    float,
    number_option("Overall δ: choose it well below one over the number of people."),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Draw ε against iterations for all accountants (.png, .svg, .pdf). "
        "Needs the extra `plots`.",
    ),
]
Threads = Annotated[int | None, count_option("Threads; all processors when omitted.")]


def with_options(
    **groups: Callable[..., Any],
) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """Replace parameters of a command, or of a group, by groups of options.

    A group is a function whose parameters declare options and which makes one object of them. The
    command gets that object as the parameter that has the group's name; its options stand in the
    help where the parameter stands.
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

        # What typer reads the options from.
        run.__signature__ = inspect.Signature(declared)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in declared}
        return run

    return decorate
