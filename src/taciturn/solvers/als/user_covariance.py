"""Mean posterior covariance of users' factors, from released sums and an assumption.

Numbers are in units of the prior standard deviations of a user's coefficients.
"""

from dataclasses import dataclass, replace

import numpy as np

from taciturn.solvers.descent import Rows, Vector

_DRIFT = 0.1
"""Standard deviation of the difference between released and assumed covariances in one step."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Expected:
    """Part of the expected gradient and curvature of items due to the uncertainty of users."""

    gradient: Rows
    curvature: Rows


@dataclass(frozen=True, eq=False, kw_only=True)
class UserCovariance:
    """Covariances of users' factors with all their coefficients (factors × coefficients).

    Attributes
    ----------
    assumed
        Covariances of a usual user, from the number of ratings and the items alone.
    difference
        Estimated difference of the mean over users from those.
    """

    assumed: Rows
    difference: Rows

    @classmethod
    def unknown(cls, factors: int, features: int) -> "UserCovariance":
        """Covariances before anything is released."""
        empty = np.zeros((factors, 1 + factors + features))
        return cls(assumed=empty, difference=empty)

    def updated(
        self, released: Vector, noise: float, assumed: Vector, users: float
    ) -> "UserCovariance":
        """Covariances after a release of Σ w and Σ w·P, with noise of this standard deviation.

        `assumed` are the assumed variances of the factors. The noisier the release, the less it
        changes the estimate.
        """
        usual = np.zeros_like(self.assumed)
        if not usual.size:
            return self
        usual[:, 1 : 1 + len(usual)] = np.diag(assumed)
        # At least a tenth of the users' full weight: below that, it is noise.
        total = max(float(released[0]), 0.1 * users)
        seen = released[1:].reshape(usual.shape) / total - usual
        gain = _DRIFT**2 / (_DRIFT**2 + (noise / total) ** 2)
        difference = self.difference + gain * (seen - self.difference)
        return replace(self, assumed=usual, difference=np.clip(difference, -1.0, 1.0))

    def expected_gradient(
        self, items: Rows, features: Rows, standard_deviations: Vector
    ) -> Expected:
        """Mean of P·x over a rating's users, for the part P of an item's raters' covariance.

        The prediction error of a user with uncertain coefficients z varies with x·z, so its product
        with the factors has the mean P·x. The column of the user's bias is multiplied by 1.
        """
        count = len(self.assumed)
        scales = standard_deviations[1 : 1 + count, None] * standard_deviations
        covariance = (self.assumed + self.difference) * scales
        design = np.column_stack([np.ones(len(items)), items[:, 1:], features])
        gradient, curvature = np.zeros_like(items), np.zeros((1 + count, 1 + count))
        gradient[:, 1:] = design @ covariance.T
        inner = covariance[:, 1 : 1 + count]
        curvature[1:, 1:] = _positive((inner + inner.T) / 2)
        return Expected(gradient=gradient, curvature=curvature)


def _positive(matrix: Rows) -> Rows:
    """Nearest positive semidefinite matrix."""
    values, axes = np.linalg.eigh(matrix)
    return np.asarray((axes * np.maximum(values, 0)) @ axes.T)
