"""Checks of single runs: what no attacker with scores would notice, or only after many runs.

The same history is played in two worlds, and what differs must be what was booked; the noise itself
is looked at, since an audit knows the exact sums. A sound solver fails one with a chance below
`FALSE_ALARM`.
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
from taciturn.audit.worlds import Case
from taciturn.errors import NoiseReuse
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.mechanisms.query import BoundedQuery
from taciturn.mechanisms.run_folder import RunFolder
from taciturn.solvers.contract import Fit

FALSE_ALARM = 1e-5
"""Chance that all checks together alarm about a sound solver, at most."""

RUNS, NUMBERS = 8, 200
"""Runs that are looked at, at least; and numbers with noise, so that their size shows."""

PLAYED = 2
"""Of these, histories that are played in the other world."""

_LEVEL = FALSE_ALARM / 5
"""Share of each check that can alarm by chance: size, mean, repeats, tables and runs."""

_MORE = PLAYED + 4
"""Runs beside these: in the other world, and two that are interrupted and resumed."""

SAME = "same questions"
"""Name of the check without which a history has no likelihood in the other world."""


@dataclass(frozen=True)
class Finding:
    """What a check found: its name, whether it passed, and what it means in words."""

    name: str
    passed: bool
    words: str


def check_runs(
    case: Case, progress: Callable[[int, int], None] = lambda done, total: None
) -> tuple[list[Finding], Ledger]:
    """Run every check on a few runs of a case; return what was found, and the ledger of a run.

    Reads private data: the owner's own view. Keeps no more than a run and its neighbour in memory.
    """
    runs, done = RUNS, 0
    asked: list[tuple[BoundedQuery, ...]] = []
    noise: list[Drawn] = []
    found = _Compared()
    is_secure, is_recorded, ledger = True, True, Ledger()
    while done < runs:
        progress(done, runs + _MORE)
        history = watch(case.solver, case.pair.worlds[0], case.budget, case.session())
        if done == 0:
            numbers = sum(table.sums.size for table in history.tables)
            runs, ledger = max(RUNS, -(-NUMBERS // numbers)), history.ledger
        if done < PLAYED:
            found.compare(case, history)
        asked.append(tuple(table.query for table in history.tables))
        is_secure &= all(event.noise is Noise.SECURE for event in history.events)
        is_recorded &= all(map(_is_recorded, history.tables))
        is_recorded &= tuple(table.event for table in history.tables) == history.events
        noise.append(drawn(history))
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
    """What histories of one world show in the other."""

    def __init__(self) -> None:
        self._diverged: str | None = None
        self._worst, self._is_narrow, self._others = 0.0, True, set[str]()

    def compare(self, case: Case, history: Transcript) -> None:
        """Play a history in the other world."""
        try:
            other = play(history, case.solver, case.pair.worlds[1], case.budget, case.session())
        except Diverged as error:
            self._diverged = str(error)
            return
        for one, two in zip(history.tables, other.tables, strict=True):
            self._compare_tables(one, two)
        self._others |= _differences(history.fit, other.fit)

    def _compare_tables(self, one: Table, two: Table) -> None:
        difference = one.sums - two.sums
        changed = difference[difference != 0].tolist()
        # What counts is what was recorded, not what the query asked to record.
        square = sum(each * each for each in changed)
        bound = (Fraction(one.event.sensitivity) / Fraction(one.query.step)) ** 2
        if square > bound:
            self._worst = max(self._worst, 1 + 1e-15, float(square / bound) ** 0.5)
        else:
            self._worst = max(self._worst, min(1.0, float(square / bound) ** 0.5))
        self._is_narrow &= len(changed) <= one.event.coordinates

    def findings(self, lengths: Sequence[int]) -> list[Finding]:
        """Return what was found; `lengths` are the numbers of tables of several runs."""
        if len(set(lengths)) > 1 and self._diverged is None:
            self._diverged = "the number of releases differs between runs"
        if self._diverged is not None:
            return [Finding(SAME, False, self._diverged)]
        words = f"along the same history tables differ by at most {self._worst:.4g} of what is"
        if self._worst > 1:
            words = f"along the same history a table differs by {self._worst:.6g} times what is"
        elif not self._is_narrow:
            words = "along the same history more entries of a table differ than is"
        left = ", ".join(sorted(self._others))
        return [
            Finding(SAME, True, "both worlds are asked the same along a history"),
            Finding("bounded", self._worst <= 1 and self._is_narrow, f"{words} recorded"),
            Finding(
                "no other way out",
                not self._others,
                f"worlds that released the same differ in their {left}: something else leaves"
                if self._others
                else "the release follows from what left through the gate",
            ),
        ]


def _differences(one: Fit, two: Fit) -> set[str]:
    """Return what differs between the published parts of two fits."""
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
    """Whether the recorded event states the bound of its query, and the error of the sampler."""
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
        "the ledger has every event as its query states it"
        if is_recorded
        else "the ledger has an event that differs from its query"
    )
    return Finding("recorded bounds", is_recorded, words)


def _within(ledger: Ledger, case: Case) -> Finding:
    """Whether the certificate of a run keeps the budget it was given."""
    is_within, words = True, "the certificate of a run keeps its budget"
    if case.budget is not None:
        epsilon = Certificate.from_ledger(ledger, case.budget.delta).epsilon
        is_within = epsilon is not None and epsilon <= case.budget.epsilon
        words = words if is_within else "the certificate of a run exceeds its budget"
    return Finding("within budget", is_within, words)


def _unobserved(case: Case) -> Finding:
    """Whether a run that nobody observes releases the same, under the repeatable test noise."""
    ratings = case.pair.worlds[0]
    session = case.session(noise=InsecureTestNoise(1))
    alone = case.solver.fit(ratings, case.budget, session)
    session = case.session(noise=InsecureTestNoise(1))
    watched = watch(case.solver, ratings, case.budget, session).fit
    same = np.array_equal(released_numbers(alone), released_numbers(watched))
    words = "a run releases the same whether or not it is observed"
    return Finding("observed alike", same, words if same else f"not so: {words}")


def _secure(is_secure: bool) -> Finding:
    words = "noise is booked as secure" if is_secure else "noise is booked as seeded for tests"
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
            "released numbers lie on their grid"
            if whole
            else "released numbers lie off their grid: low bits tell of the exact sums",
        ),
        Finding(
            "noise size",
            size is None,
            f"noise has the booked size, as far as {numbers:,} numbers tell"
            if size is None
            else f"noise has {size:.3g} of its booked size",
        ),
        Finding(
            "noise mean",
            mean is None,
            "noise has mean zero"
            if mean is None
            else f"the mean of the noise is {mean:.3g} standard errors from zero",
        ),
        Finding(
            "fresh noise in every entry",
            repeats is None,
            "no two entries of a table share their noise"
            if repeats is None
            else f"{repeats:,} entries have the noise of another of their table, or none",
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
    """End a run in the middle and resume it: what was released before must come again.

    Like by a crash, which leaves no checkpoint, or by an interrupt, which leaves one before the
    step under way.
    """
    is_crash = stop is Stopped
    name = "resuming after a crash" if is_crash else "resuming after an interrupt"
    ratings = case.pair.worlds[0]
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
        kept = folder.read_state()
        before = seen[kept[0] if kept else 0 :]
        try:
            again = watch(case.solver, ratings, case.budget, case.session(folder=folder)).tables
        except NoiseReuse:
            again = ()  # other noise led to other questions, which were refused
        folder.erase_key()
    same = 0 < len(before) <= len(again) and all(
        np.array_equal(one.released, two.released) for one, two in zip(before, again, strict=False)
    )
    words = (
        "a resumed run releases the same again"
        if same
        else "a resumed run draws other noise: what was released before can be averaged"
    )
    return Finding(name, same, words)
