"""Checks of single runs: bugs that scores do not show, or only after many runs.

A transcript is replayed on a neighbouring dataset, and the exact sums may differ by no more than
the recorded bounds. An audit knows the exact sums, so it checks the noise itself as well. A sound
solver fails a check with probability below `FALSE_POSITIVE_RATE`.
"""

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from taciturn.accounting import sampler
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.events import Noise
from taciturn.accounting.ledger import Ledger
from taciturn.audit.cases import Case
from taciturn.audit.noise import (
    Drawn,
    drawn,
    repeated_numbers,
    shared_runs,
    shared_tables,
    unusual_mean,
    unusual_size,
)
from taciturn.audit.transcript import (
    Diverged,
    Interrupted,
    Stopped,
    Table,
    Transcript,
    play,
    released_numbers,
    watch,
)
from taciturn.errors import NoiseReuse
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.mechanisms.query import BoundedQuery
from taciturn.mechanisms.run_folder import RunFolder
from taciturn.solvers.contract import Fit

FALSE_POSITIVE_RATE = 1e-5
"""Maximum probability that a sound solver fails any of the checks."""

RUNS, NUMBERS = 8, 200
"""Minimum number of runs, and of noise values over all runs: enough to measure their size."""

PLAYED = 2
"""Number of these runs whose transcript is replayed on the neighbouring dataset."""

_LEVEL = FALSE_POSITIVE_RATE / 5
"""False-positive rate of each statistical check: size, mean, repeats, tables and runs."""

_MORE = PLAYED + 4
"""Additional runs: the replayed ones, and two that are interrupted and resumed."""

SAME = "same queries"
"""Check that must pass for a transcript to have a likelihood under the neighbouring dataset."""


@dataclass(frozen=True)
class Finding:
    """Result of a check: its name, whether it passed, and an explanation."""

    name: str
    passed: bool
    words: str


def check_runs(
    case: Case, progress: Callable[[int, int], None] = lambda done, total: None
) -> tuple[list[Finding], Ledger]:
    """Run every check on a few runs of a case; return the findings and the ledger of one run.

    Owner-only: reads private data. Holds at most one run and its replay in memory.
    """
    runs, done = RUNS, 0
    asked: list[tuple[BoundedQuery, ...]] = []
    noise: list[Drawn] = []
    found = _Compared()
    is_secure, is_recorded, ledger = True, True, Ledger()
    while done < runs:
        progress(done, runs + _MORE)
        transcript = watch(case.solver, case.pair.datasets[0], case.budget, case.session())
        if done == 0:
            numbers = sum(table.sums.size for table in transcript.tables)
            runs, ledger = max(RUNS, -(-NUMBERS // numbers)), transcript.ledger
        if done < PLAYED:
            found.compare(case, transcript)
        asked.append(tuple(table.query for table in transcript.tables))
        is_secure &= all(event.noise is Noise.SECURE for event in transcript.events)
        is_recorded &= all(map(_is_recorded, transcript.tables))
        is_recorded &= tuple(table.event for table in transcript.tables) == transcript.events
        noise.append(drawn(transcript))
        done += 1
    findings = found.findings([len(each) for each in asked])
    findings += [_recorded(is_recorded), _within(ledger, case), _secure(is_secure)]
    findings.append(_unobserved(case))
    if len({len(each) for each in asked}) == 1:
        findings += _noise_findings(noise)
    half = max(1, len(asked[0]) // 2)
    progress(runs + PLAYED, runs + _MORE)
    findings.append(_resumed(case, half, Stopped))
    progress(runs + PLAYED + 2, runs + _MORE)
    findings.append(_resumed(case, half, Interrupted))
    progress(runs + _MORE, runs + _MORE)
    return findings, ledger


class _Compared:
    """Comparison of transcripts with their replay on the neighbouring dataset."""

    def __init__(self) -> None:
        self._diverged: str | None = None
        self._worst, self._is_narrow, self._others = 0.0, True, set[str]()

    def compare(self, case: Case, transcript: Transcript) -> None:
        """Replay a transcript on the neighbouring dataset and record the differences."""
        try:
            other = play(
                transcript, case.solver, case.pair.datasets[1], case.budget, case.session()
            )
        except Diverged as error:
            self._diverged = str(error)
            return
        for one, two in zip(transcript.tables, other.tables, strict=True):
            self._compare_tables(one, two)
        self._others |= _differences(transcript.fit, other.fit)

    def _compare_tables(self, one: Table, two: Table) -> None:
        difference = one.sums - two.sums
        changed = difference[difference != 0].tolist()
        # The bound is the recorded one, which may differ from the one that the query states.
        square = sum(each * each for each in changed)
        bound = (Fraction(one.event.sensitivity) / Fraction(one.query.step)) ** 2
        if square > bound:
            self._worst = max(self._worst, 1 + 1e-15, float(square / bound) ** 0.5)
        else:
            self._worst = max(self._worst, min(1.0, float(square / bound) ** 0.5))
        self._is_narrow &= len(changed) <= one.event.coordinates

    def findings(self, lengths: Sequence[int]) -> list[Finding]:
        """Findings of all comparisons; `lengths` are the numbers of tables of several runs."""
        if len(set(lengths)) > 1 and self._diverged is None:
            self._diverged = "the number of releases differs between runs"
        if self._diverged is not None:
            return [Finding(SAME, False, self._diverged)]
        words = f"tables differ by at most {self._worst:.4g} times the recorded sensitivity"
        if self._worst > 1:
            words = f"a table differs by {self._worst:.6g} times the recorded sensitivity"
        elif not self._is_narrow:
            words = "more entries of a table differ than recorded"
        words += ", given the same transcript"
        differing = ", ".join(sorted(self._others))
        return [
            Finding(
                SAME, True, "both neighbouring datasets get the same queries along a transcript"
            ),
            Finding("differences within bounds", self._worst <= 1 and self._is_narrow, words),
            Finding(
                "nothing outside the gate",
                not self._others,
                f"datasets with the same transcript differ in their {differing}: private data "
                "bypasses the gate"
                if self._others
                else "the release is a function of the gate's noisy answers",
            ),
        ]


def _differences(one: Fit, two: Fit) -> set[str]:
    """Names of the published parts that differ between two fits."""
    same = {
        "profiles": np.array_equal(released_numbers(one), released_numbers(two)),
        "settings": (one.settings, one.model.scale) == (two.settings, two.model.scale),
        "ledger": one.ledger.events == two.ledger.events,
        "ids": all(
            a.ids.equals(b.ids)
            for a, b in (
                (one.model.users, two.model.users),
                (one.model.items, two.model.items),
            )
            if a is not None and b is not None
        ),
    }
    return {name for name, is_same in same.items() if not is_same}


def _is_recorded(table: Table) -> bool:
    """True if the recorded event has the bound of its query and the error of the sampler."""
    query, event = table.query, table.event
    return (
        event.sensitivity == math.ldexp(query.sensitivity, query.exponent)
        and event.coordinates == query.coordinates
        and (event.purpose, event.unit) == (query.purpose, query.unit)
        and (event.rows, event.flaw) == (query.rows, query.flaw)
        and (event.sampler_error, event.sampler_tail) == (sampler.ERROR, sampler.TAIL)
    )


def _recorded(is_recorded: bool) -> Finding:
    words = (
        "every event in the ledger matches its query"
        if is_recorded
        else "an event in the ledger differs from its query"
    )
    return Finding("recorded bounds", is_recorded, words)


def _within(ledger: Ledger, case: Case) -> Finding:
    """Check that the certificate of a run is within its budget."""
    is_within, words = True, "the certificate of a run is within its budget"
    if case.budget is not None:
        epsilon = Certificate.from_ledger(ledger, case.budget.delta).epsilon
        is_within = epsilon is not None and epsilon <= case.budget.epsilon
        words = words if is_within else "the certificate of a run exceeds its budget"
    return Finding("within budget", is_within, words)


def _unobserved(case: Case) -> Finding:
    """Check that an unobserved run releases the same values, under repeatable test noise."""
    ratings = case.pair.datasets[0]
    session = case.session(noise=InsecureTestNoise(1))
    alone = case.solver.fit(ratings, case.budget, session)
    session = case.session(noise=InsecureTestNoise(1))
    watched = watch(case.solver, ratings, case.budget, session).fit
    same = np.array_equal(released_numbers(alone), released_numbers(watched))
    words = (
        "an observed run releases the same values as an unobserved one"
        if same
        else "an observed run releases other values than an unobserved one"
    )
    return Finding("same when unobserved", same, words)


def _secure(is_secure: bool) -> Finding:
    words = (
        "the noise is recorded as secure" if is_secure else "the noise is recorded as test noise"
    )
    return Finding("secure source", is_secure, words)


def _noise_findings(runs: Sequence[Drawn]) -> list[Finding]:
    whole = all(run.is_whole for run in runs)
    size = unusual_size(runs, _LEVEL)
    numbers = sum(int(run.counts.sum()) for run in runs)
    tables, between = shared_tables(runs, _LEVEL), shared_runs(runs, _LEVEL)
    mean, repeats = unusual_mean(runs, _LEVEL), repeated_numbers(runs, _LEVEL)
    return [
        Finding(
            "grid",
            whole,
            "released values lie on their grid"
            if whole
            else "released values lie off their grid, so their low bits reveal exact sums",
        ),
        Finding(
            "noise size",
            size is None,
            f"no deviation from the recorded noise scale in {numbers:,} values"
            if size is None
            else f"the noise scale is {size:.3g} times the recorded one",
        ),
        Finding(
            "noise mean",
            mean is None,
            "the mean of the noise is consistent with zero"
            if mean is None
            else f"the mean of the noise is {mean:.3g} standard errors from zero",
        ),
        Finding(
            "fresh noise in every entry",
            repeats is None,
            "no two entries of a table share their noise"
            if repeats is None
            else f"{repeats:,} entries have no noise or share it with an entry of their table",
        ),
        Finding(
            "fresh noise in every round",
            not tables,
            "two tables share their noise" if tables else "no two tables share their noise",
        ),
        Finding(
            "fresh noise in every run",
            not between,
            "two runs share their noise" if between else "no two runs share their noise",
        ),
    ]


def _resumed(case: Case, tables: int, stop: type[Stopped] | type[Interrupted]) -> Finding:
    """Stop a run halfway and resume it: the resumed run must release the same values again.

    A crash (`Stopped`) leaves no checkpoint. An interrupt (`Interrupted`) leaves one from before
    the current step.
    """
    is_crash = stop is Stopped
    name = "resuming after a crash" if is_crash else "resuming after an interrupt"
    ratings = case.pair.datasets[0]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "run"
        folder = RunFolder.create(path, data=[])
        seen: tuple[Table, ...] = ()
        try:
            session = case.session(folder=folder)
            watch(case.solver, ratings, case.budget, session, stop_after=tables, stop=stop)
        except (Stopped, Interrupted) as stopped:
            seen = stopped.tables
        folder.close()
        folder = RunFolder.resume(path, data=[])
        state = folder.read_state()
        before = seen[state[0] if state else 0 :]
        try:
            again = watch(case.solver, ratings, case.budget, case.session(folder=folder)).tables
        except NoiseReuse:
            again = ()  # other noise led to other queries, which were refused
        folder.erase_key()
    same = 0 < len(before) <= len(again) and all(
        np.array_equal(one.released, two.released) for one, two in zip(before, again, strict=False)
    )
    words = (
        "a resumed run releases the same values again"
        if same
        else "a resumed run draws fresh noise, so averaging with earlier releases reduces it"
    )
    return Finding(name, same, words)
