"""Version of Taciturn; the build reads it from here."""

__version__ = "0.2.0.dev0"
