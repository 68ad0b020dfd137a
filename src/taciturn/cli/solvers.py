"""Solver options, and help texts that list the solvers in the catalog.

The catalog is imported only when help is shown.
"""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from taciturn.cli.options import count_option, number_option


def model_options(
    panel: str | None = None, als_panel: str | None = None
) -> Callable[..., dict[str, Any]]:
    """Group of options shared by many solvers, shown in the given help panels."""

    def options(
        factors: Annotated[
            int | None,
            count_option(
                "Number of factors in a profile. Default: the solver's own; als chooses it from "
                "public or released counts.",
                panel=panel,
            ),
        ] = None,
        iterations: Annotated[
            int | None,
            count_option("Number of iterations. Default: the solver's own.", panel=panel),
        ] = None,
        step_size: Annotated[
            float | None, number_option("Step size. Default: the solver's own.", panel=panel)
        ] = None,
        regularization: Annotated[
            float | None,
            number_option("Regularization strength. Default: the solver's own.", panel=panel),
        ] = None,
        no_pattern_features: Annotated[
            bool,
            typer.Option(
                "--no-pattern-features",
                rich_help_panel=als_panel or panel,
                help="Solver als, unit value only: do not publish features of the rating pattern "
                "in the profiles. Less accurate, and implies --no-interest. Default: publish them.",
            ),
        ] = False,
        no_interest: Annotated[
            bool,
            typer.Option(
                "--no-interest",
                rich_help_panel=als_panel or panel,
                help="Solver als: do not learn what users turn to beside how they rate. Lists are "
                "then by predicted rating alone, and much worse. Default: learn it; under units "
                "rating and user it takes 4 to 7 percent of the budget, and under user up to about "
                "45 percent where ratings are so few that everything is noise.",
            ),
        ] = False,
    ) -> dict[str, Any]:
        return {
            "factors": factors,
            "iterations": iterations,
            "step_size": step_size,
            "regularization": regularization,
            "pattern_features": False if no_pattern_features else None,
            "interest": False if no_interest else None,
        }

    return options


class CatalogHelp(TyperCommand):
    """Command whose help may contain {solvers}, {private_solvers} or {compared_solvers}."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Format the help, with the placeholders replaced by solver names."""
        for option in self.params:
            option.help = catalog_text(getattr(option, "help", None))  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


def catalog_text(text: str | None) -> str:
    """Help text with the placeholders replaced by solver names."""
    text = text or ""
    words = {
        "{solvers}": _solvers,
        "{private_solvers}": _private_solvers,
        "{compared_solvers}": _compared_solvers,
    }
    for word, listing in words.items():
        if word in text:
            text = text.replace(word, listing())
    return text


def _solvers() -> str:
    """All solvers grouped by status; those that support every unit come first."""
    from taciturn.solvers.catalog import CATALOG

    groups: dict[str, list[str]] = {}
    for name, entry in sorted(CATALOG.items(), key=lambda pair: not pair[1].supports_all_units):
        kind = "no guarantee"
        if entry.is_private:
            kind = (
                f"{entry.status.value}, {'any unit' if entry.supports_all_units else 'unit value'}"
            )
        groups.setdefault(kind, []).append(name)
    return "; ".join(f"{', '.join(names)} ({kind})" for kind, names in groups.items())


def _private_solvers() -> str:
    from taciturn.solvers.catalog import CATALOG

    return ", ".join(name for name, entry in CATALOG.items() if entry.is_private)


def _compared_solvers() -> str:
    from taciturn.evaluate.plan import DEFAULT

    return ", ".join(DEFAULT)
