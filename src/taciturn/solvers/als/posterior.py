"""Gaussian posterior of each row's coefficients given all its noisy sums.

Post-processing: it sees the rating pattern, which is public under unit `value`, and released
numbers. All noisy sums released so far are used, including early, inaccurate ones.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from taciturn import _core
from taciturn._internal import parallel
from taciturn.data.pattern import Pattern

Rows = npt.NDArray[np.float64]
Table = npt.NDArray[np.float32]

_LANES = 16
_BLOCK = 64
"""Number of rows that a thread processes at a time."""


def products(pattern: Pattern, rows: Rows, others: Rows, threads: int | None = None) -> Table:
    """Inner product of the rows of both axes, for each rated pair."""
    left, right = (np.ascontiguousarray(each, dtype=np.float32) for each in (rows, others))
    out = np.empty(pattern.entries, dtype=np.float32)
    work = partial(_core.products, pattern.starts, pattern.columns, left, right, out)
    parallel.for_ranges(work, len(left), size=_BLOCK, threads=parallel.thread_count(threads))
    return out


@dataclass(frozen=True, eq=False, kw_only=True)
class NoisySums:
    """All noisy sums released for the rows of one axis.

    The sum released for row r is Σ features[j] · value(r, j) + noise, over its counterparts j.

    features (counterparts × D), sums (rows × D), noise (D): variances of the noise.
    """

    features: Table
    sums: Rows
    noise: Rows


@dataclass(frozen=True, eq=False, kw_only=True)
class Design:
    """Design of the predictions ⟨unknown[j], z⟩ + ⟨known[j], shift⟩ of values, and their errors.

    unknown (counterparts × p) multiplies the coefficients z; known (counterparts × q) multiplies
    the given shifts (rows × q); errors (counterparts) are variances.
    """

    unknown: Rows
    known: Rows
    shifts: Rows
    errors: Rows


@dataclass(frozen=True, eq=False, kw_only=True)
class RowPrior:
    """Gaussian prior of a row's coefficients z: means (rows × p), covariance (p × p)."""

    means: Rows
    covariance: Rows


@dataclass(frozen=True, eq=False, kw_only=True)
class Posterior:
    """Posterior of z: means and variances (rows × p), and the sum of covariances (p × p)."""

    means: Rows
    variances: Rows
    total: Rows


def posterior(
    pattern: Pattern,
    noisy: NoisySums,
    design: Design,
    prior: RowPrior,
    threads: int | None = None,
) -> Posterior:
    """Posterior of each row's coefficients given all its noisy sums.

    With S = Σ features featuresᵀ error + diag(noise) and H = Σ features unknownᵀ over a row's
    counterparts, the covariance is (Hᵀ S⁻¹ H + prior⁻¹)⁻¹. A row with n ratings takes time in
    n·D·min(n, D). Memory is in rows × D: only one Gram matrix per thread is in memory at a time.
    None is kept between inferences, because S is weighted by errors that each of them changes.
    """
    width, unknown = noisy.features.shape[1], design.unknown.shape[1]
    begin = -(-width // _LANES) * _LANES
    standard_deviations = np.sqrt(design.errors)[:, None]
    parts = np.column_stack([design.unknown, design.known]) / standard_deviations
    total = -(-(begin + parts.shape[1]) // _LANES) * _LANES
    table = np.zeros((len(parts), total), dtype=np.float32)
    table[:, :width] = noisy.features * standard_deviations
    table[:, begin : begin + parts.shape[1]] = parts
    precision = np.asarray(np.linalg.inv(prior.covariance), dtype=np.float64)
    shape = prior.means.shape
    found = Posterior(
        means=np.empty(shape),
        variances=np.empty(shape),
        total=np.zeros((unknown, unknown)),
    )
    totals = np.zeros((-(-shape[0] // _BLOCK), unknown, unknown))
    shifts, pull = np.ascontiguousarray(design.shifts), prior.means @ precision

    def work(first: int, last: int) -> None:
        _core.posterior_rows(
            pattern.starts,
            pattern.columns,
            table,
            begin,
            noisy.sums,
            noisy.noise,
            shifts,
            precision,
            pull,
            found.means,
            found.variances,
            totals[first // _BLOCK],
            first,
            last,
        )

    parallel.for_ranges(work, shape[0], size=_BLOCK, threads=parallel.thread_count(threads))
    totals.sum(axis=0, out=found.total)
    return found
