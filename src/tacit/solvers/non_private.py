"""Alternating least squares with biases, not private: the reference of every comparison."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tacit import _core, _parallel, _validate
from tacit.data.ratings import Csr, Ratings
from tacit.privacy.budget import Budget
from tacit.privacy.events import GaussianRelease
from tacit.privacy.units import Unit
from tacit.solvers.contract import (
    PLAIN,
    Fit,
    Profiles,
    Session,
    check_budget,
    check_descent,
    check_ratings,
    settings,
)
from tacit.solvers.run import Run, State

FACTORS_MAX = 1024

_PRIOR_RATINGS = 200
"""Ratings that the ridge counts for a row beyond its own."""

_BIAS_RIDGE = 4.0


@dataclass(frozen=True, kw_only=True)
class NonPrivateSolver:
    """Regularized alternating least squares with biases. Not private.

    Minimises Σ (v_ij − m − b_i − c_j − ⟨x_i, θ_j⟩)² + 4 (Σ b_i² + Σ c_j²) +
    λ (Σ (n_i + 200)‖x_i‖² + Σ (n_j + 200)‖θ_j‖²), m being the mean rating and n the number of
    ratings of a row: each side is solved exactly while the other rests.

    Parameters
    ----------
    factors
        Length of a profile, k.
    iterations
        How often both sides are solved.
    regularization
        λ for a scale that is 4 wide; it grows with the width, as the squares of profiles do.
    """

    name: ClassVar[str] = "non-private"
    is_private: ClassVar[bool] = False

    factors: int = 20
    iterations: int = 20
    regularization: float = 0.03

    def __post_init__(self) -> None:
        check_descent(self, FACTORS_MAX)
        _validate.positive("regularization", self.regularization, "0.03 is usual")

    def fit(self, ratings: Ratings, budget: Budget | None = None, session: Session = PLAIN) -> Fit:
        """Train. Reads private data, and so does whoever reads the fit."""
        check_ratings(ratings)
        check_budget(self, budget)
        run = Run(session)
        run.open_door(Unit.VALUE).book("profiles of users and items")
        mean = float(np.mean(ratings.values(), dtype=np.float64))
        ridge = self.regularization * ratings.scale.range / 4
        sides = {"items": ratings.by_item, "users": ratings.by_user}
        targets = {
            name: ratings.scale.decode(side.codes) - np.float32(mean)
            for name, side in sides.items()
        }

        def begin() -> State:
            of_items, of_users = session.starts()
            spread = 0.1 * math.sqrt(ratings.scale.range / 4)
            users, items = ratings.shape
            rows = {
                name: random.normal(scale=spread, size=(count, self.factors + 1))
                for name, count, random in (("users", users, of_users), ("items", items, of_items))
            }
            for row in rows.values():
                row[:, 0] = 0
            return rows

        def step(number: int, state: State) -> State:
            after = dict(state)
            for name, other in (("items", "users"), ("users", "items")):
                after[name] = self._solve(
                    sides[name], targets[name], after[other], ridge, session.threads
                )
            return after

        state = run.steps(self.iterations, begin, step)
        users, items = (state[name].astype(np.float32) for name in ("users", "items"))
        return Fit(
            solver=self.name,
            settings=settings(self),
            scale=ratings.scale,
            mean=mean,
            users=Profiles(ids=ratings.user_ids, biases=users[:, 0], factors=users[:, 1:]),
            items=Profiles(ids=ratings.item_ids, biases=items[:, 0], factors=items[:, 1:]),
            ledger=run.finish(),
        )

    def plan(self, ratings: Ratings, budget: Budget | None = None) -> list[GaussianRelease]:
        """Return no events: nothing is released with noise."""
        check_budget(self, budget)
        return []

    def _solve(
        self,
        side: Csr,
        targets: npt.NDArray[np.float32],
        others: npt.NDArray[np.float64],
        ridge: float,
        threads: int | None,
    ) -> npt.NDArray[np.float64]:
        """Return one side's rows (bias, factors), the other's given."""
        features = others.astype(np.float32)
        features[:, 0] = 1
        residuals = targets - others[:, 0].astype(np.float32)[side.columns]
        weighted = np.full(features.shape[1], ridge)
        fixed = _PRIOR_RATINGS * weighted
        weighted[0], fixed[0] = 0.0, _BIAS_RIDGE
        rows = np.empty((side.starts.size - 1, features.shape[1]), dtype=np.float32)

        def work(begin: int, end: int) -> None:
            _core.ridge_rows(
                side.starts, side.columns, residuals, features, weighted, fixed, rows, begin, end
            )

        count = _parallel.thread_count(threads)
        size = max(1, -(-len(rows) // (16 * count)))
        _parallel.for_ranges(work, len(rows), size=size, threads=count)
        return rows.astype(np.float64)
