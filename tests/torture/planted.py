"""Targets with planted faults, which the workers must report."""

import os
import time
from random import Random

from taciturn.errors import InvalidDocument
from taciturn.tables.abort_guard import abort_guard
from tests.torture.target import Target, outcome


def refuse(message: str) -> None:
    """Refuse an input with a message."""
    raise InvalidDocument(message)


class Raising(Target):
    """Every input raises another exception than those of the library."""

    name, share = "raising", 0

    def attempt(self, chance: Random) -> str:
        raise KeyError("planted")


class Talking(Target):
    """Every input is refused in two lines."""

    name, share = "talking", 0

    def attempt(self, chance: Random) -> str:
        return outcome(lambda: refuse("one line\nand another"))


class Aborting(Target):
    """Every input aborts the process."""

    name, share = "aborting", 0

    def attempt(self, chance: Random) -> str:
        os.abort()


class Guarded(Target):
    """Every input aborts the process while the library's guard is set."""

    name, share = "guarded", 0

    def attempt(self, chance: Random) -> str:
        with abort_guard("ratings.parquet"):
            os.abort()


class Hanging(Target):
    """Every input but the first hangs."""

    name, share = "hanging", 0

    def attempt(self, chance: Random) -> str:
        if (self.folder / "tried").exists():
            time.sleep(600)
        (self.folder / "tried").touch()
        return "refused: in time"


class Busy(Target):
    """Every input but the first computes for ever."""

    name, share = "busy", 0

    def attempt(self, chance: Random) -> str:
        while (self.folder / "tried").exists():
            pass
        (self.folder / "tried").touch()
        return "refused: in time"


class Hungry(Target):
    """Every input takes more memory than allowed."""

    name, share = "hungry", 0

    def attempt(self, chance: Random) -> str:
        return f"accepted {len(bytearray(2**33))}"
