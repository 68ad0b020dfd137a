"""Profiles of users or items, and the prior of a user's profile."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn.errors import InvalidParameter

Floats = npt.NDArray[Any]
"""Floating-point numbers: 32 bits in fits and releases, 64 bits in the reproduction."""

Rows = npt.NDArray[np.integer[Any]]
"""Row numbers in a table of profiles."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Profiles:
    """Profiles (bias and factor vector) of users or items, one row for each id.

    Attributes
    ----------
    ids
        Ids (n), in row order.
    biases, factors
        Bias (n) and factor vector (n × k) of each row.
    bias_variances, variances
        Posterior variances of biases and factors, if the solver estimates them.
    """

    ids: pl.Series
    biases: Floats
    factors: Floats
    bias_variances: Floats | None = None
    variances: Floats | None = None

    def __post_init__(self) -> None:
        count = len(self.ids)
        if self.factors.ndim != 2:
            raise InvalidParameter("factors must be a matrix with one row for each id")
        shapes = (
            ("biases", self.biases, (count,)),
            ("factors", self.factors, (count, self.factors.shape[1])),
            ("bias_variances", self.bias_variances, (count,)),
            ("variances", self.variances, self.factors.shape),
        )
        for name, array, shape in shapes:
            if array is not None and array.shape != shape:
                raise InvalidParameter(f"{name} must have one row for each id, of equal width")

    @classmethod
    def from_rows(cls, ids: pl.Series, rows: npt.NDArray[np.float64]) -> "Profiles":
        """32-bit profiles from rows with the bias first, then the factors."""
        rounded = rows.astype(np.float32)
        return cls(ids=ids, biases=rounded[:, 0], factors=rounded[:, 1:])

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Rows) -> "Profiles":
        """Profiles of the given rows, in the given order."""
        return Profiles(
            ids=self.ids.gather(rows),
            biases=self.biases[rows],
            factors=self.factors[rows],
            bias_variances=None if self.bias_variances is None else self.bias_variances[rows],
            variances=None if self.variances is None else self.variances[rows],
        )


@dataclass(frozen=True, kw_only=True)
class Prior:
    """Prior of a user's profile; public or released.

    Attributes
    ----------
    residual_variance
        Variance of residuals.
    variances
        Variance of the user's bias, then of each factor.
    """

    residual_variance: float
    variances: tuple[float, ...]
