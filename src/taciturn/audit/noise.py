"""Statistical checks of the noise, which an audit can see and an attacker cannot."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2, norm, poisson

from taciturn.audit.transcript import Transcript
from taciturn.mechanisms.noise import BLOCK

Place = tuple[int, int]
"""Indices of a table and of a block of it. Each block has its own noise stream."""

STREAM = 64
"""Number of leading values of a stream that are compared with other streams."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """Summary of one run's noise, in units of the recorded standard deviations. Private.

    Attributes
    ----------
    totals, squares, counts
        Sum, sum of squares and number of noise values of each table.
    repeats, repeats_expected
        Number of noise values, in grid steps, that are zero or equal another of their table up to
        sign; and the number expected of independent noise.
    streams
        The first noise values of each block of each table.
    step
        The coarsest grid step of a table, in standard deviations.
    is_whole
        True if all released values lie on their grid.
    """

    totals: npt.NDArray[np.float64]
    squares: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]
    repeats: int
    repeats_expected: float
    streams: dict[Place, npt.NDArray[np.float64]]
    step: float
    is_whole: bool


def drawn(transcript: Transcript) -> Drawn:
    """Summary of the noise in a transcript."""
    totals, squares, counts, streams, is_whole = [], [], [], {}, True
    repeats, expected = 0, 0.0
    for place, (table, scale) in enumerate(
        zip(transcript.tables, transcript.noise_scales, strict=True)
    ):
        steps = table.released / table.query.step
        is_whole &= bool(np.array_equal(steps, np.rint(steps)))
        noise = table.noise() / scale
        totals.append(float(noise.sum()))
        squares.append(float(np.vdot(noise, noise)))
        counts.append(noise.size)
        sizes = np.abs(np.rint(table.noise()))
        repeats += noise.size - np.unique(sizes[sizes > 0]).size
        # For large σ, two values have equal size with probability 1/(σ√π), and a value is zero
        # with probability 1/(σ√(2π)).
        pairs = noise.size * (noise.size - 1) / 2
        expected += (pairs / math.sqrt(math.pi) + noise.size / math.sqrt(2 * math.pi)) / scale
        rows = max(1, BLOCK // noise.shape[1])
        for block, first in enumerate(range(0, len(noise), rows)):
            few = noise[first : first + min(rows, STREAM)]
            streams[place, block] = few.ravel()[:STREAM].copy()
    return Drawn(
        totals=np.array(totals),
        squares=np.array(squares),
        repeats=repeats,
        repeats_expected=expected,
        counts=np.array(counts),
        streams=streams,
        step=float(1 / transcript.noise_scales.min()),
        is_whole=is_whole,
    )


def unusual_size(runs: Sequence[Drawn], level: float) -> float | None:
    """Measured noise scale over the recorded one, if they differ significantly; otherwise None.

    A χ² test of the sum of squares of each table over all runs, and of all tables together. The
    false-positive rate is at most `level`.
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


def unusual_mean(runs: Sequence[Drawn], level: float) -> float | None:
    """Mean of the noise in standard errors, if it differs significantly from zero; otherwise None.

    Tests each table over all runs, and all tables together. The false-positive rate is at most
    `level`.
    """
    totals = np.sum([run.totals for run in runs], axis=0)
    counts = np.sum([run.counts for run in runs], axis=0)
    both = [*zip(totals, counts, strict=True), (np.sum(totals), np.sum(counts))]
    scores = [total / math.sqrt(count) for total, count in both]
    most = max(scores, key=abs)
    return float(most) if abs(most) > norm.isf(level / (2 * len(both))) else None


def repeated_numbers(runs: Sequence[Drawn], level: float) -> int | None:
    """Number of repeated noise values within tables; None if independent noise explains it."""
    repeats = sum(run.repeats for run in runs)
    expected = sum(run.repeats_expected for run in runs)
    return repeats if poisson.sf(repeats - 1, expected) <= level and repeats > 0 else None


def shared_tables(runs: Sequence[Drawn], level: float) -> bool:
    """True if two tables, or two blocks of one table, have the same noise in one run or in all.

    Streams that coincide have equal first values. Streams are sorted by first value, and each is
    compared with the next three only.
    """
    groups = [list(runs), *([run] for run in runs)]
    places = list(runs[0].streams)
    pairs = len(groups) * len(places) ** 2 / 2
    for group in groups:
        firsts = {place: group[0].streams[place][0] for place in places}
        order = sorted(places, key=firsts.__getitem__)
        for offset in (1, 2, 3):
            for one, two in zip(order, order[offset:], strict=False):
                both = [(run.streams[one], run.streams[two], run.step) for run in group]
                if _coincide(both, level / pairs):
                    return True
    return False


def shared_runs(runs: Sequence[Drawn], level: float) -> bool:
    """True if two runs have the same noise in all streams."""
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
    """True if streams agree up to rounding, with probability below `level` if independent."""
    log_probability = 0.0
    for one, two, step in both:
        size, tolerance = min(one.size, two.size), 2 * step
        if not np.all(np.abs(one[:size] - two[:size]) <= tolerance):
            return False
        # The difference of two standard normals has a density of at most 1/√(4π) < 0.3.
        log_probability += size * math.log(min(1.0, 0.6 * tolerance))
    return log_probability < math.log(level)
