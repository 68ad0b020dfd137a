"""Options in messages, spelt as the reader types them.

The same message reaches two kinds of readers. On the command line an option is `--duplicates last`,
in Python it is `duplicates="last"`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Names = Callable[[str], list[str]]
"""Spellings of a parameter in the running command, such as -k and --count; none if it has none."""

_names: Names | None = None


def option(name: str, value: str | bool | None = None, *, python: str | None = None) -> str:
    """An option, alone or with a value; the value of a flag is True or False.

    `python` is its name in Python, if that differs.
    """
    if _names is None:
        name = python or name
        if isinstance(value, str) and not value.isupper():
            value = f'"{value}"'
        return name if value is None else f"{name}={value}"
    spelt = max(_names(name), key=len, default=_long(name))
    if value is False:
        spelt = _long(f"no_{name}")
    return f"{spelt} {value}" if isinstance(value, str) else spelt


def either(command: str, python: str) -> str:
    """Words for the reader of a command's message, or for a caller in Python."""
    return python if _names is None else command


def parameter(name: str) -> str:
    """A parameter by its name in Python; in a command that has it as an option, all spellings."""
    return "/".join(_names(name) if _names else []) or name


@contextmanager
def command_line(names: Names) -> Iterator[None]:
    """Spell options as the running command does."""
    global _names
    before, _names = _names, names
    try:
        yield
    finally:
        _names = before


@contextmanager
def in_document() -> Iterator[None]:
    """Keep the names of a document's fields, which may also be names of options."""
    global _names
    before = _names
    _names = (lambda name: []) if before else None
    try:
        yield
    finally:
        _names = before


def _long(name: str) -> str:
    return f"--{name.replace('_', '-')}"
