"""Options of `taciturn train` for the texts of the owner on the card."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from taciturn.release.about import About

ABOUT = "Texts for the card (public; one line of at most 200 characters each)"


def about_options(
    name: Annotated[
        str | None,
        typer.Option(metavar="TEXT", rich_help_panel=ABOUT, help="Name of the dataset."),
    ] = None,
    owner: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            rich_help_panel=ABOUT,
            help="Person or organisation that publishes the release.",
        ),
    ] = None,
    purpose: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", rich_help_panel=ABOUT, help="Use that the release is meant for."
        ),
    ] = None,
    contact: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", rich_help_panel=ABOUT, help="Address for questions about the release."
        ),
    ] = None,
) -> "About":
    """Texts of the owner for the card."""
    from taciturn.release.about import About

    return About(name=name, owner=owner, purpose=purpose, contact=contact)
