"""Target that lets a system call of a training fail, and resumes it."""

import errno
from contextlib import suppress
from pathlib import Path
from random import Random

from taciturn.errors import TaciturnError
from tests.failures import Failure, Injector
from tests.torture.run_folders import differing
from tests.torture.target import Target, require
from tests.torture.trainings import SOLVERS, Contents, contents, finish, train_failing

SECOND_MAX = 150
"""System calls of a resumed training of which one fails too."""


class FaultTarget(Target):
    """Trainings of all configurations with a fault at a system call, and perhaps at another.

    The process ends, the call reports an error, the disk is full from then on, or Ctrl-C arrives.
    The second fault comes while the training is resumed. In the end its files are those of an
    undisturbed training.
    """

    name, share = "system-call fault", 0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.work = folder / "work"
        self.expected: dict[str, Contents] = {}
        self.calls: dict[str, int] = {}
        for name in SOLVERS:
            train_failing(self.work, name, Injector(None))  # imports modules, which are files too
            counter = Injector(None, counts_reads=True)
            train_failing(self.work, name, counter)
            self.calls[name] = counter.count
            self.expected[name] = contents(self.work)

    def attempt(self, chance: Random) -> str:
        name, failure = chance.choice(list(SOLVERS)), chance.choice(list(Failure))
        number = chance.randrange(self.calls[name])
        first = self.fail(name, failure, number, chance, resume=False)
        require(first.has_failed, f"{name} has no system call {number}")
        times = "once"
        if chance.randrange(2) and (self.work / "release.run").exists():
            again = chance.randrange(SECOND_MAX)
            second = self.fail(name, failure, again, chance, resume=True)
            times = "twice" if second.has_failed else "once"
        finish(self.work, name)
        lost = differing(contents(self.work), self.expected[name])
        require(not lost, f"{name}, {failure.name} at call {number}, differs in {lost}")
        return f"{failure.name}: {times}"

    def fail(
        self, name: str, failure: Failure, number: int, chance: Random, *, resume: bool
    ) -> Injector:
        """Train, or resume, with a fault at a system call."""
        code = errno.ENOSPC if failure is Failure.FULL else chance.choice((errno.EIO, errno.EACCES))
        injector = Injector(number, failure, code=code, counts_reads=True)
        # After Ctrl-C, no other error may hide it.
        interrupts = (KeyboardInterrupt,)
        errors = interrupts if failure is Failure.INTERRUPT else (TaciturnError, OSError)
        with suppress(*errors):
            train_failing(self.work, name, injector, resume=resume)
        return injector
