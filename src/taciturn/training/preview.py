"""Preview of a training: privacy cost, time and memory, without a release."""

import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from taciturn._internal import validate
from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.events import GaussianRelease
from taciturn.accounting.ledger import Ledger, Status
from taciturn.data.ratings import Ratings
from taciturn.data.splits import random_split
from taciturn.solvers.contract import Session
from taciturn.solvers.loop import planned_events
from taciturn.solvers.solver import Solver
from taciturn.training.checks import check_pattern
from taciturn.training.memory import check_memory

_TRIAL, _PART = 4, 0.04
"""Minimum number of steps that a preview runs, and minimum fraction of the total effort."""


@dataclass(frozen=True, kw_only=True)
class Preview:
    """Cost of a training in privacy, seconds and bytes.

    `certificate` is None if the solver is not private. `seconds` and `memory` are owner-only.
    """

    status: Status
    releases: int
    certificate: Certificate | None
    seconds: float
    memory: int


def preview(
    ratings: Ratings,
    solver: Solver,
    budget: Budget | None = None,
    *,
    holdout: float | None = None,
    threads: int | None = None,
    pattern_is_public: bool = False,
) -> Preview:
    """Privacy cost of a training, with estimates of its time and memory.

    Times a few steps on the ratings with throw-away noise and discards the result. Nothing is
    released. The estimates depend on the number of ratings and are owner-only.
    """
    check_pattern(ratings, solver, pattern_is_public)
    if holdout is not None:
        holdout = validate.probability("holdout", holdout, "0.1 holds a tenth out")
        ratings, _ = random_split(ratings, holdout)
    begin = perf_counter()
    check_memory(ratings, solver)
    algorithm = solver.algorithm_for(ratings, budget)
    # A model of public ratings is fitted here and cached, so the trial below does not time it.
    planning = perf_counter() - begin
    events, certificate = planned_events(algorithm), None
    if events:
        ledger = Ledger(events, public_inputs=solver.public_inputs(ratings))
        certificate = Certificate.from_ledger(ledger, solver.stated_delta(budget))
    efforts = [step.effort for step in algorithm.schedule]
    seconds = planning + _estimate(ratings, solver, budget, efforts, threads)
    return Preview(
        status=certificate.status if certificate else Status.NONE,
        releases=sum(isinstance(event, GaussianRelease) for event in events),
        certificate=certificate,
        seconds=seconds,
        memory=peak_memory(),
    )


class _Enough(Exception):
    """Raised to stop after enough steps."""


def _estimate(
    ratings: Ratings,
    solver: Solver,
    budget: Budget | None,
    efforts: Sequence[float],
    threads: int | None,
) -> float:
    """Duration of the training in seconds, estimated from its first steps.

    The first step is slower than the others and is not extrapolated.
    """
    begin, marks, enough = perf_counter(), [0.0], _PART * sum(efforts)

    def progress(done: int, total: int) -> None:
        marks.append(perf_counter())
        if done >= _TRIAL and sum(efforts[:done]) >= enough:
            raise _Enough

    try:
        solver.fit(ratings, budget, Session(threads=threads, progress=progress))
    except _Enough:
        tried = len(marks) - 2
        each = (marks[-1] - marks[2]) / sum(efforts[1:tried])
        return marks[2] - begin + each * sum(efforts[1:])
    return perf_counter() - begin


def peak_memory() -> int:
    """Peak resident memory of this process, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # getrusage would count the memory of the process that started this one, too.
        (line,) = [each for each in status.read_text().splitlines() if each.startswith("VmHWM")]
        return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
