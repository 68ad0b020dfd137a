"""The version of Tacit, written once."""

__version__ = "0.1.1"
