"""`taciturn audit two-worlds`: tells many runs on two neighbouring datasets apart.

The attacker knows both worlds and everything but which one was run. Seeing the transcript, they use
the ratio of its likelihoods, the best there is if noise is what was booked, or other weights of its
tables if those do clearly better; seeing the release alone, a score that they learnt. Score and
threshold are fixed on separate runs; what the others show is then bounded from below without
assuming anything about scores.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from taciturn import _core
from taciturn._internal import validate
from taciturn._internal.cell_cache import CellCache, cell_key
from taciturn._internal.processes import job_count, run_tasks
from taciturn.accounting import gaussian
from taciturn.audit import bounds
from taciturn.audit.checks import SAME, Finding, check_runs
from taciturn.audit.scores import Scores, fit_attack
from taciturn.audit.transcript import (
    Diverged,
    Transcript,
    losses,
    play,
    released_numbers,
    watch,
    with_others,
)
from taciturn.audit.verdict import Claim, Verdict, claim_of, claim_to_dict, exceeded
from taciturn.audit.worlds import Case
from taciturn.queries.executor import LocalExecutor
from taciturn.solvers.contract import Fit

_CHUNK = 25
"""Runs that are done and kept together."""

_DIFFERENT = "the number of releases differs between runs"

_NUMBERS_MAX, _PREDICTED = 64, 16
"""Numbers of a release that a score is learnt from, of larger ones those of the two rows; and
predictions for the user and for the item."""


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
        validate.positive_integer("runs", self.runs, "1,000 are usual")
        object.__setattr__(self, "view", validate.choice("view", self.view, View))
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
    def mu_most(self) -> float:
        """The largest bound that so many runs can give, without any error."""
        return bounds.mu_lower(*bounds.error_rates(0, 0, self.plan.runs, self.plan.confidence))

    @property
    def reasons(self) -> list[str]:
        """What the verdict follows from, if it is that the claim is violated."""
        failed = [f"{each.name}: {each.words}" for each in self.findings if not each.passed]
        return failed + exceeded(self.mu, self.claim.mu)

    @property
    def verdict(self) -> Verdict:
        """Violated if a check failed or the trade-off lies below the claimed curve."""
        return Verdict.VIOLATED if self.reasons else Verdict.NO_EVIDENCE

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the scores as JSON types."""
        delta, confidence = self.claim.delta, self.plan.confidence
        assumed = bounds.gaussian_mu_lower(*self.scores, confidence)
        wrong = self.errors
        return {
            "audit": "two-worlds",
            "solver": self.case.solver.name,
            "settings": self.case.solver.settings,
            "pair": self.case.pair.words,
            "attacker_sees": self.plan.view,
            **claim_to_dict(self.claim),
            "lower_bound": bounds.epsilon_lower(*self.rates, delta),
            "lower_bound_mu": self.mu,
            "lower_bound_mu_most": self.mu_most,
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
            "reasons": self.reasons,
        }


def audit_two_worlds(
    case: Case,
    plan: Plan | None = None,
    *,
    folder: Path | None = None,
    jobs: int | None = None,
    progress: Callable[[int, int, float], None] = lambda done, total, share: None,
    checking: Callable[[int, int], None] = lambda done, total: None,
) -> TwoWorlds:
    """Attack a case. Reads private data if its worlds are: the owner's own view.

    With a folder, runs that are done are kept in it, and the same call goes on from there.
    """
    plan = plan or Plan()
    jobs = job_count(jobs)
    findings, ledger = check_runs(case, checking)
    claim = claim_of(ledger, case.solver, case.budget)
    if not findings[0].passed:
        # A history of one world has no likelihood in the other.
        plan = replace(plan, view=View.RELEASE)
    try:
        rows = _rows(case, plan, folder, jobs, progress)
    except Diverged as error:
        findings[0] = Finding(SAME, False, str(error))
        plan = replace(plan, view=View.RELEASE)
        rows = _rows(case, plan, folder, jobs, progress)
    direction, threshold = fit_attack(
        rows["preparation", 0],
        rows["preparation", 1],
        plan.confidence,
        is_loss=plan.view is View.TRANSCRIPT,
    )
    return TwoWorlds(
        case=case,
        plan=plan,
        claim=claim,
        findings=findings,
        scores=(rows["runs", 0] @ direction, rows["runs", 1] @ direction),
        threshold=threshold,
    )


def _rows(
    case: Case,
    plan: Plan,
    folder: Path | None,
    jobs: int,
    progress: Callable[[int, int, float], None],
) -> dict[tuple[str, int], Scores]:
    """Run what is not kept yet; return what the attacker sees, a row for each run, by kind."""
    _attackers.clear()
    audit = _facts(case, plan)
    key = cell_key(audit)
    tasks = [
        _Task(case, plan.view, key, world, part, number, min(_CHUNK, total - first))
        for part, total in (("preparation", plan.preparation), ("runs", plan.runs))
        for world in (0, 1)
        for number, first in enumerate(range(0, total, _CHUNK))
    ]
    cache = None if folder is None else CellCache(folder / "runs", is_private=True)
    found: dict[_Task, Scores] = {}
    if cache is not None:
        known = {task: cache.get(audit | task.facts, task.parse) for task in tasks}
        found = {task: rows for task, rows in known.items() if rows is not None}
    if len({kept.shape[1] for kept in found.values()}) > 1:
        found.clear()  # not all of one audit
    missing = [task for task in tasks if task not in found]
    total = sum(task.count for task in tasks)
    before = done = total - sum(task.count for task in missing)

    def keep(task: _Task, rows: Scores) -> None:
        nonlocal done
        found[task] = rows
        if cache is not None:
            cache.put(audit | task.facts, rows.tolist())
        done += task.count
        progress(done, total, (done - before) / (total - before))

    progress(done, total, 0.0 if missing else 1.0)
    run_tasks(_work, missing, min(jobs, max(1, len(missing))), keep)
    if len({rows.shape[1] for rows in found.values()}) > 1:
        raise Diverged(_DIFFERENT)
    return {
        (part, world): np.concatenate(
            [found[task] for task in tasks if (task.part, task.world) == (part, world)]
        )
        for part in ("preparation", "runs")
        for world in (0, 1)
    }


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
    def facts(self) -> dict[str, Any]:
        """Which runs of its audit these are."""
        return {
            "part": self.part,
            "world": self.world,
            "number": self.number,
            "count": self.count,
        }

    def parse(self, document: Any) -> Scores | None:
        """Rows that were kept, or None if they are not those of this task."""
        rows = np.array(document, dtype=np.float64)
        is_whole = rows.ndim == 2 and len(rows) == self.count and np.isfinite(rows).all()
        return rows if is_whole else None


def _work(task: _Task) -> Scores:
    """Return what the attacker sees of some runs, a row each."""
    rows = [_seen(task) for _ in range(task.count)]
    if len({row.size for row in rows}) > 1:
        raise Diverged(_DIFFERENT)
    return np.array(rows)


def _seen(task: _Task) -> Scores:
    case, world = task.case, task.world
    if task.view is View.RELEASE:
        fit = case.solver.fit(case.pair.worlds[world], case.budget, case.session())
        return _numbers(case, fit)
    if task.key not in _attackers:
        _attackers.clear()
        _attackers[task.key] = _Attacker(case)
    history = _attackers[task.key].history(world)
    return losses(history) if world == 1 else -losses(history)


class _Attacker:
    """Runs with the sums of both neighbouring datasets along the transcript of one.

    If a query spec holds released and public values only, as it should, the sums of the other
    dataset are its answer to the same spec. Whether that is so is tried once; if not, the other
    dataset is played the transcript of every run.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self._executors = [LocalExecutor(world, threads=1) for world in case.pair.worlds]
        history = self._watch(0, self._executors[1])
        played = self._play(history, 1)
        self._is_simple = all(
            np.array_equal(one.others, two.sums)  # type: ignore[arg-type]
            for one, two in zip(history.tables, played.tables, strict=True)
        )

    def history(self, world: int) -> Transcript:
        """Return a run in a world, with the other world's sums."""
        if self._is_simple:
            return self._watch(world, self._executors[1 - world])
        history = self._watch(world)
        return with_others(history, self._play(history, 1 - world))

    def _watch(self, world: int, others: LocalExecutor | None = None) -> Transcript:
        case = self._case
        ratings = case.pair.worlds[world]
        return watch(case.solver, ratings, case.budget, case.session(), others=others)

    def _play(self, history: Transcript, world: int) -> Transcript:
        case = self._case
        return play(history, case.solver, case.pair.worlds[world], case.budget, case.session())


_attackers: dict[str, _Attacker] = {}
"""The attacker of this process, by the key of its case."""


def _numbers(case: Case, fit: Fit) -> Scores:
    """Return what a score is learnt from.

    All of a small release, of others what is about the rating; and predictions in its row and its
    column, whatever signs and directions factors have.
    """
    user, item = case.pair.user, case.pair.item
    numbers = released_numbers(fit)
    if numbers.size > _NUMBERS_MAX:
        parts: list[Any] = [fit.model.mean]
        for side, row in ((fit.model.users, user), (fit.model.items, item)):
            if side is not None:
                parts += [side.biases[row], side.factors[row]]
        numbers = np.concatenate([np.ravel(part) for part in parts]).astype(float)
    users, items = fit.model.users, fit.model.items
    if users is None or items is None:
        return numbers
    in_row, in_column = (np.arange(min(_PREDICTED, len(side))) for side in (items, users))
    scores = fit.model.score_rows(
        np.concatenate([[user], np.full(len(in_row), user), in_column]),
        np.concatenate([[item], in_row, np.full(len(in_column), item)]),
    )
    return np.concatenate([numbers, scores]).astype(float)


def _code_digest() -> str:
    """Return a fingerprint of this package: an audit is of its code, so other code begins again."""
    digest = hashlib.sha256(Path(_core.__file__).read_bytes())
    for file in sorted(Path(__file__).parent.parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _facts(case: Case, plan: Plan) -> dict[str, Any]:
    """Everything that the runs of an audit depend on but noise."""
    return {
        "code": _code_digest(),
        "worlds": [world.digest() for world in case.pair.worlds],
        "solver": case.solver.name,
        "settings": case.solver.settings,
        "budget": None if case.budget is None else (case.budget.epsilon, case.budget.delta),
        "seed": case.pair.seed,
        "view": plan.view,
        "runs": (plan.runs, plan.preparation),
    }
