"""Small queries, executors and gates for tests of the mechanisms."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from taciturn.accounting.budget import Budget
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis, Pattern
from taciturn.mechanisms.gate import Gate
from taciturn.mechanisms.grid import FeatureGrid, ValueGrid
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.mechanisms.query import Answer, BoundedQuery
from taciturn.queries.values import GridValues, ValueView
from taciturn.queries.weighted_sums import WeightedSums

BUDGET = Budget.from_epsilon(1.0, 1e-5)
VALUES = ValueGrid.for_scale(1, 5)
FEATURES = FeatureGrid()


def pattern(seed: int, rows: int, columns: int, density: float = 0.3) -> Pattern:
    """A random rating pattern."""
    rated = np.random.default_rng(seed).random((rows, columns)) < density
    starts = np.concatenate([[0], np.cumsum(rated.sum(axis=1))]).astype(np.int64)
    return Pattern(starts, np.nonzero(rated)[1].astype(np.int32), columns)


def view(axis: Axis = Axis.ITEMS, grid: ValueGrid = VALUES) -> ValueView:
    """Values on the grid along an axis."""
    return ValueView(grid=grid, axis=axis)


def weighted_sums(seed: int = 0, rows: int = 40, columns: int = 30, width: int = 5) -> WeightedSums:
    """A random query spec."""
    features = np.random.default_rng(seed + 1).normal(size=(columns, width))
    return WeightedSums(
        purpose="sums for a test",
        axis=Axis.ITEMS,
        pattern=pattern(seed, rows, columns),
        view=view(),
        features=FEATURES.quantise(features),
        feature_grid=FEATURES,
    )


def grid_values(sums: WeightedSums, steps: npt.NDArray[np.int32]) -> GridValues:
    """Values for a query spec, one for each entry of its pattern."""
    return GridValues(view=sums.view, pattern=sums._pattern, steps=steps)


def random_values(sums: WeightedSums, seed: int = 0) -> GridValues:
    """Random values on the grid."""
    count = sums._pattern.entries
    steps = VALUES.quantise(np.random.default_rng(seed).uniform(1, 5, size=count))
    return grid_values(sums, steps)


SUMS = weighted_sums()
(QUERY,) = SUMS.queries


@dataclass(frozen=True)
class FixedSums:
    """A query spec that has the same answer whatever the values."""

    query: BoundedQuery
    sums: npt.NDArray[np.int64]

    @property
    def queries(self) -> tuple[BoundedQuery, ...]:
        return (self.query,)

    def exact(self, values: Any, threads: int | None = None) -> Answer:
        return Answer((self.sums,))


FIXED = FixedSums(QUERY, SUMS.exact(random_values(SUMS)).tables[0])


@dataclass(frozen=True)
class Direct:
    """An executor that answers every spec from the same values."""

    values: Any = None

    def answer(self, spec: Any) -> Answer:
        answer: Answer = spec.exact(self.values)
        return answer

    def every_value(self) -> Any:
        raise AssertionError("a gate reads no ratings")


def release(gate: Gate, spec: Any, values: Any = None, *, share: float) -> Any:
    """Release the only table of a spec."""
    return gate.release(spec, Direct(values), shares=(share,)).tables[0]


def small_gate(**options: Any) -> Gate:
    """A gate with test noise, unless told otherwise."""
    facts: dict[str, Any] = {"budget": BUDGET, "unit": Unit.VALUE, "noise": InsecureTestNoise(1)}
    return Gate(**(facts | options))
