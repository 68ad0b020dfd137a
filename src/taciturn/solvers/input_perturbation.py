"""Noise on every rating, then ordinary least squares: the simplest private recommender.

One release: all ratings, each with Gaussian noise. Everything else is post-processing. The noise on
a rating does not shrink however many there are, which is why measuring sums is so much better.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from taciturn._internal import parallel, validate
from taciturn.accounting.budget import Budget
from taciturn.accounting.events import GaussianRelease, Rows
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.mechanisms.grid import FeatureGrid, ValueGrid
from taciturn.mechanisms.query import WeightedSums
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
from taciturn.solvers.non_private import FACTORS_MAX
from taciturn.solvers.run import Run, State, planned

SHARE = 1 - 2.0**-40
"""The share of μ² of the one release."""

# Variances of a bias and of what the factors add, assumed on a scale that is 4 wide.
_BIAS, _INTERACTION = 0.45**2, 0.32


@dataclass(frozen=True, kw_only=True)
class InputPerturbationSolver:
    """Gaussian noise on each rating, then alternating least squares. Unit `value`, `proven`.

    Minimises the objective of `non-private` on noised ratings, with a ridge that knows the noise.

    Parameters
    ----------
    factors
        Length of a profile, k.
    iterations
        How often both sides are solved; they cost no privacy.
    regularization
        λ for a scale that is 4 wide, before what the noise adds.
    """

    name: ClassVar[str] = "input-perturbation"
    is_private: ClassVar[bool] = True

    factors: int = 20
    iterations: int = 20
    regularization: float = 0.03

    def __post_init__(self) -> None:
        check_descent(self, FACTORS_MAX)
        validate.positive("regularization", self.regularization, "0.03 is usual")

    @parallel.without_blas_threads
    def fit(self, ratings: Ratings, budget: Budget | None = None, session: Session = PLAIN) -> Fit:
        """Train on ratings within a budget. Reads private data; the fit may be released."""
        check_ratings(ratings)
        check_budget(self, budget)
        run = Run(session)
        table, grid = _all_ratings(ratings)
        door = run.door(Unit.VALUE, budget, [(table.query, SHARE)])
        scale = ratings.scale
        values = grid.quantise(scale.decode(ratings.by_user.codes))
        kept: dict[str, LeastSquares] = {}

        def begin() -> State:
            return {"noised": door.release(table, values, share=SHARE)[:, 0]}

        def step(number: int, state: State) -> State:
            if "squares" not in kept:
                kept["squares"] = self._squares(
                    ratings, state["noised"], door.noise_scale(table.query, SHARE), session
                )
            if "users" not in state:
                state = state | kept["squares"].begin()
            return state | kept["squares"].step(number, state)

        state = run.steps(self.iterations, begin, step)
        users, items = (state[name].astype(np.float32) for name in ("users", "items"))
        return Fit(
            solver=self.name,
            settings=settings(self),
            model=FactorModel(
                scale=scale,
                mean=_mean(ratings, state["noised"]),
                users=Profiles(ids=ratings.user_ids, biases=users[:, 0], factors=users[:, 1:]),
                items=Profiles(ids=ratings.item_ids, biases=items[:, 0], factors=items[:, 1:]),
            ),
            ledger=run.finish(),
        )

    def plan(self, ratings: Ratings, budget: Budget | None = None) -> list[GaussianRelease]:
        """Return the event that `fit` would book. Reads public facts only."""
        check_budget(self, budget)
        if budget is None:
            return []
        return planned(Unit.VALUE, budget, [(_all_ratings(ratings)[0].query, SHARE)])

    def _squares(
        self, ratings: Ratings, noised: np.ndarray, noise: float, session: Session
    ) -> LeastSquares:
        """Return the least squares of released values; post-processing."""
        unit = ratings.scale.range / 4
        weighted = self.regularization * unit
        ridge = Ridge(
            weighted=weighted,
            # What a Gaussian prior asks for when ratings carry noise of this variance.
            fixed=PRIOR_RATINGS * weighted + noise**2 / unit / (_INTERACTION / self.factors**0.5),
            bias=BIAS_RIDGE + (noise / unit) ** 2 / _BIAS,
        )
        centred = (noised - _mean(ratings, noised)).astype(np.float32)
        return LeastSquares(ratings, centred, self.factors, ridge, session.seeds, session.threads)


def _mean(ratings: Ratings, noised: np.ndarray) -> float:
    scale = ratings.scale
    return float(np.clip(noised.mean(), scale.low, scale.high))


def _all_ratings(ratings: Ratings) -> tuple[WeightedSums, ValueGrid]:
    """Return the measurement of every rating by itself: sums of one."""
    grid = ValueGrid.for_scale(ratings.scale.low, ratings.scale.high)
    features = FeatureGrid()
    count = len(ratings)
    table = WeightedSums(
        purpose="every rating",
        rows=Rows.RATINGS,
        starts=np.arange(count + 1, dtype=np.int64),
        columns=np.zeros(count, dtype=np.int32),
        features=np.full((1, 1), features.bound, dtype=np.int32),
        value_grid=grid,
        feature_grid=features,
    )
    return table, grid
