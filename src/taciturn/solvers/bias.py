"""A mean, item biases and user biases from noisy sums of ratings.

Two releases: Σ v by item and Σ v by user. The mean and both kinds of biases follow from them and
from who rated what, which is public under unit `value`.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from taciturn._internal import parallel, validate
from taciturn.accounting.budget import Budget
from taciturn.accounting.events import Event, Rows
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.grid import FeatureGrid, ValueGrid
from taciturn.mechanisms.query import WeightedSums
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Profiles
from taciturn.solvers.als.hidden import fit_hidden, plan_hidden
from taciturn.solvers.als.pattern_features import rated_pairs
from taciturn.solvers.contract import (
    PLAIN,
    Fit,
    Session,
    check_budget,
    check_ratings,
    settings,
)
from taciturn.solvers.run import Run, State, planned

Vector = npt.NDArray[np.float64]

_ROUNDS = 30
"""Alternations between the two sides; they cost no privacy."""

# Assumed deviations of a rating from its prediction and of a bias, in parts of the scale's width.
_RESIDUAL, _BIAS = 0.23, 0.11

_HIDDEN = {"factors": 0, "iterations": 24}
"""The descent under units that hide who rated what; without factors it needs few steps."""

SHARE = 0.5
"""The share of μ² of each of the two releases."""


@dataclass(frozen=True, kw_only=True)
class BiasSolver:
    """Mean, item and user biases. Status `proven`.

    Minimises Σ (v_ij − m − b_i − c_j)² plus a ridge on b and c that knows the noise. Under `rating`
    and `user` it is `als` without factors.

    Parameters
    ----------
    unit
        What is hidden: `value`, `rating` or `user`.
    regularization
        Factor of the ridge that the noise and usual ratings suggest; under `value`.
    """

    name: ClassVar[str] = "bias"
    is_private: ClassVar[bool] = True

    unit: Unit = Unit.VALUE
    regularization: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", validate.choice("unit", self.unit, Unit))
        validate.positive("regularization", self.regularization, "1 is usual")
        if self.unit is not Unit.VALUE and not self.is_private:
            raise InvalidParameter(f"{self.name} hides nothing, whatever the unit")
        if self.unit is not Unit.VALUE and self.regularization != 1:
            raise InvalidParameter(f"unit {self.unit} chooses the regularization itself")

    @parallel.without_blas_threads
    def fit(self, ratings: Ratings, budget: Budget | None = None, session: Session = PLAIN) -> Fit:
        """Train within a budget. Reads private data; see `Fit` for what may be released."""
        check_ratings(ratings, self.unit)
        if self.unit is not Unit.VALUE:
            return fit_hidden(self, self.unit, ratings, budget, session, **_HIDDEN)
        check_budget(self, budget)
        run = Run(session)
        grid = ValueGrid.for_scale(ratings.scale.low, ratings.scale.high)
        tables = [_sums(ratings, number, grid) for number in (0, 1)]
        door = run.door(Unit.VALUE, budget, [(table.query, SHARE) for table in tables])

        def step(number: int, state: State) -> State:
            side = (ratings.by_item, ratings.by_user)[number]
            values = grid.quantise(ratings.scale.decode(side.codes))
            released = door.release(tables[number], values, share=SHARE)
            return state | {f"sums_{number}": released[:, 0]}

        state = run.steps(2, dict, step)
        sums = state["sums_0"], state["sums_1"]
        noise = np.array([door.noise_scale(table.query, SHARE) for table in tables])
        mean, items, users = self._solve(ratings, sums, noise)
        nothing = [np.empty((len(each), 0), dtype=np.float32) for each in (users, items)]
        return Fit(
            solver=self.name,
            settings=settings(self),
            model=FactorModel(
                scale=ratings.scale,
                mean=mean,
                users=Profiles(
                    ids=ratings.user_ids, biases=users.astype(np.float32), factors=nothing[0]
                ),
                items=Profiles(
                    ids=ratings.item_ids, biases=items.astype(np.float32), factors=nothing[1]
                ),
            ),
            ledger=run.finish(),
        )

    def plan(self, ratings: Ratings, budget: Budget | None = None) -> list[Event]:
        """Return the events that `fit` would book. Reads public facts only."""
        if self.unit is not Unit.VALUE:
            return plan_hidden(self, self.unit, ratings, budget, **_HIDDEN)
        check_budget(self, budget)
        if budget is None:
            return []
        grid = ValueGrid.for_scale(ratings.scale.low, ratings.scale.high)
        asked = [(_sums(ratings, side, grid).query, SHARE) for side in (0, 1)]
        return [*planned(Unit.VALUE, budget, asked)]

    def _solve(
        self, ratings: Ratings, sums: tuple[Vector, Vector], noise: Vector
    ) -> tuple[float, Vector, Vector]:
        """Return mean, item and user biases from released sums; post-processing."""
        scale = ratings.scale
        counts = [np.diff(side.starts).astype(float) for side in (ratings.by_item, ratings.by_user)]
        total = counts[0].sum()
        # Both tables have the same total; the better one is that with fewer rows, but any will do.
        mean = float(np.clip(sums[0].sum() / total, scale.low, scale.high))
        residual, prior = (_RESIDUAL * scale.range) ** 2, (_BIAS * scale.range) ** 2
        ridges = [
            self.regularization * (residual + variance / np.maximum(count, 1)) / prior
            for count, variance in zip(counts, noise**2, strict=True)
        ]
        patterns = [rated_pairs(ratings.by_item, ratings.shape[0])]
        patterns.append(patterns[0].T.tocsr())
        biases = [np.zeros(count.size) for count in counts]
        for number in range(2 * _ROUNDS):
            side, other = number % 2, 1 - number % 2
            explained = counts[side] * mean + patterns[side] @ biases[other]
            biases[side] = (sums[side] - explained) / (counts[side] + ridges[side])
        return mean, biases[0], biases[1]


@dataclass(frozen=True, kw_only=True)
class NonPrivateBiasSolver(BiasSolver):
    """The same from exact sums: not private, for comparison."""

    name: ClassVar[str] = "non-private-bias"
    is_private: ClassVar[bool] = False


def _sums(ratings: Ratings, number: int, grid: ValueGrid) -> WeightedSums:
    """Return the measurement of Σ v by item (0) or by user (1)."""
    side, rows = ((ratings.by_item, Rows.ITEMS), (ratings.by_user, Rows.USERS))[number]
    features = FeatureGrid()
    ones = np.full((ratings.shape[number], 1), features.bound, dtype=np.int32)
    return WeightedSums(
        purpose=f"sums of ratings by {rows.value.removesuffix('s')}",
        rows=rows,
        starts=side.starts,
        columns=side.columns,
        features=ones,
        value_grid=grid,
        feature_grid=features,
    )
