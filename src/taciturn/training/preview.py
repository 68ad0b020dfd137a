"""Preview of a training: its cost in privacy, time and memory, without a release."""

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
from taciturn.solvers.als.solver import AlsSolver
from taciturn.solvers.contract import Session, Solver
from taciturn.training.checks import certified_delta, check_pattern

_TRIAL = 4
"""Iterations that a preview tries, the first of which does not count."""


@dataclass(frozen=True, kw_only=True)
class Preview:
    """Cost of a training in privacy, seconds and bytes.

    `certificate` is None if it is not private. `seconds` and `memory` are owner-only.
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

    Runs a few iterations on the ratings with throw-away noise, to see how fast they are, and
    discards the result. Nothing is released. The time and the memory they took depend on the number
    of ratings and are owner-only.
    """
    check_pattern(ratings, solver, pattern_is_public)
    if holdout is not None:
        holdout = validate.probability("holdout", holdout, "0.1 holds a tenth out")
        ratings, _ = random_split(ratings, holdout)
    events = solver.plan(ratings, budget)
    certificate = None
    if events:
        certificate = Certificate.from_ledger(Ledger(events), certified_delta(solver, budget))
    seconds = _estimate(ratings, solver, budget, threads)
    return Preview(
        status=certificate.status if certificate else Status.NONE,
        releases=sum(isinstance(event, GaussianRelease) for event in events),
        certificate=certificate,
        seconds=seconds,
        memory=peak_memory(),
    )


class _Enough(Exception):
    """Ends a trial of a few iterations."""


def _estimate(
    ratings: Ratings, solver: Solver, budget: Budget | None, threads: int | None
) -> float:
    """Seconds that training takes, estimated from its first iterations."""
    marks = [perf_counter()]
    total = 1

    def progress(done: int, in_all: int) -> None:
        nonlocal total
        marks.append(perf_counter())
        total = in_all
        if done >= _TRIAL:
            raise _Enough

    try:
        solver.fit(ratings, budget, Session(threads=threads, progress=progress))
    except _Enough:
        efforts = _efforts(solver, total)
        each = (marks[-1] - marks[2]) / sum(efforts[1:_TRIAL])
        return marks[1] - marks[0] + each * sum(efforts)
    return perf_counter() - marks[0]


def _efforts(solver: Solver, total: int) -> Sequence[float]:
    """Relative time of each iteration."""
    return (solver.efforts if isinstance(solver, AlsSolver) else None) or [1.0] * total


def peak_memory() -> int:
    """Peak resident memory of this process, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # getrusage would count the memory of the process that started this one, too.
        (line,) = [each for each in status.read_text().splitlines() if each.startswith("VmHWM")]
        return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
