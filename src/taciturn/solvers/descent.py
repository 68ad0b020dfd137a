"""Steps of descent on noisy gradients, shared by the solvers that query gradients.

Rows hold the bias first, then the factors, in units in which the scale is 4 wide. Nothing here
reads ratings.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, ndtri

from taciturn._internal.rows import descended_rows
from taciturn.mechanisms.grid import ValueGrid
from taciturn.model import assumptions
from taciturn.model.assumptions import WIDTH
from taciturn.queries.features import AxisFeatures
from taciturn.scale import Scale

Rows = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

_CLIPPED = 0.5
"""Fraction of feature rows whose norm is clipped."""

_FEW = 4
"""Number of factors for which the data weight is computed."""

_DOUBT = 2.0
"""Standard deviations of its noise up to which a count is attributed to noise alone."""

_BIASES_ALONE = 1.5
"""Regularization without factors, relative to that with them. Noisy counts are taken for exact
ones, so that biases are less certain than they seem."""

_FAR = -50.0
"""Standard deviations below 0 from which a truncated normal distribution is nearly exponential."""

_QUANTILES = 100
"""Number of counts that represent a distribution."""

_FEATURE_ROWS = 5.0
"""Regularization of the slopes of public features, in rows."""

_LEVELS_MIN, LEVELS_MAX = 256, 2**14
"""Number of grid steps of a scale. With more, an error could exceed 15 bits."""


@dataclass(frozen=True, kw_only=True)
class DescentSteps:
    """Settings of a descent; see `GradientSolver`.

    `constant` is the feature by which biases are multiplied: it determines their share of the
    noise.
    """

    factors: int
    iterations: int
    step_size: float = 0.3
    regularization: float = 1.0
    averaged: float = 0.5
    constant: float = 0.5

    @property
    def averaged_from(self) -> int:
        """First step whose result is averaged."""
        return self.iterations - math.ceil(self.averaged * self.iterations)

    @property
    def averaged_count(self) -> int:
        """Number of steps whose results are averaged."""
        return self.iterations - self.averaged_from

    @property
    def releases_averaged(self) -> float:
        """Approximate number of releases over which the noise of the result is averaged."""
        return max(0.7 * self.averaged_count, 1 / min(1.0, self.step_size))

    @cached_property
    def priors(self) -> Vector:
        """Prior standard deviations of coefficients; the bias is multiplied by its feature."""
        width = math.sqrt(assumptions.INTERACTION_VARIANCE) / max(1, self.factors) ** 0.25
        return np.array([assumptions.BIAS / self.constant] + [width] * self.factors)

    def initial(self, random: np.random.Generator, count: int) -> Rows:
        """Rows without biases whose factors are drawn from the prior."""
        rows: Rows = random.normal(size=(count, self.factors + 1))
        rows *= self.priors
        rows[:, 0] = 0
        return rows

    def descended(
        self,
        rows: Rows,
        gradient: Rows,
        *,
        noise: float,
        counts: Vector,
        curvature: Rows,
        weight: float | Vector = 1.0,
        centre: Rows | None = None,
        precision: Vector | None = None,
    ) -> Rows:
        """Rows after one step against a noisy gradient.

        Parameters
        ----------
        rows, gradient
            Rows, and Σ prediction error × feature for each.
        noise
            Standard deviation of the noise of a gradient.
        counts
            Number of ratings of each row, or the sum of their weights.
        curvature
            Mean over ratings of feature × its multiplier in a prediction.
        weight
            Mean weight of a rating, of all rows or of each, itself weighted by weight.
        centre
            Prior mean of the rows. Default: zero.
        precision
            Multiplier of the regularization of each row. Default: one.
        """
        eigenvalues, axes = self._coordinates(curvature)
        inward, scales = self.priors[:, None] * axes, self.whitened(np.ones((1, rows.shape[1])))[0]
        return descended_rows(
            rows,
            gradient,
            np.zeros_like(rows) if centre is None else centre,
            inward=inward,
            whitening=scales[:, None] * axes,
            outward=axes.T / scales,
            eigenvalues=eigenvalues,
            noise=noise**2 / self.releases_averaged * (inward**2).sum(axis=0),
            constants=(self._times, assumptions.RESIDUAL**2, self.step_size),
            by_row=(counts, weight, 1.0 if precision is None else precision),
        )

    def _coordinates(self, curvature: Rows) -> tuple[Vector, Rows]:
        """Eigenvalues and axes of the curvature, in units of the prior."""
        whitened = self.priors[:, None] * curvature * self.priors
        eigenvalues, axes = np.linalg.eigh(whitened)
        return np.maximum(eigenvalues, 1e-9), axes

    def equations(
        self, *, variance: Vector, counts: Vector, curvature: Rows, weight: float | Vector = 1.0
    ) -> "NormalEquations":
        """Normal equations of rows; see `descended` for the parameters.

        `variance` is that of the noise of each column, averaged over the gradients that determine
        the rows.
        """
        eigenvalues, axes = self._coordinates(curvature)
        transform = self.priors[:, None] * axes
        bend = counts[:, None] * eigenvalues
        each = np.reshape(weight, (-1, 1))
        added = self._regularization(each, variance @ transform**2, bend)
        return NormalEquations(axes=axes, transform=transform, bend=bend, added=added)

    def _regularization(self, weight: float | Rows, variance: Vector | float, bend: Rows) -> Rows:
        """Diagonal added to the curvature; increases with the noise."""
        noise = variance / np.maximum(bend, 1e-9)
        added: Rows = self._times * (weight * assumptions.RESIDUAL**2 + noise)
        return added

    @property
    def _times(self) -> float:
        """Multiplier of the regularization."""
        return self.regularization * (1.0 if self.factors else _BIASES_ALONE)

    def data_weight(self, counts: Vector, noise: float, weight: float = 1.0) -> float:
        """Mean weight of the data against the prior for one factor (0 to 1); determines the rank.

        Weighted by count, for `_FEW` factors. `noise` is that of a gradient, in residual standard
        deviations.
        """
        few = replace(self, factors=_FEW)
        square = float(few.priors[-1]) ** 2
        bend = counts * square**2 / math.hypot(self.constant, math.sqrt(_FEW * square))
        variance = noise**2 * square / few.releases_averaged
        added = self._regularization(weight, variance, bend)
        return float(np.average(bend / (bend + added), weights=counts))

    def whitened(self, rows: Rows) -> Rows:
        """Rows in coordinates in which the prior covariance is the identity."""
        scaled = rows / self.priors
        scaled[:, 0] /= self.constant
        return scaled

    def from_whitened(self, scaled: Rows) -> Rows:
        """Rows from coordinates in which the prior covariance is the identity."""
        rows: Rows = scaled * self.priors
        rows[:, 0] *= self.constant
        return rows

    def features(self, rows: Rows) -> tuple[Rows, Vector]:
        """Features (a constant and the profile), and the factor that bounds their norm.

        Half of the norms are clipped to their median.
        """
        features = rows.copy()
        features[:, 0] = self.constant
        norms = np.linalg.norm(features, axis=1)
        return features, 1 / np.maximum(norms, np.quantile(norms, 1 - _CLIPPED))

    def curvature(self, rows: Rows, counts: Vector) -> Rows:
        """Mean over ratings of feature × its multiplier, for counterparts with these counts."""
        features, shrink = self.features(rows)
        weights = counts / max(1, counts.sum())
        found: Rows = (features * (weights * shrink)[:, None]).T @ features
        return found

    def pass_features(
        self, rows: Rows, unit: float, product_unit: float = 1.0, mean: float = 0.0
    ) -> AxisFeatures:
        """Profiles as one axis of a pass, with predictions in rating units."""
        features, shrink = self.features(rows)
        return AxisFeatures(features, shrink, mean + rows[:, 0] * unit, product_unit)

    def averaged_rows(self, rows: Rows, sums: Rows) -> Rows:
        """Average of the last iterates, or the last one if none are averaged."""
        return sums / self.averaged_count if self.averaged_count else rows


@dataclass(frozen=True, eq=False, kw_only=True)
class NormalEquations:
    """Normal equations of rows, in coordinates in which prior and curvature are diagonal.

    The prior variance of every coordinate is 1.

    Attributes
    ----------
    axes, transform
        Coordinates as columns: in units of the prior, and in those of the rows.
    bend, added
        Curvature of the data and regularization (rows × coordinates).
    """

    axes: Rows
    transform: Rows
    bend: Rows
    added: Rows


def in_rating_units(rows: Rows, unit: float) -> Rows:
    """Rows whose biases and products of factors are in rating units."""
    units = np.full(rows.shape[1], math.sqrt(unit))
    units[0] = unit
    scaled: Rows = rows * units
    return scaled


def centred_grid(scale: Scale, levels: int) -> ValueGrid:
    """Grid of ratings minus the middle of the declared scale."""
    return ValueGrid.for_scale(-scale.range / 2, scale.range / 2, levels)


def rating_scale_factor(scale: Scale) -> float:
    """Factor that converts model units, in which the scale is 4 wide, to rating units."""
    return scale.range / WIDTH


def levels_for(ratio: float) -> int:
    """Number of grid steps of a scale for releases that spend `ratio` = sensitivity/noise.

    With less noise the grid is finer, so that the minimum clipping threshold is a small fraction of
    the scale.
    """
    return int(min(LEVELS_MAX, 2 ** math.ceil(math.log2(max(_LEVELS_MIN, 4096 * ratio)))))


def shrunk(observed: float, noise: float, deviation: float) -> float:
    """Posterior mean of a number with a Gaussian prior about 0, observed with Gaussian noise.

    `noise` and `deviation` are standard deviations, of the noise and of the prior.
    """
    return observed * deviation**2 / (deviation**2 + noise**2)


@dataclass(frozen=True)
class NoisyCount:
    """Noisy number of ratings or users, or noisy sum of weights, and its noise."""

    value: float
    noise: float

    def cautious(self, least: float, doubts: float = _DOUBT) -> float:
        """Count, less where noise may explain it, and at least `least`.

        Noise that is taken for ratings does more harm than the converse. `doubts` is the number of
        standard deviations up to which a count is attributed to noise alone.
        """
        doubt = doubts * self.noise
        return max(self.value - doubt**2 / self.value, least) if self.value > doubt else least

    def ratio(
        self, total: float, noise: float, *, centre: float, standard_deviation: float
    ) -> float:
        """Posterior mean of total / count, whose prior has this mean and standard deviation.

        `noise` is the standard deviation of the total's noise. Where noise dominates, little but
        the prior is left.
        """
        count = max(self.value, 1.0)
        seen = count * (total - count * centre)
        return centre + seen / (count**2 + self.noise**2 + (noise / standard_deviation) ** 2)


def mean_and_unit(
    totals: Vector, noise: float, count: NoisyCount, grid: ValueGrid
) -> tuple[float, float]:
    """Mean and rating scale factor from noisy sums of ratings and of their squares.

    `totals` are divided by the largest value of the grid, and `noise` is the standard deviation of
    their noise. The factor is the standard deviation of the ratings divided by its assumed value on
    a scale of width 4, within bounds.
    """
    largest = max(abs(grid.lowest), abs(grid.highest)) * math.ldexp(1.0, grid.exponent)
    half = WIDTH / 2
    usual = (assumptions.RATING**2 + assumptions.MEAN**2) / half**2
    mean = count.ratio(
        float(totals[0]), noise, centre=0.0, standard_deviation=assumptions.MEAN / half
    )
    square = count.ratio(float(totals[1]), noise, centre=usual, standard_deviation=usual / 2)
    mean = min(max(mean, -1.0), 1.0)
    standard_deviation = math.sqrt(max(square - mean**2, 0.0))
    believed = min(max(standard_deviation, assumptions.RATING_MIN), 1.0)
    return mean * largest, believed * largest / assumptions.RATING


def rank_of(weight: float, ranks: Sequence[tuple[float, int]]) -> int:
    """Rank of the highest step that does not exceed the data weight; 0 if there is none."""
    return max((rank for least, rank in ranks if weight >= least), default=0)


def long_tailed(mean: float) -> Vector:
    """Counts with this mean and a long tail: quantiles of a log-normal distribution."""
    counts = np.exp(ndtri((np.arange(_QUANTILES) + 0.5) / _QUANTILES))
    spread: Vector = counts * (mean / counts.mean())
    return spread


def count_traits(counts: Vector) -> Rows:
    """Constant, log(count) and its square; log-counts are centred on their mean over ratings."""
    logarithms = np.log(counts + 1)
    logarithms -= np.average(logarithms, weights=counts)
    return np.column_stack([np.ones_like(counts), logarithms, logarithms**2])


def prior_means(rows: Rows, counts: Vector, features: Rows | None = None) -> Rows:
    """Prior mean of each row: a quadratic in log(count) fitted to all rows.

    With public features, also a linear function of them.
    """
    traits = count_traits(counts)
    added = np.zeros(traits.shape[1])
    if features is not None:
        traits = np.column_stack([traits, features])
        added = np.concatenate([added, np.full(features.shape[1], _FEATURE_ROWS)])
    weighted = traits * (counts / (counts + float(counts.mean())))[:, None]
    system = weighted.T @ traits
    system += np.diag(added + 1e-9 * np.trace(system))
    fitted: Rows = traits @ np.linalg.solve(system, weighted.T @ rows)
    return fitted


def shrunk_counts(counts: Vector, noise: float | Vector, usual: float) -> Vector:
    """Posterior mean of each count under an exponential prior with this mean."""
    _, excess, _ = _truncated(counts, noise, usual)
    worth: Vector = np.maximum(noise * excess, 1e-3)
    return worth


def count_variances(counts: Vector, noise: float | Vector, usual: float) -> Vector:
    """Posterior variance of each count under an exponential prior with this mean."""
    ratio, excess, hazard = _truncated(counts, noise, usual)
    far = ratio < _FAR
    share = np.where(far, 1 / np.where(far, ratio, 1.0) ** 2, 1 - hazard * excess)
    found: Vector = np.square(noise) * np.maximum(share, 0.0)
    return found


def _truncated(
    counts: Vector, noise: float | Vector, usual: float
) -> tuple[Vector, Vector, Vector]:
    """Mean of the posterior before it is truncated at 0, its mean afterwards, and the hazard at 0.

    All are in units of the noise.
    """
    ratio = (counts - np.square(noise) / usual) / noise
    hazard = math.sqrt(2 / math.pi) / erfcx(-ratio / math.sqrt(2))
    # Far in the tail both terms nearly cancel, and the truncated posterior is exponential.
    far = ratio < _FAR
    inverse = 1 / np.where(far, ratio, -1.0)
    excess = np.where(far, 2 * inverse**3 - inverse, hazard + ratio)
    return ratio, excess, hazard
