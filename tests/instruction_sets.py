"""Tests on every instruction set that this processor supports.

The choice of an instruction set applies to the whole process, so it is always undone.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from taciturn import _core

Result = TypeVar("Result")

SETS = _core.instruction_sets()
"""Names of the instruction sets, the fastest first and "portable" last."""

every_set = pytest.mark.usefixtures("instruction_set")
"""Mark of tests that run once on each instruction set; tests of Hypothesis call `on_every_set`."""


@contextmanager
def using(name: str) -> Iterator[None]:
    """Use an instruction set, and then the previous one again."""
    before = _core.instruction_set()
    _core.use_instruction_set(name)
    try:
        yield
    finally:
        _core.use_instruction_set(before)


def on_every_set(run: Callable[[], Result]) -> dict[str, Result]:
    """Results of a function on each instruction set, by the name of the set."""
    found = {}
    for name in SETS:
        with using(name):
            found[name] = run()
    return found
