"""What noisy sums tell about coefficients: exact Bayesian inference for each row of ratings.

Post-processing: it sees who rated what, which is public under unit `value`, and released numbers.
All measurements ever made are stacked, so an early, rough one is never thrown away.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from taciturn import _core
from taciturn._internal import parallel

Rows = npt.NDArray[np.float64]
Table = npt.NDArray[np.float32]

_LANES = 16
_BLOCK = 64
"""Rows that a thread takes at once."""


@dataclass(frozen=True, eq=False)
class Pattern:
    """Who rated what, from one side: row r has the entries starts[r] to starts[r + 1]."""

    starts: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """The number of ratings of each row."""
        return np.diff(self.starts)

    def products(self, rows: Rows, others: Rows, threads: int | None = None) -> Table:
        """Return the inner product of both sides' rows for each rated pair."""
        left, right = (np.ascontiguousarray(side, dtype=np.float32) for side in (rows, others))
        out = np.empty(self.columns.size, dtype=np.float32)

        def work(begin: int, end: int) -> None:
            _core.products(self.starts, self.columns, left, right, out, begin, end)

        parallel.for_ranges(work, len(left), size=_BLOCK, threads=parallel.thread_count(threads))
        return out

    def sums(
        self,
        values: npt.NDArray[np.int32],
        features: npt.NDArray[np.int32],
        threads: int | None = None,
    ) -> npt.NDArray[np.int64]:
        """Return Σ value × feature over the partners of each row, of public values."""
        out = np.empty((self.starts.size - 1, features.shape[1]), dtype=np.int64)
        ends = np.iinfo(np.int32)

        def work(begin: int, end: int) -> None:
            _core.grid_sums(
                self.starts, self.columns, values, ends.min, ends.max, features, out, begin, end
            )

        parallel.for_ranges(work, len(out), size=_BLOCK, threads=parallel.thread_count(threads))
        return out


@dataclass(frozen=True, eq=False, kw_only=True)
class Measured:
    """All that was released about the rows of one side.

    Row r was released as Σ features[j] (value of r and j) + noise, over its partners j.

    features (partners × D), sums (rows × D), noise (D): variances of the noise.
    """

    features: Table
    sums: Rows
    noise: Rows


@dataclass(frozen=True, eq=False, kw_only=True)
class Design:
    """A value is predicted as ⟨unknown[j], z⟩ + ⟨known[j], shift⟩, with an error of its own.

    unknown (partners × p) multiplies what is sought; known (partners × q) with shifts (rows × q) is
    what is assumed; errors (partners) are variances.
    """

    unknown: Rows
    known: Rows
    shifts: Rows
    errors: Rows


@dataclass(frozen=True, eq=False, kw_only=True)
class Prior:
    """Coefficients z of a row are assumed normal: means (rows × p), covariance (p × p)."""

    means: Rows
    covariance: Rows


@dataclass(frozen=True, eq=False, kw_only=True)
class Posterior:
    """What is believed of z: means and variances (rows × p), and the sum of covariances (p × p)."""

    means: Rows
    variances: Rows
    total: Rows


def posterior(
    pattern: Pattern,
    measured: Measured,
    design: Design,
    prior: Prior,
    threads: int | None = None,
) -> Posterior:
    """Return what is believed of each row's coefficients after all its measurements.

    With S = Σ features featuresᵀ error + diag(noise) and H = Σ features unknownᵀ over a row's
    partners, the covariance is (Hᵀ S⁻¹ H + prior⁻¹)⁻¹. Time is in ratings × D² and rows × D³,
    memory in rows × D: Gram matrices are built for one row at a time and never kept.
    """
    width, unknown = measured.features.shape[1], design.unknown.shape[1]
    begin = -(-width // _LANES) * _LANES
    deviations = np.sqrt(design.errors)[:, None]
    parts = np.column_stack([design.unknown, design.known]) / deviations
    total = -(-(begin + parts.shape[1]) // _LANES) * _LANES
    table = np.zeros((len(parts), total), dtype=np.float32)
    table[:, :width] = measured.features * deviations
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
            measured.sums,
            measured.noise,
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
