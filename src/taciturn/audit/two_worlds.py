"""`taciturn audit two-worlds`: distinguish many runs on two neighbouring datasets.

The attacker knows both datasets, but not which one a run used. If they see the transcript, their
score is its likelihood ratio, which is optimal if the noise is as recorded. Other weights of the
tables replace it if they do clearly better. If they see the release alone, the score is learnt.
Score and threshold are fixed on separate preparation runs. The lower bound from the remaining runs
makes no assumption about scores.
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
from taciturn._internal.cell_cache import AUDIT, CellCache, cell_key
from taciturn._internal.processes import job_count, run_tasks
from taciturn.accounting import gaussian
from taciturn.audit import bounds
from taciturn.audit.cases import Case
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
from taciturn.queries.executor import LocalExecutor
from taciturn.solvers.contract import Fit

_CHUNK = 25
"""Number of runs that are done and cached together."""

_DIFFERENT = "the number of releases differs between runs"

_NUMBERS_MAX, _PREDICTED = 64, 16
"""Maximum number of released values that a score uses (a larger release is reduced to the profiles
of the user and the item), and number of predictions per user and per item."""


class View(StrEnum):
    """Output that the attacker sees."""

    TRANSCRIPT = "transcript"
    RELEASE = "release"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Size of an audit, and the attacker's view.

    Parameters
    ----------
    runs
        Counted runs on each neighbouring dataset; the preparation runs come on top.
    view
        Output that the attacker sees.
    confidence
        Confidence of every lower bound.
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
        """Runs on each dataset that fix the score and the threshold; they are not counted."""
        return max(50, self.runs // (8 if self.view is View.TRANSCRIPT else 2))


@dataclass(frozen=True, eq=False, kw_only=True)
class TwoWorlds:
    """Result of an audit with many runs.

    `scores` has one array of scores of counted runs for each neighbouring dataset. The attacker
    guesses the second dataset if a score is above the threshold.
    """

    case: Case
    plan: Plan
    claim: Claim
    findings: list[Finding]
    scores: tuple[Scores, Scores]
    threshold: float

    @property
    def errors(self) -> tuple[int, int]:
        """Numbers of false positives (first dataset taken for the second) and false negatives.

        The guess for a score at the threshold is the first dataset.
        """
        first, second = self.scores
        return int((first > self.threshold).sum()), int((second <= self.threshold).sum())

    @property
    def rates(self) -> tuple[float, float]:
        """Upper bounds on both error rates."""
        return bounds.error_rates(*self.errors, self.plan.runs, self.plan.confidence)

    @property
    def mu(self) -> float:
        """Lower bound on μ."""
        return bounds.mu_lower(*self.rates)

    @property
    def mu_most(self) -> float:
        """Largest possible lower bound: the one from runs without any error."""
        return bounds.mu_lower(*bounds.error_rates(0, 0, self.plan.runs, self.plan.confidence))

    @property
    def reasons(self) -> list[str]:
        """Reasons for the verdict that the claim is violated; empty otherwise."""
        failed = [f"{each.name}: {each.words}" for each in self.findings if not each.passed]
        return failed + exceeded(self.mu, self.claim.mu)

    @property
    def verdict(self) -> Verdict:
        """Violated if a check failed or the lower bound exceeds the claimed μ."""
        return Verdict.VIOLATED if self.reasons else Verdict.NO_EVIDENCE

    def to_dict(self) -> dict[str, Any]:
        """Everything except the scores, as JSON types."""
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
            "lower_bound_gaussian_assumes": "scores are Gaussian with equal variances",
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
    """Attack a case. Owner-only if its datasets are private.

    With a folder, finished runs are cached there, and the same call resumes an interrupted audit.
    """
    plan = plan or Plan()
    jobs = job_count(jobs)
    findings, ledger = check_runs(case, checking)
    claim = claim_of(ledger, case.solver, case.budget)
    if not findings[0].passed:
        # The transcript of one dataset has no likelihood under the other.
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
    """Run all uncached tasks; return the attacker's view, one row per run, by part and dataset."""
    _attackers.clear()
    audit = _facts(case, plan)
    key = cell_key(audit)
    tasks = [
        _Task(case, plan.view, key, dataset, part, number, min(_CHUNK, total - first))
        for part, total in (("preparation", plan.preparation), ("runs", plan.runs))
        for dataset in (0, 1)
        for number, first in enumerate(range(0, total, _CHUNK))
    ]
    cache = None if folder is None else CellCache(folder / AUDIT, is_private=True)
    found: dict[_Task, Scores] = {}
    if cache is not None:
        known = {task: cache.get(audit | task.facts, task.parse) for task in tasks}
        found = {task: rows for task, rows in known.items() if rows is not None}
    if len({rows.shape[1] for rows in found.values()}) > 1:
        found.clear()  # the cached runs are of different audits
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
        (part, dataset): np.concatenate(
            [found[task] for task in tasks if (task.part, task.dataset) == (part, dataset)]
        )
        for part in ("preparation", "runs")
        for dataset in (0, 1)
    }


@dataclass(frozen=True, eq=False)
class _Task:
    """Some runs on one of the two datasets, by its index."""

    case: Case
    view: View
    key: str
    dataset: int
    part: str
    number: int
    count: int

    @property
    def facts(self) -> dict[str, Any]:
        """Cache key of these runs within their audit."""
        return {
            "part": self.part,
            "dataset": self.dataset,
            "number": self.number,
            "count": self.count,
        }

    def parse(self, document: Any) -> Scores | None:
        """Cached rows, or None if they do not fit this task."""
        rows = np.array(document, dtype=np.float64)
        is_whole = rows.ndim == 2 and len(rows) == self.count and np.isfinite(rows).all()
        return rows if is_whole else None


def _work(task: _Task) -> Scores:
    """Attacker's view of the runs of a task, one row each."""
    rows = [_seen(task) for _ in range(task.count)]
    if len({row.size for row in rows}) > 1:
        raise Diverged(_DIFFERENT)
    return np.array(rows)


def _seen(task: _Task) -> Scores:
    case, dataset = task.case, task.dataset
    if task.view is View.RELEASE:
        fit = case.solver.fit(case.pair.datasets[dataset], case.budget, case.session())
        return _numbers(case, fit)
    if task.key not in _attackers:
        _attackers.clear()
        _attackers[task.key] = _Attacker(case)
    transcript = _attackers[task.key].transcript(dataset)
    return losses(transcript) if dataset == 1 else -losses(transcript)


class _Attacker:
    """Makes transcripts with the exact sums of both neighbouring datasets.

    If query specs contain released and public values only, as they should, the sums of the other
    dataset are its answers to the same specs. One replay checks this. If it fails, every
    transcript is replayed on the other dataset.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self._executors = [LocalExecutor(each, threads=1) for each in case.pair.datasets]
        transcript = self._watch(0, self._executors[1])
        played = self._play(transcript, 1)
        self._is_simple = all(
            np.array_equal(one.others, two.sums)  # type: ignore[arg-type]
            for one, two in zip(transcript.tables, played.tables, strict=True)
        )

    def transcript(self, dataset: int) -> Transcript:
        """Transcript of a run on one dataset, with the sums of the other."""
        if self._is_simple:
            return self._watch(dataset, self._executors[1 - dataset])
        transcript = self._watch(dataset)
        return with_others(transcript, self._play(transcript, 1 - dataset))

    def _watch(self, dataset: int, others: LocalExecutor | None = None) -> Transcript:
        case = self._case
        ratings = case.pair.datasets[dataset]
        return watch(case.solver, ratings, case.budget, case.session(), others=others)

    def _play(self, transcript: Transcript, dataset: int) -> Transcript:
        case = self._case
        ratings = case.pair.datasets[dataset]
        return play(transcript, case.solver, ratings, case.budget, case.session())


_attackers: dict[str, _Attacker] = {}
"""The attacker of this process, by the key of its audit."""


def _numbers(case: Case, fit: Fit) -> Scores:
    """Inputs of a learnt score: released values, and predictions for the user and for the item.

    A large release is reduced to the profiles of the user and the item. Predictions do not depend
    on the signs and rotation of the factors.
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
    """Hash of this package's code; runs of other code are not reused."""
    digest = hashlib.sha256(Path(_core.__file__).read_bytes())
    for file in sorted(Path(__file__).parent.parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _facts(case: Case, plan: Plan) -> dict[str, Any]:
    """Everything that the runs of an audit depend on, except noise."""
    return {
        "code": _code_digest(),
        "datasets": [each.digest() for each in case.pair.datasets],
        "solver": case.solver.name,
        "settings": case.solver.settings,
        "budget": None if case.budget is None else (case.budget.epsilon, case.budget.delta),
        "seed": case.pair.seed,
        "view": plan.view,
        "runs": (plan.runs, plan.preparation),
    }
