"""Checks of the noise itself, which an auditor knows and an attacker does not."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from tacit.audit.transcript import Transcript
from tacit.privacy.noise.source import BLOCK

Place = tuple[int, int]
"""A table and a block of it: what has a stream of noise of its own."""

STREAM = 64
"""Numbers at the beginning of a stream that are compared with other streams."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """What is kept of one run's noise, in deviations of what was booked. Private.

    Attributes
    ----------
    squares, counts
        Sum of squares and numbers of each table.
    streams
        The first numbers of each block of each table.
    step
        The coarsest grid of a table, in deviations.
    is_whole
        Whether everything that was released lies on its grid.
    """

    squares: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]
    streams: dict[Place, npt.NDArray[np.float64]]
    step: float
    is_whole: bool


def drawn(history: Transcript) -> Drawn:
    """Return what is kept of the noise of a run."""
    squares, counts, streams, is_whole = [], [], {}, True
    for place, (table, scale) in enumerate(zip(history.tables, history.noise_scales, strict=True)):
        steps = table.released / table.query.step
        is_whole &= bool(np.array_equal(steps, np.rint(steps)))
        noise = table.noise() / scale
        squares.append(float(np.vdot(noise, noise)))
        counts.append(noise.size)
        rows = max(1, BLOCK // noise.shape[1])
        for block, first in enumerate(range(0, len(noise), rows)):
            few = noise[first : first + min(rows, STREAM)]
            streams[place, block] = few.ravel()[:STREAM].copy()
    return Drawn(
        squares=np.array(squares),
        counts=np.array(counts),
        streams=streams,
        step=float(1 / history.noise_scales.min()),
        is_whole=is_whole,
    )


def unusual_size(runs: Sequence[Drawn], level: float) -> float | None:
    """Return how large noise is if that differs from what was booked, in parts of it.

    Compares the sum of squares of each table over all runs, and of all tables, with χ²; alarms with
    a chance of at most `level` about noise that is as booked.
    """
    squares = np.sum([run.squares for run in runs], axis=0)
    counts = np.sum([run.counts for run in runs], axis=0)
    both = [*zip(squares, counts, strict=True), (np.sum(squares), np.sum(counts))]
    found = [
        math.sqrt(square / count)
        for square, count in both
        if min(chi2.sf(square, count), chi2.cdf(square, count)) <= level / (2 * len(both))
    ]
    return max(found, key=lambda size: abs(math.log(max(size, 1e-300))), default=None)


def shared_tables(runs: Sequence[Drawn], level: float) -> bool:
    """Return whether two tables, or two blocks of one, have the same noise: in one run or in all.

    Streams that coincide have first numbers that do, so only neighbours in order are compared.
    """
    groups = [list(runs), *([run] for run in runs)]
    places = list(runs[0].streams)
    pairs = len(groups) * len(places) ** 2 / 2
    for group in groups:
        firsts = {place: group[0].streams[place][0] for place in places}
        order = sorted(places, key=firsts.__getitem__)
        for reach in (1, 2, 3):
            for one, two in zip(order, order[reach:], strict=False):
                both = [(run.streams[one], run.streams[two], run.step) for run in group]
                if _coincide(both, level / pairs):
                    return True
    return False


def shared_runs(runs: Sequence[Drawn], level: float) -> bool:
    """Return whether two runs have the same noise throughout."""
    pairs = list(combinations(runs, 2))
    return any(
        _coincide(
            [
                (one.streams[place], two.streams[place], max(one.step, two.step))
                for place in one.streams
            ],
            level / len(pairs),
        )
        for one, two in pairs
    )


def _coincide(
    both: Sequence[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], float]], level: float
) -> bool:
    """Return whether numbers are the same up to rounding, as chance would hardly have it."""
    chance = 0.0
    for one, two, step in both:
        size, tolerance = min(one.size, two.size), 2 * step
        if not np.all(np.abs(one[:size] - two[:size]) <= tolerance):
            return False
        # The difference of two standard normals has a density of at most 1/√(4π) < 0.3.
        chance += size * math.log(min(1.0, 0.6 * tolerance))
    return chance < math.log(level)
