"""State of `als` under unit `value`: released numbers, and coefficients inferred from them."""

from dataclasses import dataclass, replace
from enum import Flag, auto

import numpy as np
import numpy.typing as npt

from taciturn.data.pattern import Axis

Rows = npt.NDArray[np.float64]


class Used(Flag):
    """Kinds of coefficients."""

    BIASES = auto()
    FACTORS = auto()
    PATTERN = auto()
    ALL = BIASES | FACTORS | PATTERN


@dataclass(frozen=True, eq=False, kw_only=True)
class AxisState:
    """Coefficients of the rows of one axis, and all noisy sums released for them.

    A row's coefficients are its bias, its factors, and one for each pattern feature of its
    counterparts.

    Attributes
    ----------
    rows, variances
        Posterior means and variances of the coefficients.
    prior, slopes
        Prior covariance of the coefficients, and the slopes of their prior means.
    degrees
        Effective degrees of freedom: coefficients determined by data rather than by the prior.
    features, sums, noise
        Features of the counterparts, noisy sums against them, and variances of their noise: one
        column for each sum released so far.
    """

    rows: Rows
    variances: Rows
    prior: Rows
    slopes: Rows
    degrees: float
    features: npt.NDArray[np.float32]
    sums: Rows
    noise: Rows

    def with_sums(self, features: npt.NDArray[np.float32], sums: Rows, noise: Rows) -> "AxisState":
        """Copy with additional noisy sums."""
        return replace(
            self,
            features=np.concatenate([self.features, features], axis=-1),
            sums=np.concatenate([self.sums, sums], axis=-1),
            noise=np.concatenate([self.noise, noise], axis=-1),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class ValueState:
    """Released numbers and their inferences, in units in which the scale is 4 wide.

    Attributes
    ----------
    mean
        Mean rating relative to the middle of the scale.
    variance, shift, shift_noise
        Variance and mean of residuals, and the standard deviation of the mean's noise.
    offset
        Mean of clipped residuals that the attenuated mean residual does not explain.
    start
        Initial random factors of the users.
    users, items
        State of each axis.
    """

    mean: float
    variance: float
    shift: float
    shift_noise: float
    offset: float
    start: Rows
    users: AxisState
    items: AxisState

    def along(self, axis: Axis) -> AxisState:
        """State of an axis."""
        return self.users if axis is Axis.USERS else self.items

    def with_axis(self, axis: Axis, state: AxisState) -> "ValueState":
        """Copy with another state of an axis."""
        return replace(self, users=state) if axis is Axis.USERS else replace(self, items=state)
