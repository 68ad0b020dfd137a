"""Small runs for tests of the mechanism."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from taciturn.accounting.budget import Budget
from taciturn.accounting.events import Rows
from taciturn.accounting.units import Unit
from taciturn.mechanisms.gate import Gate
from taciturn.mechanisms.grid import FeatureGrid, ValueGrid
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.mechanisms.query import BoundedQuery, WeightedSums

BUDGET = Budget.from_epsilon(1.0, 1e-5)
VALUES = ValueGrid.for_scale(1, 5)
FEATURES = FeatureGrid()


def pattern(
    seed: int, rows: int, columns: int, density: float = 0.3
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return the starts and columns of a random pattern."""
    mask = np.random.default_rng(seed).random((rows, columns)) < density
    starts = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.int64)
    return starts, np.nonzero(mask)[1].astype(np.int32)


def weighted_sums(seed: int = 0, rows: int = 40, columns: int = 30, width: int = 5) -> WeightedSums:
    """Return a random measurement."""
    starts, indices = pattern(seed, rows, columns)
    features = np.random.default_rng(seed + 1).normal(size=(columns, width))
    return WeightedSums(
        purpose="sums for a test",
        rows=Rows.ITEMS,
        starts=starts,
        columns=indices,
        features=FEATURES.quantise(features),
        value_grid=VALUES,
        feature_grid=FEATURES,
    )


def random_values(sums: WeightedSums, seed: int = 0) -> npt.NDArray[np.int32]:
    """Return random values on the grid, one for each entry."""
    count = sums._columns.size
    return VALUES.quantise(np.random.default_rng(seed).uniform(1, 5, size=count))


SUMS = weighted_sums()
QUERY = SUMS.query
NO_VALUES = np.empty(0, dtype=np.int32)


@dataclass(frozen=True)
class FixedSums:
    """A measurement that gives the same sums whatever the values."""

    query: BoundedQuery
    sums: npt.NDArray[np.int64]

    def exact(
        self, values: npt.NDArray[np.int32], threads: int | None = None
    ) -> npt.NDArray[np.int64]:
        return self.sums


FIXED = FixedSums(QUERY, SUMS.exact(random_values(SUMS)))


def gate(**options: Any) -> Gate:
    """Return a gate with test noise, unless told otherwise."""
    facts = {"budget": BUDGET, "unit": Unit.VALUE, "noise": InsecureTestNoise(1)}
    return Gate(**(facts | options))
