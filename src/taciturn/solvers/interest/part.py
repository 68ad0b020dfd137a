"""Interest part of a training, beside an algorithm that models ratings."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from taciturn.data.pattern import Axis
from taciturn.mechanisms.query import Released
from taciturn.model.interest import RATING_WEIGHT_MAX, Interest
from taciturn.queries.executor import RatingQuery
from taciturn.scale import Scale
from taciturn.solvers.contract import Seeds, Step
from taciturn.solvers.descent import (
    Rows,
    Vector,
    count_variances,
    rating_scale_factor,
    shrunk_counts,
)
from taciturn.solvers.entry import INTEREST_ROUNDS

RANKS = (2, 3, 4, 6, 8, 12, 16, 24)
"""Numbers of factors to choose from."""

CONSTANT = 0.3
"""Constant feature beside factors, by which each table also counts the ratings of an item."""

_RATING_WEIGHT = 0.8
"""Weight of a predicted rating, on a scale of width 4, beside interest of standard deviation 1."""

State = TypeVar("State")


class InterestPart(ABC, Generic[State]):
    """Queries of interest, and what follows from their answers.

    Like an `Algorithm`, it is built from public facts and never holds ratings. `training` is the
    state of the algorithm for ratings, of which it reads released numbers.

    Attributes
    ----------
    steps
        All steps, fixed in advance.
    published_patterns
        Purposes of the rating-pattern statistics that it publishes.
    unseen_weight, regularization
        Parameters with which users fold in; see `taciturn.model.interest.Interest`.
    """

    steps: tuple[Step, ...]
    published_patterns: ClassVar[tuple[str, ...]] = ()
    unseen_weight: ClassVar[float] = 0.5
    regularization: ClassVar[float] = 0.01

    @abstractmethod
    def initial_state(self, seeds: Seeds) -> State:
        """State before the first step."""

    def begun(self, state: State, training: Any, released: Released) -> State:
        """State after the first step of the algorithm for ratings, and what it released."""
        return state

    def shares(self, step: int, state: State) -> tuple[float, ...]:
        """Budget shares of the tables of a step.

        All together are those of `steps` and what is `moved`.
        """
        raise NotImplementedError

    def moved(self, state: State) -> float:
        """Budget share that interest takes from the remaining steps of the ratings."""
        return 0.0

    def query(self, step: int, state: State, training: Any) -> RatingQuery:
        """Query of a step."""
        raise NotImplementedError

    @abstractmethod
    def update(self, step: int, state: State, training: Any, released: Released) -> State:
        """State after a step."""

    @abstractmethod
    def item_vectors(self, state: State) -> Rows:
        """Interest vectors of the items."""

    def user_coefficients(self, state: State) -> Rows | None:
        """Released coefficients of the users, up to scale; None if users fold in."""
        return None

    def reliability(self, state: State) -> float:
        """Share of the variance of popularity over the items that is not noise, above 0."""
        return 1.0

    def interest(self, scale: Scale, state: State) -> Interest:
        """Parameters of the released interest."""
        weight = _rating_weight(self.reliability(state)) / rating_scale_factor(scale)
        return Interest(
            rating_weight=min(weight, RATING_WEIGHT_MAX),
            unseen_weight=self.unseen_weight,
            regularization=self.regularization,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Popularity:
    """Noisy numbers of ratings of the items, or sums of their weights, from several tables.

    Attributes
    ----------
    sums, precision
        Sums of noisy numbers divided by the variance of their noise, and of these inverse
        variances.
    usual
        Mean number, for the prior of a number.
    """

    sums: Vector
    precision: Vector
    usual: float

    @classmethod
    def unknown(cls, items: int) -> "Popularity":
        """Popularity before anything is released."""
        return cls(sums=np.zeros(items), precision=np.zeros(items), usual=1.0)

    @classmethod
    def of_counts(cls, counts: Vector, noise: float, believed: Vector) -> "Popularity":
        """Popularity from a first table; `believed` are posterior means of the same numbers."""
        first = cls.unknown(len(counts)).with_counts(counts, noise)
        return cls(
            sums=first.sums, precision=first.precision, usual=max(float(believed.mean()), 1e-3)
        )

    def with_counts(self, counts: Vector, noise: float | Vector) -> "Popularity":
        """Popularity with a further noisy table of the same numbers."""
        precision = np.broadcast_to(1 / np.square(noise), counts.shape)
        return Popularity(
            sums=self.sums + counts * precision,
            precision=self.precision + precision,
            usual=self.usual,
        )

    @property
    def counts(self) -> Vector:
        """Posterior mean of each number."""
        noise = np.sqrt(1 / self.precision)
        return np.asarray(shrunk_counts(self.sums / self.precision, noise, self.usual))

    @property
    def reliability(self) -> float:
        """Variance of the posterior means over the items, as a share of that of the numbers."""
        noise = np.sqrt(1 / self.precision)
        known = float(np.var(self.counts))
        unknown = float(count_variances(self.sums / self.precision, noise, self.usual).mean())
        return max(known / (known + unknown), 1e-3) if known > 0 else 1e-3


def _rating_weight(reliability: float) -> float:
    """Weight of a predicted rating, larger where popularity is mostly noise.

    Predicted ratings are shrunk where items have few ratings, so they order items better then. The
    powers fit datasets of 600 to 6,000 users.
    """
    return float(min(_RATING_WEIGHT / reliability**4, 10 / reliability ** (1 / 3)))


def purpose(step: int, axis: Axis) -> str:
    """Purpose of a table of interest; the first round has number 1."""
    return f"interest, round {1 + step} of {INTEREST_ROUNDS}, sums by {axis.singular}"
