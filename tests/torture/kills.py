"""Real trainings, killed at random moments and resumed until they are done.

Each training runs in a process of its own, through the command line, with pseudonyms, private
files or a signature. A server that has imported everything, but computed nothing, forks it.
SIGKILL or Ctrl-C ends it several times. It is resumed each time, and in the end its files must be
those of an undisturbed training, to the byte.
"""

import multiprocessing
import os
import shutil
import signal
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from time import monotonic, sleep

from taciturn.accounting.journal import read_journal
from taciturn.cli.start import INTERRUPTED
from taciturn.errors import TaciturnError
from taciturn.release.sign import make_keys
from taciturn.training.outputs import run_folder
from tests.solvers.helpers import random_ratings
from tests.torture import victim
from tests.torture.run_folders import differing
from tests.torture.target import chance_for
from tests.torture.trainings import Contents, contents

CONFIGURATIONS: dict[str, tuple[str, ...]] = {
    "paper": (
        *("--solver", "paper", "--unit", "value", "--factors", "4", "--iterations", "30"),
        *("--epsilon", "10"),
        *("--users-out", "pseudonyms", "--pseudonyms-out", "names", "--private-items-out", "items"),
    ),
    "value": (
        *("--unit", "value", "--iterations", "5", "--factors", "3", "--epsilon", "10"),
        *("--sign", "../key"),
        *("--users-out", "pseudonyms", "--pseudonyms-out", "names"),
    ),
    "rating": ("--unit", "rating", "--iterations", "4", "--factors", "2", "--epsilon", "10"),
    "user": ("--unit", "user", "--iterations", "4", "--factors", "2", "--epsilon", "10"),
    "gradient": (
        *("--solver", "gradient", "--unit", "value", "--factors", "3", "--iterations", "16"),
        *("--epsilon", "10"),
    ),
}

WATCHED = ("release.run", "release.run/state", "release.run/outputs.json", "release", "names")
"""Files after whose appearance a kill may follow at once."""

SECONDS_MAX = 120.0
"""Maximum time for one training."""

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([victim.__name__])


@dataclass
class Killed:
    """Kills by configuration, signal and phase, and what must not happen."""

    kills: Counter[str] = field(default_factory=Counter)
    trainings: int = 0
    findings: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Number of processes that were killed."""
        return self.kills.total()

    def add(self, other: "Killed") -> None:
        """Add the results of another training."""
        self.kills += other.kills
        self.trainings += other.trainings
        self.findings += other.findings


class KillLoop:
    """Trainings in a folder of its own, and their undisturbed results.

    Parameters
    ----------
    folder
        Folder for the ratings, the key and the outputs.
    seed
        Seed of the moments.
    names
        Configurations to train.
    """

    def __init__(
        self, folder: Path, seed: int, names: tuple[str, ...] = (*CONFIGURATIONS,)
    ) -> None:
        self.folder, self.seed, self.names = folder, seed, names
        folder.mkdir(parents=True, exist_ok=True)
        ratings = random_ratings(2, users=60, items=40).to_frame()
        ratings.select("user_id", "item_id", "rating").write_csv(folder / "ratings.csv")
        make_keys(folder / "key")
        self.expected: dict[str, Contents] = {}
        self.seconds: dict[str, float] = {}
        for name in names:
            own = self.fresh(f"expected-{name}")
            process, start = self.start(name, own, resume=False), monotonic()
            if self.ended(process) != 0:
                raise RuntimeError(self.log(own).read_text())
            self.seconds[name] = monotonic() - start
            self.expected[name] = contents(own)

    def fresh(self, name: str) -> Path:
        """Empty folder."""
        path = self.folder / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def start(self, name: str, folder: Path, *, resume: bool) -> BaseProcess:
        """Process that trains in a folder, once it has begun to run the command."""
        arguments = ["train", "../ratings.csv", "--scale", "1:5:1", "-o", "release"]
        arguments += ["--threads", "1", *CONFIGURATIONS[name], *(["--resume"] if resume else [])]
        here, there = _CONTEXT.Pipe()
        facts = (folder, self.log(folder), arguments, there)
        process = _CONTEXT.Process(target=victim.main, args=facts, daemon=True)
        process.start()
        there.close()
        here.recv()
        return process

    def log(self, folder: Path) -> Path:
        """File of what a training printed."""
        return folder.with_name(f"{folder.name}.log")

    def torment(self, number: int) -> Killed:
        """Kill one training several times, then let it end, and compare."""
        chance = chance_for("kills", self.seed, number)
        name = self.names[number % len(self.names)]
        folder, result = self.fresh(f"run-{number}"), Killed()
        left, events, tidied = chance.randrange(1, 8), 0, 0
        release = folder / "release"
        try:
            while run_folder(release).exists() or not release.exists():
                if left == 0:
                    self.finish(name, folder, result, number)
                    tidied += 1
                    if tidied > 2 or result.findings:
                        break
                    continue
                left -= 1
                self.kill_once(name, folder, chance, result, number)
                found = recorded(release)
                if found < events and not release.exists():
                    result.findings.append(f"kill {number}: {events} events became {found}")
                events = found
            lost = differing(contents(folder), self.expected[name])
            if lost and not result.findings:
                result.findings.append(f"training {number} ({name}) differs in {lost}")
        except (TaciturnError, RuntimeError, EOFError) as error:
            result.findings.append(f"training {number} ({name}): {error}")
        result.trainings = 1
        shutil.rmtree(folder, ignore_errors=True)
        return result

    def kill_once(
        self, name: str, folder: Path, chance: Random, result: Killed, number: int
    ) -> None:
        """Start or resume a training and end it at a random moment."""
        release = folder / "release"
        number_of_signal = signal.SIGINT if chance.randrange(5) == 0 else signal.SIGKILL
        process = self.start(name, folder, resume=run_folder(release).exists())
        self.wait(name, folder, process, chance)
        if process.pid is not None and process.is_alive():
            with suppress(ProcessLookupError):
                os.kill(process.pid, number_of_signal)
        code = self.ended(process)
        if code in (-signal.SIGKILL, INTERRUPTED):
            result.kills[f"{name}: {number_of_signal.name}: {phase(release)}"] += 1
        elif code != 0:
            self.check_tidied(name, folder, result, number, code)

    def wait(self, name: str, folder: Path, process: BaseProcess, chance: Random) -> None:
        """Wait for a random time, or until a random file appears and a little longer."""
        end = monotonic() + self.seconds[name] * 1.2
        watched = folder / chance.choice(WATCHED)
        if chance.randrange(2) or watched.exists():
            sleep(chance.random() * self.seconds[name])
            return
        while monotonic() < end and not watched.exists() and process.is_alive():
            sleep(0.0005)
        sleep(chance.random() * 0.02)

    def finish(self, name: str, folder: Path, result: Killed, number: int) -> None:
        """Start or resume a training and let it end."""
        resume = run_folder(folder / "release").exists()
        code = self.ended(self.start(name, folder, resume=resume))
        if code != 0:
            self.check_tidied(name, folder, result, number, code)

    def ended(self, process: BaseProcess) -> int:
        """Exit code of a process; one that does not end is killed."""
        process.join(SECONDS_MAX)
        code = process.exitcode
        process.kill()
        process.join()
        process.close()
        if code is None:
            raise RuntimeError(f"a training took more than {SECONDS_MAX:g} seconds")
        return code

    def check_tidied(self, name: str, folder: Path, result: Killed, number: int, code: int) -> None:
        """Add a finding, unless a kill had come while the key of a finished run was erased.

        That attempt finishes erasing the key and says so. The next one ends the training.
        """
        log = self.log(folder).read_text(errors="replace")
        if code != 2 or "its noise key erased" not in log or not (folder / "release").exists():
            result.findings.append(f"training {number} ({name}) ended with code {code}: {log}")


def recorded(release: Path) -> int:
    """Events in the ledger of an unfinished training."""
    ledger = run_folder(release) / "ledger.jsonl"
    return len(read_journal(ledger).events) if ledger.exists() else 0


def phase(release: Path) -> str:
    """Phase of a training, as its files show it."""
    run = run_folder(release)
    if release.exists():
        return "after the release" if run.exists() else "when all was done"
    if not run.exists():
        return "before the run folder"
    if (run / "outputs.json").exists():
        return "while the release was written"
    return "while noise was drawn" if recorded(release) else "before the first event"
