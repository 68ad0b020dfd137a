"""Command line. Each command calls the library and holds no logic of its own."""

from taciturn.cli.start import main

__all__ = ["main"]
