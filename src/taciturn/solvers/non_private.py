"""Alternating least squares with biases, not private: the reference of every comparison."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from taciturn._internal import parallel, validate
from taciturn.accounting.budget import Budget
from taciturn.accounting.events import GaussianRelease
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Profiles
from taciturn.solvers.contract import (
    PLAIN,
    Fit,
    Session,
    check_budget,
    check_descent,
    check_ratings,
    settings,
)
from taciturn.solvers.least_squares import BIAS_RIDGE, PRIOR_RATINGS, LeastSquares, Ridge
from taciturn.solvers.run import Run

FACTORS_MAX = 1024


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
        validate.positive("regularization", self.regularization, "0.03 is usual")

    @parallel.without_blas_threads
    def fit(self, ratings: Ratings, budget: Budget | None = None, session: Session = PLAIN) -> Fit:
        """Train. Reads private data, and so does whoever reads the fit."""
        check_ratings(ratings)
        check_budget(self, budget)
        run = Run(session)
        run.open_door(Unit.VALUE).book("profiles of users and items")
        values = ratings.values()
        mean = float(np.mean(values, dtype=np.float64))
        weighted = self.regularization * ratings.scale.range / 4
        ridge = Ridge(weighted=weighted, fixed=PRIOR_RATINGS * weighted, bias=BIAS_RIDGE)
        squares = LeastSquares(
            ratings,
            values - np.float32(mean),
            self.factors,
            ridge,
            session.seeds,
            session.threads,
        )
        state = run.steps(self.iterations, squares.begin, squares.step)
        users, items = (state[name].astype(np.float32) for name in ("users", "items"))
        return Fit(
            solver=self.name,
            settings=settings(self),
            model=FactorModel(
                scale=ratings.scale,
                mean=mean,
                users=Profiles(ids=ratings.user_ids, biases=users[:, 0], factors=users[:, 1:]),
                items=Profiles(ids=ratings.item_ids, biases=items[:, 0], factors=items[:, 1:]),
            ),
            ledger=run.finish(),
        )

    def plan(self, ratings: Ratings, budget: Budget | None = None) -> list[GaussianRelease]:
        """Return no events: nothing is released with noise."""
        check_budget(self, budget)
        return []
