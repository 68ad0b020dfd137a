"""`tacit audit two-worlds`: many runs in each of two worlds, and an attacker who tells them apart.

The attacker knows both worlds and everything but which one was run. Seeing the transcript, they use
the ratio of its likelihoods, the best there is if noise is what was booked, or other weights of its
tables if those do clearly better; seeing the release alone, a score that they learnt. Score and
threshold are fixed on separate runs; what the others show is then bounded from below without
assuming anything about scores.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import _json, _validate
from tacit._files import prepare_folder, replace_file
from tacit._processes import job_count, run_tasks
from tacit._version import __version__
from tacit.audit import bounds
from tacit.audit.checks import Finding, check_runs
from tacit.audit.transcript import (
    Transcript,
    Values,
    losses,
    play,
    released_numbers,
    watch,
    with_others,
)
from tacit.audit.verdict import Claim, Verdict, claim_of, claim_to_dict
from tacit.audit.worlds import DELTA, Case
from tacit.errors import InvalidDocument
from tacit.privacy.accounting import gaussian
from tacit.solvers.contract import settings

Scores = npt.NDArray[np.float64]

VERSION = 1
"""Of what a run's score is: results of other versions are not used."""

_CHUNK = 25
"""Runs that are done and kept together."""

_BETTER = 1.25
"""How much more another score or threshold must promise to be taken: what is usual is safer."""

_NUMBERS_MAX = 256
"""Numbers of a release that a score is learnt from; of larger ones, those of the two rows."""


class View(StrEnum):
    """What the attacker sees."""

    TRANSCRIPT = "transcript"
    RELEASE = "release"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much to run.

    Parameters
    ----------
    runs
        Runs in each world that count. Others come before, for the threshold.
    view
        What the attacker sees.
    confidence
        Of every lower bound.
    """

    runs: int = 1000
    view: View = View.TRANSCRIPT
    confidence: float = 0.95

    def __post_init__(self) -> None:
        _validate.positive_integer("runs", self.runs, "1,000 are usual")
        object.__setattr__(self, "view", _validate.choice("view", self.view, View))
        bounds.check_confidence(self.confidence)

    @property
    def preparation(self) -> int:
        """Runs in each world that fix the score and the threshold, and do not count."""
        return max(50, self.runs // (8 if self.view is View.TRANSCRIPT else 2))


@dataclass(frozen=True, eq=False, kw_only=True)
class TwoWorlds:
    """The result of an audit.

    `scores` are those of the runs that count, one array for each world; above the threshold the
    attacker says that it is the second.
    """

    case: Case
    plan: Plan
    claim: Claim
    findings: list[Finding]
    scores: tuple[Scores, Scores]
    threshold: float

    @property
    def errors(self) -> tuple[int, int]:
        """How often the attacker took the first world for the second, and the second for the first.

        A run at the threshold counts as the first world.
        """
        first, second = self.scores
        return int((first > self.threshold).sum()), int((second <= self.threshold).sum())

    @property
    def rates(self) -> tuple[float, float]:
        """Upper bounds on both error rates."""
        return bounds.error_rates(*self.errors, self.plan.runs, self.plan.confidence)

    @property
    def mu(self) -> float:
        """The lower bound on μ."""
        return bounds.mu_lower(*self.rates)

    @property
    def verdict(self) -> Verdict:
        """Violated if a check failed or the trade-off lies below the claimed curve."""
        is_sound = all(finding.passed for finding in self.findings) and self.mu <= self.claim.mu
        return Verdict.NO_EVIDENCE if is_sound else Verdict.VIOLATED

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the scores as JSON types."""
        delta, confidence = self.claim.delta, self.plan.confidence
        assumed = bounds.gaussian_mu_lower(*self.scores, confidence)
        wrong = self.errors
        return {
            "audit": "two-worlds",
            "solver": self.case.solver.name,
            "settings": settings(self.case.solver),
            "pair": self.case.pair.words,
            "view": self.plan.view,
            **claim_to_dict(self.claim),
            "lower_bound": bounds.epsilon_lower(*self.rates, delta),
            "lower_bound_mu": self.mu,
            "lower_bound_gaussian": gaussian.epsilon(delta, assumed) if assumed > 0 else 0.0,
            "lower_bound_gaussian_mu": assumed,
            "lower_bound_gaussian_assumes": "scores are Gaussian, with one variance in both worlds",
            "confidence": confidence,
            "runs": self.plan.runs,
            "preparation": self.plan.preparation,
            "threshold": self.threshold,
            "false_positives": wrong[0],
            "false_negatives": wrong[1],
            "checks": [
                {"name": each.name, "passed": each.passed, "words": each.words}
                for each in self.findings
            ],
            "verdict": self.verdict,
        }


def audit_two_worlds(
    case: Case,
    plan: Plan | None = None,
    *,
    folder: Path | None = None,
    jobs: int | None = None,
    progress: Callable[[int, int, float], None] = lambda done, total, share: None,
) -> TwoWorlds:
    """Attack a case. Reads private data if its worlds are: the owner's own view.

    With a folder, runs that are done are kept in it, and the same call goes on from there.
    """
    plan = plan or Plan()
    jobs = job_count(jobs)
    _attackers.clear()
    findings = check_runs(case)
    claim = claim_of(
        watch(case.solver, case.pair.worlds[0], case.budget, case.session()).fit.ledger,
        case.solver,
        case.budget,
        case.budget.delta if case.budget else getattr(case.solver, "delta", DELTA),
    )
    if not findings[0].passed:
        # The worlds are asked different things: a history of one has no likelihood in the other.
        plan = Plan(runs=plan.runs, view=View.RELEASE, confidence=plan.confidence)
    key = _key(case, plan)
    tasks = [
        _Task(case, plan.view, key, world, part, number, min(_CHUNK, total - first))
        for part, total in (("preparation", plan.preparation), ("runs", plan.runs))
        for world in (0, 1)
        for number, first in enumerate(range(0, total, _CHUNK))
    ]
    if folder is not None:
        prepare_folder(folder / "runs")
    found = {task.name: _kept(task, folder) for task in tasks}
    missing = [task for task in tasks if found[task.name] is None]
    total = sum(task.count for task in tasks)
    done = total - sum(task.count for task in missing)
    before = done

    def keep(task: _Task, rows: Scores) -> None:
        nonlocal done
        found[task.name] = rows
        if folder is not None:
            replace_file(folder / "runs" / task.name, json.dumps(rows.tolist()).encode())
        done += task.count
        progress(done, total, (done - before) / (total - before))

    progress(done, total, 0.0 if missing else 1.0)
    run_tasks(_work, missing, min(jobs, max(1, len(missing))), keep)
    rows = {
        (part, world): np.concatenate(
            [_found(found[task.name]) for task in tasks if (task.part, task.world) == (part, world)]
        )
        for part in ("preparation", "runs")
        for world in (0, 1)
    }
    direction, threshold = _attack(rows["preparation", 0], rows["preparation", 1], plan)
    return TwoWorlds(
        case=case,
        plan=plan,
        claim=claim,
        findings=findings,
        scores=(rows["runs", 0] @ direction, rows["runs", 1] @ direction),
        threshold=threshold,
    )


@dataclass(frozen=True, eq=False)
class _Task:
    """Some runs in one world."""

    case: Case
    view: View
    key: str
    world: int
    part: str
    number: int
    count: int

    @property
    def name(self) -> str:
        return f"{self.key[:32]}-{self.part}-{self.world}-{self.number}-{self.count}.json"


def _work(task: _Task) -> Scores:
    """Return what the attacker sees of some runs, a row each."""
    return np.array([_seen(task) for _ in range(task.count)])


def _seen(task: _Task) -> Scores:
    case, world = task.case, task.world
    if task.view is View.RELEASE:
        fit = case.solver.fit(case.pair.worlds[world], case.budget, case.session())
        return _numbers(case, released_numbers(fit), fit)
    if task.key not in _attackers:
        _attackers.clear()
        _attackers[task.key] = _Attacker(case)
    history = _attackers[task.key].history(world)
    return losses(history) if world == 1 else -losses(history)


class _Attacker:
    """Runs with the sums of both worlds along the history of one.

    If a measurement holds released and public values only, as it should, the other world's sums
    are the same measurement of its values. Whether that is so is tried once; if not, the other
    world is played the history of every run.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        runs = [self._watch(world, ()) for world in (0, 1)]
        self._values: list[tuple[Values, ...]] = [run.values for run in runs]
        history = self._watch(0, self._values[1])
        played = self._play(history, 1)
        self._is_simple = all(
            np.array_equal(one.others, two.sums)  # type: ignore[arg-type]
            for one, two in zip(history.tables, played.tables, strict=True)
        )

    def history(self, world: int) -> Transcript:
        """Return a run in a world, with the other world's sums."""
        if self._is_simple:
            return self._watch(world, self._values[1 - world])
        history = self._watch(world, ())
        return with_others(history, self._play(history, 1 - world))

    def _watch(self, world: int, others: tuple[Values, ...]) -> Transcript:
        case = self._case
        ratings = case.pair.worlds[world]
        return watch(case.solver, ratings, case.budget, case.session(), others=others)

    def _play(self, history: Transcript, world: int) -> Transcript:
        case = self._case
        return play(history, case.solver, case.pair.worlds[world], case.budget, case.session())


_attackers: dict[str, _Attacker] = {}
"""The attacker of this process, by the key of its case."""


def _numbers(case: Case, numbers: Scores, fit: Any) -> Scores:
    """Return what a score is learnt from: all of a small release, or what is about the rating."""
    if numbers.size <= _NUMBERS_MAX:
        return numbers
    parts: list[Any] = [fit.mean]
    for side, row in ((fit.users, case.pair.user), (fit.items, case.pair.item)):
        if side is not None:
            parts += [side.biases[row], side.factors[row]]
    return np.concatenate([np.ravel(part) for part in parts]).astype(float)


def _attack(first: Scores, second: Scores, plan: Plan) -> tuple[Scores, float]:
    """Return how to weigh what is seen, and the threshold, from runs that do not count.

    Half of the runs teach weights, the others judge them.
    """
    learnt = _direction(first[::2], second[::2])
    judges = first[1::2], second[1::2]
    threshold, bound = _threshold(judges[0] @ learnt, judges[1] @ learnt, plan.confidence)
    if plan.view is View.RELEASE:
        return learnt, threshold
    whole = np.ones(first.shape[1])
    _, usual = _threshold(judges[0] @ whole, judges[1] @ whole, plan.confidence)
    if bound > _BETTER * usual:
        return learnt, threshold
    return whole, _threshold(first @ whole, second @ whole, plan.confidence)[0]


def _direction(first: Scores, second: Scores) -> Scores:
    """Return the direction in which two worlds differ most, for the spread of runs in each.

    Fisher's discriminant with a ridge; what never varies within a world counts as hardly varying.
    """
    centred = np.concatenate([first - first.mean(axis=0), second - second.mean(axis=0)])
    size = np.abs(np.concatenate([first, second])).max(axis=0)
    spread = np.maximum(centred.std(axis=0), 1e-9 * size + 1e-300)
    centred = centred / spread
    count, width = centred.shape
    ridge = width / (width + count)
    covariance = (1 - ridge) * centred.T @ centred / count + ridge * np.eye(width)
    difference = (second.mean(axis=0) - first.mean(axis=0)) / spread
    return np.asarray(np.linalg.solve(covariance, difference) / spread)


def _threshold(first: Scores, second: Scores, confidence: float) -> tuple[float, float]:
    """Return a threshold at which these runs bound μ well, and that bound.

    Halfway between the worlds' means, in deviations, suits scores that look Gaussian; if another
    one is clearly better, it is taken.
    """
    runs = min(first.size, second.size)

    def bound(threshold: float) -> float:
        wrong = int((first > threshold).sum()), int((second <= threshold).sum())
        return bounds.mu_lower(*bounds.error_rates(*wrong, runs, confidence))

    spread = first.std(), second.std()
    part = float(spread[0] / (spread[0] + spread[1])) if max(spread) > 0 else 0.5
    halfway = float(first.mean() + part * (second.mean() - first.mean()))
    candidates = np.unique(np.quantile(np.concatenate([first, second]), np.linspace(0, 1, 201)))
    best = max((float(each) for each in candidates), key=bound)
    chosen = best if bound(best) > _BETTER * bound(halfway) else halfway
    return chosen, bound(chosen)


def _key(case: Case, plan: Plan) -> str:
    facts = {
        "version": (VERSION, __version__),
        "worlds": [world.digest() for world in case.pair.worlds],
        "solver": case.solver.name,
        "settings": settings(case.solver),
        "budget": None if case.budget is None else (case.budget.epsilon, case.budget.delta),
        "seed": case.pair.seed,
        "view": plan.view,
        "runs": (plan.runs, plan.preparation),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _kept(task: _Task, folder: Path | None) -> Scores | None:
    if folder is None or not (folder / "runs" / task.name).is_file():
        return None
    try:
        rows = np.array(_json.read(folder / "runs" / task.name), dtype=np.float64)
    except (InvalidDocument, ValueError, TypeError):
        return None
    return rows if rows.ndim == 2 and len(rows) == task.count else None


def _found(rows: Scores | None) -> Scores:
    if rows is None:
        raise RuntimeError("a task was not done")
    return rows
