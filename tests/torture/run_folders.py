"""Target that resumes trainings whose run folder was mutated."""

import os
from pathlib import Path
from random import Random

from taciturn.mechanisms.run_files import LEDGER
from taciturn.training.outputs import ITEMS, PSEUDONYMS
from tests.torture.mutators import mutate_bytes, mutate_lines
from tests.torture.target import Target, outcome, require
from tests.torture.trainings import Contents, contents, finish, restore, train_killed

PRIVATE = (ITEMS, PSEUDONYMS)
RUN = f"release.run{os.sep}"
MOMENTS = (0.3, 0.5, 0.7, 0.8, 0.9)
"""Moments at which the original trainings were killed, as parts of their operations."""


class RunFolderTarget(Target):
    """A resumed training ends in the same files as an undisturbed one, or is refused.

    A refused one keeps its ledger, and a release that was complete is not touched. The owner's
    private files are not mutated: they carry no code, and are delivered as they are.
    """

    name, share = "run folder", 6

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.work = folder / "work"
        self.originals: list[tuple[str, Contents]] = []
        self.expected: dict[str, Contents] = {}
        for name in ("paper", "gradient"):
            total = train_killed(self.work, name, None).count
            self.expected[name] = contents(self.work)
            for moment in MOMENTS:
                train_killed(self.work, name, int(total * moment))
                self.originals.append((name, contents(self.work)))

    def attempt(self, chance: Random) -> str:
        name, original = chance.choice(self.originals)
        changed = dict(original)
        file = chance.choice([file for file in original if is_read(file, original)])
        self.change(changed, file, chance)
        restore(self.work, changed)

        def read() -> None:
            finish(self.work, name)
            found = contents(self.work)
            require(
                found == self.expected[name], f"{file}: {differing(found, self.expected[name])}"
            )

        found = outcome(read, is_unchanged=changed == original)
        if found.startswith("refused"):
            self.check_kept(changed, file)
        return found

    def change(self, files: Contents, file: str, chance: Random) -> None:
        """Mutate, remove or exchange a file."""
        content = files[file] or b""
        others = [each for _, state in self.originals for each in state.values() if each]
        match chance.randrange(6):
            case 0:
                del files[file]
            case 1:
                state = chance.choice(self.originals)[1]
                files[file] = state.get(file, b"") or b""
            case 2 if file.endswith(".jsonl"):
                files[file] = mutate_lines(content.decode(), ",", chance).encode()
            case _:
                files[file] = mutate_bytes(content, others, chance)

    def check_kept(self, changed: Contents, file: str) -> None:
        """Raise a finding if a refused training lost its ledger or changed its release."""
        found = contents(self.work)
        kept = [RUN + LEDGER] if file != RUN + LEDGER else []
        kept += [name for name in changed if name.startswith(f"release{os.sep}")]
        lost = [name for name in kept if name in changed and found.get(name) != changed[name]]
        require(not lost, f"{file} was mutated, and {lost} changed")


def is_read(file: str, files: Contents) -> bool:
    """True for a file of the run or of its release."""
    is_run = file.startswith(("release" + os.sep, RUN)) and Path(file).name not in PRIVATE
    return is_run and files[file] is not None


def differing(found: Contents, expected: Contents) -> list[str]:
    """Files that differ between two folders."""
    names = found.keys() | expected.keys()
    return sorted(name for name in names if found.get(name, "") != expected.get(name, ""))
