"""Profiles from rows of coefficients."""

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn.model.profiles import Profiles


def profiles_of(ids: pl.Series, rows: npt.NDArray[np.float64]) -> Profiles:
    """Profiles from rows that have the bias first, then the factors."""
    rounded = rows.astype(np.float32)
    return Profiles(ids=ids, biases=rounded[:, 0], factors=rounded[:, 1:])
