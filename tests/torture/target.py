"""Targets of mutated inputs: what they read, and what may come of it."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import ClassVar

from taciturn.errors import NotPersonalised, SignatureNotChecked, TaciturnError

ACCEPTED, UNCHANGED = "accepted", "accepted unchanged"

MESSAGE_MAX = 1000
"""Maximum length of an error message, in characters."""


class Finding(Exception):
    """A mutated input had an effect that it must not have."""


class Target(ABC):
    """Something that reads inputs from outside.

    A subclass writes its originals to `folder` when built, the same ones every time. `attempt`
    mutates one of them as `chance` tells, reads it, and returns the outcome. Any exception that
    escapes is a finding.
    """

    name: ClassVar[str]
    share: ClassVar[int]
    """Inputs of this target among a thousand inputs of all targets; fewer if they take longer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def attempt(self, chance: Random) -> str:
        """Outcome of one mutated input: accepted, accepted unchanged, or refused by an error."""


def chance_for(name: str, seed: int, index: int) -> Random:
    """Generator that chooses the mutation of an input."""
    return Random(f"{name} {seed} {index}")  # noqa: S311 chooses a mutation


def attempt(target: Target, seed: int, index: int) -> str:
    """Outcome of the input with a given index; other warnings than those for users are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for expected in (SignatureNotChecked, NotPersonalised):
            warnings.simplefilter("ignore", expected)
        return target.attempt(chance_for(target.name, seed, index))


def refusal(error: TaciturnError) -> str:
    """Outcome of a refused input; its message must be one line of reasonable length."""
    message = str(error)
    if "\n" in message or "\r" in message or not 0 < len(message) <= MESSAGE_MAX:
        raise Finding(f"{type(error).__name__} with a message of other than one line: {message!r}")
    return f"refused: {type(error).__name__}"


def outcome(read: Callable[[], None], *, is_unchanged: bool = False) -> str:
    """Outcome of reading an input that a function reads and checks."""
    try:
        read()
    except TaciturnError as error:
        if is_unchanged:
            raise Finding(f"the original was refused: {error}") from error
        return refusal(error)
    return UNCHANGED if is_unchanged else ACCEPTED


def require(holds: object, otherwise: str) -> None:
    """Raise a finding unless a condition holds."""
    if not holds:
        raise Finding(otherwise)
