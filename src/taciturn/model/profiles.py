"""Profiles of users or items, and the prior of a user's profile."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal import validate
from taciturn._internal.arrays import checked
from taciturn._internal.ids import IdTable
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
    interests
        Interest vectors (n × columns), popularity first, if the model has interest; see
        `taciturn.model.interest`.
    """

    ids: pl.Series
    biases: Floats
    factors: Floats
    bias_variances: Floats | None = None
    variances: Floats | None = None
    interests: Floats | None = None

    def __post_init__(self) -> None:
        count = len(validate.instance("ids", self.ids, pl.Series, "pass one id for each row"))
        checked("biases", self.biases, "f")
        checked("factors", self.factors, "f", 2)
        if self.bias_variances is not None:
            checked("bias_variances", self.bias_variances, "f")
        if self.variances is not None:
            checked("variances", self.variances, "f", 2)
        interests = self.interests
        if interests is not None and checked("interests", interests, "f", 2).shape[1] == 0:
            raise InvalidParameter("interests must have a column of popularity")
        shapes = (
            ("biases", self.biases, (count,)),
            ("factors", self.factors, (count, self.factors.shape[1])),
            ("bias_variances", self.bias_variances, (count,)),
            ("variances", self.variances, self.factors.shape),
            ("interests", interests, (count, 0 if interests is None else interests.shape[1])),
        )
        for name, array, shape in shapes:
            if array is not None and array.shape != shape:
                raise InvalidParameter(f"{name} must have one row for each id, of equal width")

    @classmethod
    def from_rows(cls, ids: pl.Series, rows: npt.NDArray[np.float64]) -> "Profiles":
        """32-bit profiles from rows with the bias first, then the factors."""
        rounded = checked("rows", rows, "f", 2).astype(np.float32)
        if rounded.shape[1] == 0:
            raise InvalidParameter("rows must have a bias in their first column")
        return cls(ids=ids, biases=rounded[:, 0], factors=rounded[:, 1:])

    def with_variances(self, rows: npt.NDArray[np.float64]) -> "Profiles":
        """Copy with posterior variances in 32 bits, from rows with those of biases first."""
        rounded = checked("rows", rows, "f", 2).astype(np.float32)
        return replace(self, bias_variances=rounded[:, 0], variances=rounded[:, 1:])

    def __repr__(self) -> str:
        return f"Profiles({self.factors.shape[1]} factors)"

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def id_table(self) -> IdTable:
        """Table that finds the rows of ids; built once."""
        return IdTable(self.ids)

    def take(self, rows: Rows) -> "Profiles":
        """Profiles of the given rows, in the given order."""
        checked("rows", rows, "i")
        if rows.size and not (rows.min() >= 0 and rows.max() < len(self)):
            raise InvalidParameter("rows must be row numbers of the profiles")
        return Profiles(
            ids=self.ids.gather(rows),
            biases=self.biases[rows],
            factors=self.factors[rows],
            bias_variances=None if self.bias_variances is None else self.bias_variances[rows],
            variances=None if self.variances is None else self.variances[rows],
            interests=None if self.interests is None else self.interests[rows],
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
