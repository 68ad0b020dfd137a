"""The command line without its subcommands, whose import `taciturn --help` does not wait for."""

import sys
from typing import Annotated

import typer

from taciturn._version import __version__
from taciturn.cli.commands import prepared
from taciturn.cli.outcome import outcome

COMMANDS = {
    "demo": "Train, release, verify and recommend on a million synthetic ratings.",
    "doctor": "Report installed versions, the compiler and the instruction sets, for bug reports.",
    "train": "Train on ratings within a privacy budget and write a release.",
    "compare": "Train several solvers at several budgets and compare their held-out errors and "
    "their lists.",
    "verify": "Recompute the guarantee of a release from its ledger and check every file.",
    "keygen": "Generate a key pair for signing releases: FILE (private) and FILE.pub (public).",
    "recommend": "Recommend items to a user, with the reason for each.",
    "similar": "Show the items with the most similar profiles; scores are cosine similarities.",
    "predict": "Predict a rating, clipped to the scale.",
    "export": "Export a release to a format that other programs read.",
    "audit": "Attack a training configuration and report a lower bound on its privacy loss. An "
    "audit can show that a claim is violated, but never that a release is private.",
    "budget": "Compute the privacy cost of releases, or the noise for a budget. Reads no private "
    "data.",
    "data": "Download public datasets, and inspect your own ratings.",
    "paper": "Reproduce the figures of the paper that Taciturn builds on, and show where its proof "
    "fails.",
    "private": "List and delete private files: run folders, maps of pseudonyms, caches and "
    "reports.",
}
"""Help of each command, as in the commands themselves, in the order of the list."""


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"taciturn {__version__}\n")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


def root() -> typer.Typer:
    """The command line without subcommands."""
    app = typer.Typer(
        name="taciturn",
        no_args_is_help=True,
        add_completion=False,
        help="Recommenders trained under differential privacy, released with a certificate that "
        "anyone can verify.",
        epilog="Start with: taciturn demo",
    )
    app.callback()(_root)
    return app


def run_overview(arguments: list[str]) -> int:
    """Exit code of a call that only prints the list of commands or the version."""
    app = root()
    for name, text in COMMANDS.items():
        app.command(name=name, help=text)(_nothing)
    return outcome(prepared(typer.main.get_command(app)), arguments)


def _nothing() -> None:
    """Stand-in for a command."""
