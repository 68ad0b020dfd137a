"""A whole run: mutated inputs in worker processes, killed trainings beside them, and the report."""

import os
import platform
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from tests.torture.catalog import FAULTS, INPUTS, TARGETS
from tests.torture.kills import Killed, KillLoop
from tests.torture.report import write_report
from tests.torture.workers import MEMORY_MAX, SECONDS_MAX, SILENCE_MAX, Chunk, Result, try_inputs

CHUNK = 40
"""Maximum number of inputs that a worker takes at once."""

PACKAGES = ("taciturn", "polars", "pyarrow", "numpy", "scipy", "cryptography")

EVERY = 5.0
"""Seconds between lines of progress."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Size of a run.

    Attributes
    ----------
    inputs, kills
        Numbers of mutated inputs and of killed processes. There are as many faults as kills.
    minutes
        Maximum time; None for no limit.
    jobs
        Worker processes for inputs. Trainings to be killed run beside them, one at a time.
    seed
        Seed of all mutations and moments.
    remark
        Sentence for the report, about the machine for example.
    """

    inputs: int = 1_000_000
    kills: int = 1_000
    minutes: float | None = None
    jobs: int = 2
    seed: int = 1
    remark: str = ""


@dataclass
class Tally:
    """Results so far."""

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    slowest: dict[str, float] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    killed: Killed = field(default_factory=Killed)
    replaced: int = 0

    @property
    def inputs(self) -> int:
        """Number of mutated inputs."""
        return sum(each.total() for name, each in self.outcomes.items() if name != FAULTS)

    def add(self, result: Result, seed: int) -> None:
        """Count the outcome of one input."""
        name = result.name
        self.outcomes.setdefault(name, Counter())[result.outcome] += 1
        self.slowest[name] = max(self.slowest.get(name, 0.0), result.seconds)
        if result.finding is not None:
            command = f"python -m tests.torture {name!r} --seed {seed} --index {result.index}"
            self.findings.append(f"{command}\n{result.finding}")


class Run:
    """One run of a plan; `results` is complete at any moment, also after an interrupt."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.tally = plan, Tally()
        self.start = monotonic()
        self.began = datetime.now(UTC)
        self.deadline = self.start + 60 * plan.minutes if plan.minutes else float("inf")
        self.said = self.start
        self._is_stopped = threading.Event()

    @property
    def is_over(self) -> bool:
        """True when no new work may begin."""
        return monotonic() > self.deadline or self._is_stopped.is_set()

    def work(self) -> None:
        """Try all inputs and kill all trainings."""
        killer = threading.Thread(target=self._kill)
        killer.start()
        try:
            self.tally.replaced += try_inputs(
                self._chunks(), self.plan.seed, self.plan.jobs, self._count
            )
        except BaseException:
            self._is_stopped.set()
            raise
        finally:
            while killer.is_alive():
                killer.join(EVERY)
                self._say()

    def _chunks(self) -> Iterator[Chunk]:
        """Inputs in turns: of every thousand, each target has its share."""
        done, plan = 0, self.plan
        while done < plan.inputs and not self.is_over:
            size = min(INPUTS, plan.inputs - done)
            for name, target in TARGETS.items():
                share, of = (plan.kills, plan.inputs) if name == FAULTS else (target.share, INPUTS)
                first, last = (count * share // of for count in (done, done + size))
                yield from self._parts(name, first, last)
            done += size

    def _parts(self, name: str, start: int, stop: int) -> Iterator[Chunk]:
        for begin in range(start, stop, CHUNK):
            if self.is_over:
                return
            yield Chunk(TARGETS[name], begin, min(stop, begin + CHUNK))

    def _kill(self) -> None:
        if self.plan.kills == 0:
            return
        killed = self.tally.killed
        with TemporaryDirectory(prefix="torture-kills-") as folder:
            try:
                loop = KillLoop(Path(folder) / "kills", self.plan.seed)
                while killed.total < self.plan.kills and not self.is_over:
                    result = loop.torment(killed.trainings)
                    killed.add(result)
                    sys.stderr.write("".join(f"{finding}\n" for finding in result.findings))
            except Exception as error:
                killed.findings.append(f"the kill loop ended: {error!r}")

    def _count(self, result: Result) -> None:
        self.tally.add(result, self.plan.seed)
        if result.finding is not None:
            sys.stderr.write(f"{self.tally.findings[-1]}\n")
        if monotonic() - self.said > EVERY:
            self._say()

    def _say(self) -> None:
        self.said = monotonic()
        seconds = self.said - self.start
        tally = self.tally
        sys.stderr.write(
            f"{seconds:6.0f} s  {tally.inputs:,} inputs ({tally.inputs / seconds:.0f}/s)  "
            f"{tally.killed.total:,} kills  "
            f"{len(tally.findings) + len(tally.killed.findings)} findings\n"
        )
        sys.stderr.flush()

    def results(self) -> dict[str, Any]:
        """Results as JSON types."""
        tally = self.tally
        outcomes = {name: dict(tally.outcomes[name]) for name in TARGETS if name in tally.outcomes}
        faults = outcomes.pop(FAULTS, {})
        return {
            "date": self.began.date().isoformat(),
            "seed": self.plan.seed,
            "jobs": self.plan.jobs,
            "remark": self.plan.remark,
            "seconds": round(monotonic() - self.start),
            "inputs": tally.inputs,
            "outcomes": outcomes,
            "slowest_processor_seconds": {name: round(tally.slowest[name], 2) for name in outcomes},
            "replaced_workers": tally.replaced,
            "limits": {
                "processor_seconds": SECONDS_MAX,
                "silent_seconds": SILENCE_MAX,
                "bytes": MEMORY_MAX,
            },
            "kills": tally.killed.total,
            "kills_by_phase": dict(tally.killed.kills),
            "trainings": tally.killed.trainings,
            "faults": faults,
            "findings": tally.findings + tally.killed.findings,
            "versions": {"python": platform.python_version()}
            | {name: version(name) for name in PACKAGES},
            "machine": {"processors": os.cpu_count(), "system": platform.platform()},
        }


def carry_out(plan: Plan, output: Path) -> int:
    """Carry out a plan and write report.json and report.md; returns the number of findings."""
    run = Run(plan)
    try:
        run.work()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: the report covers what was done\n")
    results = run.results()
    write_report(results, output)
    sys.stderr.write(f"{output / 'report.md'} has the report\n")
    return len(results["findings"])
