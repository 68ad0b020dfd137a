"""Checks of single runs: what no attacker with scores would notice, or only after many runs.

The same history is played in two worlds, and what differs must be what was booked; the noise itself
is looked at, since an audit knows the exact sums. A sound solver fails one with a chance below
`FALSE_ALARM`.
"""

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from tacit.audit.transcript import Diverged, Stopped, Transcript, play, released_numbers, watch
from tacit.audit.worlds import Case
from tacit.errors import NoiseReuse
from tacit.privacy.events import Noise
from tacit.privacy.run_folder import RunFolder

FALSE_ALARM = 1e-5
"""Chance that all checks together alarm about a sound solver, at most."""

RUNS, NUMBERS = 8, 200
"""Runs that are looked at, at least; and numbers with noise, so that their size shows."""

_TESTS = 4
"""Checks that can alarm by chance share `FALSE_ALARM`."""


@dataclass(frozen=True)
class Finding:
    """What a check found: its name, whether it passed, and what it means in words."""

    name: str
    passed: bool
    words: str


def check_runs(case: Case) -> list[Finding]:
    """Run every check on a few runs of a case. Reads private data: the owner's own view."""
    solver, budget, worlds = case.solver, case.budget, case.pair.worlds
    histories = [watch(solver, worlds[0], budget, case.session())]
    numbers = sum(table.sums.size for table in histories[0].tables)
    more = range(max(RUNS, -(-NUMBERS // numbers)) - 1)
    histories += [watch(solver, worlds[0], budget, case.session()) for _ in more]
    try:
        others = [
            play(history, solver, worlds[1], budget, case.session()) for history in histories[:2]
        ]
    except Diverged as error:
        others = []
        asked = Finding("same questions", False, f"{error}")
    else:
        asked = Finding("same questions", True, "both worlds are asked the same along a history")
    findings = [asked]
    if others:
        findings += [_bounded(histories, others), _follows(histories, others)]
    for check in (_on_grid, _secure, _sized, _fresh_tables, _fresh_runs):
        findings.append(check(histories))
    findings.append(_repeated(case, len(histories[0].tables)))
    return findings


def _bounded(histories: Sequence[Transcript], others: Sequence[Transcript]) -> Finding:
    worst, is_narrow = 0.0, True
    for history, other in zip(histories, others, strict=False):
        for one, two in zip(history.tables, other.tables, strict=True):
            difference = np.subtract(one.sums, two.sums, dtype=np.float64)
            worst = max(worst, float(np.linalg.norm(difference)) / one.query.sensitivity)
            is_narrow &= bool(np.count_nonzero(difference) <= one.query.coordinates)
    words = f"along the same history tables differ by at most {worst:.4g} of what is booked"
    return Finding("bounded", worst <= 1 and is_narrow, words)


def _follows(histories: Sequence[Transcript], others: Sequence[Transcript]) -> Finding:
    same = all(
        np.array_equal(released_numbers(one.fit), released_numbers(two.fit))
        for one, two in zip(histories, others, strict=False)
    )
    words = (
        "the release follows from what left through the gate"
        if same
        else "the release differs between worlds that released the same: something else leaves"
    )
    return Finding("no other way out", same, words)


def _on_grid(histories: Sequence[Transcript]) -> Finding:
    whole = all(
        np.array_equal(steps, np.rint(steps))
        for history in histories
        for table in history.tables
        for steps in (table.released / table.query.step,)
    )
    words = (
        "released numbers lie on their grid"
        if whole
        else "released numbers lie off their grid: low bits tell of the exact sums"
    )
    return Finding("grid", whole, words)


def _secure(histories: Sequence[Transcript]) -> Finding:
    secure = all(event.noise is Noise.SECURE for each in histories for event in each.events)
    words = "noise is booked as secure" if secure else "noise is booked as seeded for tests"
    return Finding("secure source", secure, words)


def _sized(histories: Sequence[Transcript]) -> Finding:
    """Compare the noise of each event, over all runs, and of all together with what is booked."""
    tables = [_standard(histories, place) for place in range(len(histories[0].tables))]
    level = FALSE_ALARM / _TESTS / (2 * len(tables) + 2)
    usual: list[float] = []
    unusual: list[float] = []
    for noise in (*tables, np.concatenate(tables)):
        square = float(noise @ noise)
        chance = min(chi2.sf(square, noise.size), chi2.cdf(square, noise.size))
        (usual if chance > level else unusual).append(math.sqrt(square / noise.size))
    passed = not unusual
    worst = max(unusual or usual, key=lambda size: abs(math.log(max(size, 1e-300))))
    words = f"noise has the booked size; the table furthest off shows {worst:.3g} of it"
    if not passed:
        words = f"noise has {worst:.3g} of its booked size"
    return Finding("noise size", passed, words)


def _fresh_tables(histories: Sequence[Transcript]) -> Finding:
    """Compare the noise of different events, all runs together."""
    tables = [_standard(histories, place) for place in range(len(histories[0].tables))]
    steps = [float(1 / scale) for scale in histories[0].noise_scales]
    passed = not _coincide(tables, steps)
    words = "no two tables share their noise" if passed else "two tables share their noise"
    return Finding("fresh noise in every round", passed, words)


def _fresh_runs(histories: Sequence[Transcript]) -> Finding:
    runs = [
        np.concatenate([_standard([history], place) for place in range(len(history.tables))])
        for history in histories
    ]
    step = float(1 / min(histories[0].noise_scales))
    passed = not _coincide(runs, [step] * len(runs))
    words = "no two runs share their noise" if passed else "two runs share their noise"
    return Finding("fresh noise in every run", passed, words)


def _repeated(case: Case, tables: int) -> Finding:
    """Stop a run in the middle and resume it: what was released before must come again."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "run"
        folder = RunFolder.create(path, data=[])
        run = _runner(case)
        try:
            run(folder, max(1, tables // 2))
            seen: Sequence[npt.NDArray[np.float64]] = ()
        except Stopped as stopped:
            seen = [table.released for table in stopped.tables]
        folder.close()
        folder = RunFolder.resume(path, data=[])
        try:
            again = run(folder, None).tables
            same = all(
                np.array_equal(one, two.released) for one, two in zip(seen, again, strict=False)
            )
        except NoiseReuse:
            same = False  # other noise led to other questions, which were refused
        folder.erase_key()
    words = (
        "a resumed run releases the same again"
        if same
        else "a resumed run draws other noise: what was released before can be averaged"
    )
    return Finding("resuming", same, words)


def _runner(case: Case) -> Callable[[RunFolder, int | None], Transcript]:
    def run(folder: RunFolder, stop_after: int | None) -> Transcript:
        session = case.session(folder=folder)
        return watch(case.solver, case.pair.worlds[0], case.budget, session, stop_after=stop_after)

    return run


def _standard(histories: Sequence[Transcript], place: int) -> npt.NDArray[np.float64]:
    """Return the noise of one table in all runs, in units of its booked scale."""
    parts = [each.tables[place].noise().ravel() / each.noise_scales[place] for each in histories]
    return np.concatenate(parts)


def _coincide(rows: Sequence[npt.NDArray[np.float64]], steps: Sequence[float]) -> bool:
    """Return whether two rows are the same up to rounding, as chance would hardly have it."""
    pairs = list(combinations(range(len(rows)), 2))
    for one, two in pairs:
        size = min(rows[one].size, rows[two].size)
        tolerance = steps[one] + steps[two]
        # The difference of two standard normals has a density of at most 1/√(4π) < 0.3.
        chance = size * np.log(max(0.6 * tolerance, 1e-300))
        if chance > np.log(FALSE_ALARM / _TESTS / len(pairs)):
            continue  # too short or too coarse to tell
        if np.all(np.abs(rows[one][:size] - rows[two][:size]) <= tolerance):
            return True
    return False
