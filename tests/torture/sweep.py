"""Simulated kills: a training ends at one of its operations on the disk, and is resumed."""

from pathlib import Path
from random import Random

from tests.torture.run_folders import differing
from tests.torture.target import Target, require
from tests.torture.trainings import SOLVERS, Contents, contents, finish, train_killed

SECOND_MAX = 60
"""Operations of a resumed training at which it is killed again."""


class SweepTarget(Target):
    """Trainings of all configurations, killed at an operation, resumed, and perhaps killed again.

    In the end their files are those of an undisturbed training.
    """

    name, share = "simulated kill", 0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.work = folder / "work"
        self.expected: dict[str, Contents] = {}
        self.operations: dict[str, int] = {}
        for name in SOLVERS:
            self.operations[name] = train_killed(self.work, name, None).count
            self.expected[name] = contents(self.work)

    def attempt(self, chance: Random) -> str:
        name = chance.choice(list(SOLVERS))
        operation, is_again = chance.randrange(self.operations[name]), chance.randrange(2)
        killed = train_killed(self.work, name, operation)
        require(killed.has_failed, f"{name} has no operation {operation}")
        times = "once"
        if is_again and (self.work / "release.run").exists():
            again = train_killed(self.work, name, chance.randrange(SECOND_MAX), resume=True)
            times = "twice" if again.has_failed else "once"
        finish(self.work, name)
        lost = differing(contents(self.work), self.expected[name])
        require(not lost, f"{name}, killed at operation {operation}, differs in {lost}")
        return f"{name}, killed {times}"
