"""Steps of descent on noisy gradients: what solvers that measure gradients share.

Rows have the bias first, then the factors, in units in which the scale is 4 wide. Nothing here can
touch a rating.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

from taciturn import _core
from taciturn.accounting import sampler
from taciturn.mechanisms.grid import ValueGrid
from taciturn.queries.prediction_errors import NORM, Side

Rows = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

WIDTH = 4.0
"""What the scale is wide, in the units of rows."""

# What is assumed of ratings in advance: deviations of a rating from its prediction, of a bias, and
# of what the factors add.
RESIDUAL, _BIAS, _INTERACTION = 0.87, 0.45, 0.32

_CLIPPED = 0.5
"""Share of feature rows that are cut to the norm of the next."""

_DEVIATION, _NARROW = 1.1, 0.1
"""The deviation of ratings that is usual where the scale is 4 wide, and the least that is believed,
in parts of half the scale."""

_FEW = 4
"""Factors for which it is judged whether there is room for any."""

_LEVELS_MIN, LEVELS_MAX = 256, 2**14
"""Steps that a scale is divided into. With more, a residual could exceed 15 bits."""

_FINE = 2 * sampler.SIGMA_MIN / NORM
"""Steps that residuals are cut at, at least, where sensitivity and noise are the same."""

START = 1.1
"""The deviation of residuals that is assumed before the first step."""

_LIMIT, _SLOPE = 0.8, 0.15
"""Where residuals are cut, in deviations: _LIMIT + _SLOPE · μ."""


@dataclass(frozen=True, kw_only=True)
class Steps:
    """How to descend: see `GradientSolver`.

    `constant` is the feature beside a profile that biases are multiplied with: it decides how much
    of the noise they get.
    """

    factors: int
    iterations: int
    step_size: float = 0.3
    regularization: float = 1.0
    averaged: float = 0.5
    constant: float = 0.5

    @property
    def averaged_from(self) -> int:
        """The first step whose result is averaged."""
        return self.iterations - math.ceil(self.averaged * self.iterations)

    @property
    def spread(self) -> float:
        """How many releases the noise of the result is spread over, about."""
        averaged = self.iterations - self.averaged_from
        return max(0.7 * averaged, 1 / min(1.0, self.step_size))

    @cached_property
    def priors(self) -> Vector:
        """The deviations of coefficients that are assumed, that of a bias times its feature."""
        width = math.sqrt(_INTERACTION) / max(1, self.factors) ** 0.25
        return np.array([_BIAS / self.constant] + [width] * self.factors)

    def descended(
        self,
        rows: Rows,
        gradient: Rows,
        *,
        noise: float,
        counts: Vector,
        curvature: Rows,
        weight: float = 1.0,
        centre: Rows | None = None,
    ) -> Rows:
        """Return rows after one step against a noisy gradient.

        Parameters
        ----------
        rows, gradient
            Rows, and Σ residual × feature for each.
        noise
            Deviation of the noise of a gradient.
        counts
            How many ratings each row has, or the sum of their weights.
        curvature
            The mean over ratings of feature × what it multiplies in a prediction.
        weight
            The usual weight of a rating.
        centre
            What rows are drawn to, zero when omitted.
        """
        # In coordinates in which the prior is a unit sphere.
        whitened = self.priors[:, None] * curvature * self.priors
        eigenvalues, axes = np.linalg.eigh(whitened)
        transform = self.priors[:, None] * axes
        bend = counts[:, None] * np.maximum(eigenvalues, 1e-9)
        spread = noise**2 * (transform**2).sum(axis=0) / self.spread
        ridge = self.regularization * (weight * RESIDUAL**2 + spread / np.maximum(bend, 1e-9))
        inside = self._whitened(rows) @ axes
        off = inside
        if centre is not None:
            off = inside - self._whitened(centre) @ axes
        inside -= self.step_size * (gradient @ transform + ridge * off) / (bend + ridge)
        after: Rows = (inside @ axes.T) * self.priors
        after[:, 0] *= self.constant
        return after

    def support(self, counts: Vector, noise: float, weight: float = 1.0) -> float:
        """Return how much of a factor rows would tell, from 0 to 1, by their counts.

        That is how far they would be drawn from their centre, weighted by count, if there were
        `_FEW` factors. `noise` is that of a gradient, in residuals' deviations.
        """
        few = replace(self, factors=_FEW)
        square = float(few.priors[-1]) ** 2
        bend = counts * square**2 / math.hypot(self.constant, math.sqrt(_FEW * square))
        spread = noise**2 * square / few.spread
        ridge = self.regularization * (weight * RESIDUAL**2 + spread / np.maximum(bend, 1e-9))
        return float(np.average(bend / (bend + ridge), weights=counts))

    def _whitened(self, rows: Rows) -> Rows:
        """Return rows in coordinates in which the prior is a unit sphere."""
        scaled = rows / self.priors
        scaled[:, 0] /= self.constant
        return scaled

    def features(self, rows: Rows) -> tuple[Rows, Vector]:
        """Return features, a constant beside each profile, and the factor that bounds their norm.

        Half of the norms are cut to their median.
        """
        features = rows.copy()
        features[:, 0] = self.constant
        norms = np.linalg.norm(features, axis=1)
        return features, 1 / np.maximum(norms, np.quantile(norms, 1 - _CLIPPED))

    def side(self, rows: Rows, unit: float, product_unit: float = 1.0, mean: float = 0.0) -> Side:
        """Return profiles as one side of a pass, predicting in the units of the ratings."""
        features, shrink = self.features(rows)
        return Side(features, shrink, mean + rows[:, 0] * unit, product_unit)


@dataclass(frozen=True)
class Cut:
    """Where residuals are cut, in deviations, and what is then left of normal ones."""

    times: float

    @classmethod
    def for_mu(cls, mu: float) -> "Cut":
        """Return where to cut: the more noise, the nearer, since it shrinks with the limit."""
        return cls(_LIMIT + _SLOPE * mu)

    @cached_property
    def kept(self) -> float:
        """How much cut residuals move when all move by 1: the share that is not cut."""
        return math.erf(self.times / math.sqrt(2))

    @cached_property
    def square(self) -> float:
        """The mean square of cut residuals, in squared deviations."""
        density = math.exp(-(self.times**2) / 2) / math.sqrt(2 * math.pi)
        return self.kept - 2 * self.times * density + self.times**2 * (1 - self.kept)

    def limit(self, deviation: float, grid: ValueGrid, ratio: float) -> int:
        """Return the limit in steps of a grid, for residuals of a deviation in ratings' units.

        Not so few that noise would be too small for its sampler, if a release spends `ratio` =
        sensitivity/noise.
        """
        steps = round(math.ldexp(self.times * deviation, -grid.exponent))
        return min(_core.RESIDUAL_MAX, max(1, math.ceil(_FINE * ratio), steps))

    def deviation(self, before: float, mean_square: float) -> float:
        """Return the deviation that a noisy mean square of cut residuals tells."""
        found = math.sqrt(max(mean_square, 1e-6) / self.square)
        return min(max(found, 0.8 * before), 1.25 * before)


def levels_for(ratio: float) -> int:
    """Return how many steps a scale is divided into, where a release spends `ratio`.

    The less noise, the finer: the least limit of residuals is then a small part of the scale.
    """
    return int(min(LEVELS_MAX, 2 ** math.ceil(math.log2(max(_LEVELS_MIN, 4096 * ratio)))))


def mean_and_unit(totals: Vector, count: float, grid: ValueGrid) -> tuple[float, float]:
    """Return mean and unit that noisy sums of ratings and of their squares tell.

    `totals` are divided by the largest value of the grid. The unit is the ratings' deviation over
    its usual size where the scale is 4 wide, within reason.
    """
    largest = max(abs(grid.lowest), abs(grid.highest)) * math.ldexp(1.0, grid.exponent)
    mean, square = (float(total) / max(1.0, count) for total in totals)
    mean = min(max(mean, -1.0), 1.0)
    deviation = math.sqrt(max(square - mean**2, 0.0))
    return mean * largest, min(max(deviation, _NARROW), 1.0) * largest / _DEVIATION


def rank_of(support: float, ranks: Sequence[tuple[float, int]]) -> int:
    """Return the rank of the highest step that `support` reaches, 0 if it reaches none."""
    return max((rank for least, rank in ranks if support >= least), default=0)


def by_count(rows: Rows, counts: Vector) -> Rows:
    """Return what rows with about as many ratings are like: a parabola in the logarithm."""
    logarithms = np.log(counts + 1)
    logarithms -= np.average(logarithms, weights=counts)
    traits = np.column_stack([np.ones_like(counts), logarithms, logarithms**2])
    weighted = traits * (counts / (counts + float(counts.mean())))[:, None]
    system = weighted.T @ traits + 1e-9 * np.trace(weighted.T @ traits) * np.eye(3)
    fitted: Rows = traits @ np.linalg.solve(system, weighted.T @ rows)
    return fitted


def shrunk(counts: Vector, noise: float) -> Vector:
    """Return what noisy counts are worth: their means if counts fall off exponentially."""
    usual = max(float(counts.mean()), 1.0)
    shifted = counts - noise**2 / usual
    ratio = shifted / noise
    tail = np.exp(-(ratio**2) / 2 - 0.5 * math.log(2 * math.pi) - log_ndtr(ratio))
    worth: Vector = np.maximum(shifted + noise * tail, 1e-3)
    return worth
