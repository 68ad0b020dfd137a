"""Contract of solvers and algorithms.

A solver is a frozen configuration of public facts; `fit(ratings, budget, session)` trains. A solver
describes an `Algorithm`: a fixed schedule of steps, the query of each step, and the update from its
noisy answer. An algorithm is built from public facts only and never holds ratings. `loop` is the
only code that passes its queries to a gate.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
import polars as pl

from taciturn._internal import parallel
from taciturn._internal.progress import Progress, Report, as_report
from taciturn.accounting.budget import Budget
from taciturn.accounting.units import Unit, UnitName
from taciturn.data.item_features import ItemFeatures
from taciturn.data.pattern import RatingPattern
from taciturn.data.ratings import PublicRatings, Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.noise import NoiseSource
from taciturn.mechanisms.query import BoundedQuery, Released
from taciturn.mechanisms.run_folder import RunFolder
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Floats, Profiles
from taciturn.queries.executor import RatingQuery
from taciturn.scale import Scale
from taciturn.solvers.fit import Fit as Fit

SEED_MAX = 2**63

State = TypeVar("State")
"""State of an algorithm between steps: a frozen dataclass of arrays, floats and such classes."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """Runtime settings. Only the seeds and the noise source, or its folder, affect the result.

    Parameters
    ----------
    seed
        Public seed of the initial profiles; never affects noise.
    user_seed
        Secret seed of the users' initial profiles, instead of `seed`. Profiles stay near their
        initial values, so a public seed would reveal the order of the users, and pseudonyms would
        not protect them.
    threads
        Number of threads. Default: one for each processor.
    noise
        Noise source. Default: a fresh secure one.
    folder
        Keeps ledger, noise key and checkpoints on disk. Use it instead of `noise`.
    progress
        True to draw a bar on stderr, or a function of the number of finished steps and the total.
        Neither shows a private value.
    """

    seed: int = 0
    user_seed: int | None = field(default=None, repr=False)
    threads: int | None = None
    noise: NoiseSource | None = None
    folder: RunFolder | None = None
    progress: Progress = False

    def __post_init__(self) -> None:
        as_report(self.progress, "training")
        parallel.thread_count(self.threads)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise InvalidParameter("seed must be a whole number from 0 to 2^63 − 1")
        if not 0 <= self.seed < SEED_MAX:
            raise InvalidParameter("seed must be a whole number from 0 to 2^63 − 1")
        if self.folder is not None and type(self.folder) is not RunFolder:
            raise InvalidParameter("folder must be a RunFolder; create one with RunFolder.create")

    @property
    def report(self) -> Report:
        """Function that reports progress."""
        return as_report(self.progress, "training")

    @property
    def seeds(self) -> "Seeds":
        """Seeds of the initial profiles: all that an algorithm sees of a session."""
        return Seeds(seed=self.seed, user_seed=self.user_seed)


PLAIN = Session()
"""Session with all defaults."""


@dataclass(frozen=True, kw_only=True)
class Seeds:
    """Seeds of the initial profiles; see `Session`. The noise is independent of both."""

    seed: int = 0
    user_seed: int | None = field(default=None, repr=False)

    def starts(self) -> tuple[np.random.Generator, np.random.Generator]:
        """Generators of the initial profiles of items and of users."""
        public = np.random.default_rng(self.seed)
        if self.user_seed is None:
            return public, public
        return public, np.random.default_rng(self.user_seed)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PublicFacts:
    """Public facts about the ratings under a privacy unit: the only inputs of an algorithm.

    Raises on access to a fact that is private under the unit.

    Attributes
    ----------
    scale
        The declared scale.
    item_ids
        Ids of all items, including unrated ones.
    listed_users
        Ids of all users, including those without ratings; None under unit `user`.
    public_pattern
        Rating pattern; None unless the unit is `value`.
    features_source
        Public item features as they were loaded, by their own ids; None without features.
    public_ratings
        Public ratings with ids of their own; None without any.
    """

    scale: Scale
    item_ids: pl.Series
    listed_users: pl.Series | None = None
    public_pattern: RatingPattern | None = None
    features_source: ItemFeatures | None = None
    public_ratings: PublicRatings | None = None

    @classmethod
    def of(cls, ratings: Ratings, unit: UnitName) -> "PublicFacts":
        """Facts that are public under a unit."""
        return cls(
            scale=ratings.scale,
            item_ids=ratings.item_ids,
            listed_users=None if unit is Unit.USER else ratings.user_ids,
            public_pattern=ratings.pattern if unit is Unit.VALUE else None,
            features_source=ratings.item_features,
            public_ratings=ratings.public_ratings,
        )

    @property
    def user_ids(self) -> pl.Series:
        """Ids of users; raises if they are private."""
        if self.listed_users is None:
            raise InvalidParameter("the list of users is private under unit user")
        return self.listed_users

    @property
    def pattern(self) -> RatingPattern:
        """Rating pattern; raises if it is private."""
        if self.public_pattern is None:
            raise InvalidParameter("the rating pattern is private under this unit")
        return self.public_pattern

    @cached_property
    def item_features(self) -> Floats:
        """Public item features (items × columns) in the order of `item_ids`.

        Each column has mean 0 over the items of the source, and an item without features has zeros.
        Without features there are no columns. Read-only.
        """
        if self.features_source is None:
            return np.zeros((self.items, 0))
        aligned = self.features_source.aligned(self.item_ids)
        aligned.flags.writeable = False
        return aligned

    @property
    def users(self) -> int:
        """Number of users; raises if it is private."""
        return len(self.user_ids)

    @property
    def items(self) -> int:
        """Number of items."""
        return len(self.item_ids)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of users and of items."""
        return self.users, self.items


WHOLE = 1 - 2.0**-40
"""Budget share of all releases: slightly less than 1, so that rounded shares do not exceed 1."""


@dataclass(frozen=True, kw_only=True)
class QueryStep:
    """Step that releases the tables of one query spec.

    Attributes
    ----------
    queries
        Public facts of its tables at their maximum size, known before the first release.
    shares
        Budget share, a fraction of μ², of each table.
    effort
        Approximate duration of the step, relative to other steps.
    """

    queries: tuple[BoundedQuery, ...]
    shares: tuple[float, ...]
    effort: float = 1.0


def repeated(
    queries: Sequence[BoundedQuery], shares: Sequence[float], purposes: Iterable[str]
) -> tuple[QueryStep, ...]:
    """One step for each purpose, which becomes the prefix of the purposes of its queries."""
    return tuple(
        QueryStep(
            queries=tuple(replace(query, purpose=purpose + query.purpose) for query in queries),
            shares=tuple(shares),
        )
        for purpose in purposes
    )


@dataclass(frozen=True, kw_only=True)
class PostProcess:
    """Step that uses only released numbers; it costs no privacy."""

    effort: float = 1.0


@dataclass(frozen=True, kw_only=True)
class ExactStep:
    """Step that reads every rating without noise; only non-private solvers have one."""

    effort: float = 1.0


Step = QueryStep | PostProcess | ExactStep


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class OwnerOnly:
    """Exact results of a training that must not be published.

    `users` and `items` are profiles computed without noise; `facts` are exact facts about the
    ratings, such as training errors.
    """

    users: Profiles | None = None
    items: Profiles | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


class Algorithm(ABC, Generic[State]):
    """Training algorithm, described without data: queries and updates from their noisy answers.

    Attributes
    ----------
    unit
        Privacy unit of its queries.
    budget
        Budget of all releases together; None if it is not private.
    schedule
        All steps, fixed in advance. A table may turn out narrower than scheduled, never larger;
        its coordinates and shares stay as scheduled.
    published_patterns
        Purposes of the rating-pattern statistics that the model publishes.
    served_exactly
        Purpose of the exact profiles that each user is shown, under units other than `user`.
    """

    unit: Unit
    budget: Budget | None
    schedule: tuple[Step, ...]
    published_patterns: tuple[str, ...] = ()
    served_exactly: str | None = None

    @abstractmethod
    def initial_state(self, seeds: Seeds) -> State:
        """State before the first step."""

    def query(self, step: int, state: State) -> RatingQuery:
        """Query spec of a `QueryStep`."""
        raise NotImplementedError(f"step {step} of {type(self).__name__} has no query")

    def shares(self, step: int, state: State) -> tuple[float, ...]:
        """Budget shares of the tables of a `QueryStep`.

        Default: those of the schedule. Released numbers may move shares between tables whose
        sensitivity grows alike for groups. All steps together have the same total, whatever is
        released: a certificate is computed from the shares that were spent. The loop refuses more.
        """
        scheduled = self.schedule[step]
        return scheduled.shares if isinstance(scheduled, QueryStep) else ()

    @abstractmethod
    def update(self, step: int, state: State, released: Released) -> State:
        """State after a step, from its noisy answer, which has no table after a `PostProcess` step.

        Does not change `state`, and depends on no other mutable data.
        """

    def is_settled(self, state: State) -> bool:
        """Whether to stop before the end of the schedule; only the published algorithm does."""
        return False

    @abstractmethod
    def model(self, state: State) -> FactorModel:
        """Released model."""

    def owner_only(self, state: State, ratings: Ratings) -> OwnerOnly:
        """Exact results for the data owner, computed after the model. Reads private data."""
        return OwnerOnly()
