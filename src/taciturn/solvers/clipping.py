"""Clip rule: the clipping threshold for a budget, and the corrections for clipping."""

import math
from dataclasses import dataclass
from functools import cached_property

from scipy.special import erf

from taciturn import _core
from taciturn.accounting import sampler
from taciturn.mechanisms.grid import ValueGrid
from taciturn.queries.features import NORM

_BASE, _SLOPE = 0.8, 0.15
"""Clipping threshold in residual standard deviations: _BASE + _SLOPE · μ."""

_DRIFT = 0.5
"""Standard deviation of the change of a residual variance in one step, relative to it."""

_FINE = 2 * sampler.SIGMA_MIN / NORM
"""Minimum clipping threshold in grid steps, for sensitivity/noise = 1."""


def attenuation(threshold: float, variance: float = 1.0) -> float:
    """Expected slope of a Gaussian residual of this variance that is clipped to the threshold."""
    return float(erf(threshold / math.sqrt(2 * variance)))


@dataclass(frozen=True)
class ClipRule:
    """Clipping threshold in residual standard deviations.

    Tighter clipping reduces noise faster than it loses signal; it matters less as μ grows.
    """

    multiplier: float

    @classmethod
    def for_mu(cls, mu: float) -> "ClipRule":
        """Rule for a total budget of μ."""
        return cls(_BASE + _SLOPE * mu)

    @cached_property
    def attenuation(self) -> float:
        """Expected slope of a clipped residual."""
        return attenuation(self.multiplier)

    @cached_property
    def mean_square(self) -> float:
        """Mean square of clipped residuals, in residual variances."""
        times = self.multiplier
        density = math.exp(-(times**2) / 2) / math.sqrt(2 * math.pi)
        return self.attenuation - 2 * times * density + times**2 * (1 - self.attenuation)

    @cached_property
    def slope(self) -> float:
        """Derivative of the mean square of clipped residuals in their variance."""
        return self.mean_square - self.multiplier**2 * (1 - self.attenuation)

    def variance(self, before: float, mean_square: float) -> float:
        """Residual variance from a noisy mean square of clipped residuals, without shrinkage.

        `before` is the standard deviation for which they were clipped. Noise is not distorted, so
        that results of several steps may be averaged.
        """
        return before**2 + (mean_square - self.mean_square * before**2) / self.slope

    def threshold(self, standard_deviation: float, grid: ValueGrid, ratio: float) -> int:
        """Clipping threshold in grid steps, for a residual standard deviation in rating units.

        Large enough that the noise of a release that spends `ratio` = sensitivity/noise is not too
        fine for its sampler.
        """
        steps = round(math.ldexp(self.multiplier * standard_deviation, -grid.exponent))
        return min(_core.ERROR_MAX, max(1, math.ceil(_FINE * ratio), steps))

    def updated_standard_deviation(self, before: float, mean_square: float, noise: float) -> float:
        """Residual standard deviation from a noisy mean square of clipped residuals.

        `noise` is the standard deviation of the mean square's noise: the larger it is, the closer
        the result stays to the previous value. It increases by at most a quarter and decreases by
        at most a fifth per step.
        """
        drift = (_DRIFT * before**2) ** 2
        weight = drift / (drift + (noise / self.mean_square) ** 2)
        found = before**2 + weight * (mean_square / self.mean_square - before**2)
        return min(max(math.sqrt(max(found, 1e-6)), 0.8 * before), 1.25 * before)
