"""What every solver keeps to, and what it returns.

A solver is a frozen configuration of public facts with a method ``fit(ratings, budget, session)``.
One that is private reads ratings only through a gate that books its events; one that is not books
that it is not. The result has the caller's own ids and is the same whatever the number of threads.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal import validate
from taciturn.accounting.budget import Budget
from taciturn.accounting.events import Event
from taciturn.accounting.ledger import Ledger
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.noise import NoiseSource
from taciturn.mechanisms.run_folder import RunFolder
from taciturn.model.deviations import deviations
from taciturn.model.fold_in import Prior
from taciturn.scale import Scale

SEED_MAX = 2**63


def silent(done: int, total: int) -> None:
    """Show no progress."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """Runtime settings. Only the seeds and the noise source affect the result.

    Parameters
    ----------
    seed
        Public; draws the initial profiles and never touches noise.
    user_seed
        Secret; draws the users' initial profiles instead. Profiles stay near where they began, so
        a public start tells in which order the users came, and pseudonyms would hide nothing.
    threads
        How many threads to use; all processors when omitted.
    noise
        Where noise comes from; a fresh secure source when omitted.
    folder
        Keeps ledger, noise key and checkpoints on disk. Takes the place of `noise`.
    progress
        Called with the iterations done and in all; it is shown no private value.
    """

    seed: int = 0
    user_seed: int | None = None
    threads: int | None = None
    noise: NoiseSource | None = None
    folder: RunFolder | None = None
    progress: Callable[[int, int], None] = silent

    def __post_init__(self) -> None:
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise InvalidParameter("seed must be a whole number")
        if not 0 <= self.seed < SEED_MAX:
            raise InvalidParameter("seed must be a whole number from 0 to 2^63 − 1")
        if self.folder is not None and type(self.folder) is not RunFolder:
            raise InvalidParameter("folder must be a RunFolder; make one with RunFolder.create")

    @property
    def seeds(self) -> "Seeds":
        """Seeds of the initial profiles: all that post-processing gets of a session but threads."""
        return Seeds(seed=self.seed, user_seed=self.user_seed)


@dataclass(frozen=True, kw_only=True)
class Seeds:
    """Seeds of the initial profiles; see `Session`. Neither leads to the noise."""

    seed: int = 0
    user_seed: int | None = None

    def starts(self) -> tuple[np.random.Generator, np.random.Generator]:
        """Return what draws the initial profiles of items and of users."""
        public = np.random.default_rng(self.seed)
        if self.user_seed is None:
            return public, public
        return public, np.random.default_rng(self.user_seed)


PLAIN = Session()
"""A session with nothing special."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Profiles:
    """Users or items: ids, biases (n) and factors (n × k), in the order of the ratings' ids.

    Some solvers also tell the variances of both, for predictive deviations.
    """

    ids: pl.Series
    biases: npt.NDArray[np.float32]
    factors: npt.NDArray[np.float32]
    bias_variances: npt.NDArray[np.float32] | None = None
    variances: npt.NDArray[np.float32] | None = None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Fit:
    """What a solver returns. A rating is predicted as mean + bias + bias + ⟨factors, factors⟩.

    Attributes
    ----------
    solver, settings
        Name and public configuration.
    scale
        The declared scale of the ratings.
    mean, users, items
        What may be released under the ledger's guarantee. `items` is None for a solver that never
        noised them, `users` under unit `user`.
    residual_variance
        The variance of a rating's own error, where profiles come with variances.
    prior
        What may be assumed of a person, where `users` is None; released.
    private_users, private_items
        Profiles that were never noised: private, for the owner only.
    ledger
        What the training released.
    owner_view
        Exact facts about the private data, such as training errors: for the owner only.
    """

    solver: str
    settings: Mapping[str, Any]
    scale: Scale
    mean: float
    users: Profiles | None
    items: Profiles | None
    residual_variance: float | None = None
    prior: Prior | None = None
    private_users: Profiles | None = None
    private_items: Profiles | None = None
    ledger: Ledger
    owner_view: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        # Some of it is private, and all of it is long.
        return f"Fit(solver={self.solver!r}, status={self.ledger.status.value!r})"

    @property
    def known_users(self) -> Profiles:
        """User profiles, whether they may be released or are private."""
        return _known(self.users, self.private_users)

    @property
    def known_items(self) -> Profiles:
        """Item profiles, whether they may be released or are private."""
        return _known(self.items, self.private_items)

    def predict(
        self, users: npt.NDArray[np.int32], items: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float32]:
        """Return the predictions of pairs given by their rows, cut to the scale.

        With profiles that are private, so are the predictions.
        """
        one, two = self.known_users, self.known_items
        scores = np.einsum("nk,nk->n", one.factors[users], two.factors[items])
        scores += one.biases[users] + two.biases[items] + np.float32(self.mean)
        cut: npt.NDArray[np.float32] = np.clip(scores, self.scale.low, self.scale.high)
        return cut

    def deviations(
        self, users: npt.NDArray[np.int32], items: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float32]:
        """Return the standard deviations of ratings about their predictions, before the cut."""
        if self.users is None or self.items is None:
            raise InvalidParameter("this fit has no deviations: not all its profiles are released")
        return deviations(self.residual_variance, self.users, self.items, users, items)


class Solver(Protocol):
    """A frozen configuration that turns ratings into profiles."""

    name: ClassVar[str]
    is_private: ClassVar[bool]

    def fit(self, ratings: Ratings, budget: Budget | None = None, session: Session = PLAIN) -> Fit:
        """Train. Reads private data; see `Fit` for what may be released."""

    def plan(self, ratings: Ratings, budget: Budget | None = None) -> Sequence[Event]:
        """Return the events that `fit` would book; reads public facts of the ratings only."""


def _known(released: Profiles | None, private: Profiles | None) -> Profiles:
    found = released or private
    if found is None:
        raise InvalidParameter("this fit lacks the profiles of one side")
    return found


def unit_of(solver: "Solver") -> Unit:
    """Return the unit that a solver protects, or would; `value` unless it says another."""
    return Unit(getattr(solver, "unit", Unit.VALUE))


def settings(solver: Any) -> dict[str, Any]:
    """Return a solver's configuration as JSON types."""
    return asdict(solver)


def check_descent(solver: Any, most_factors: int) -> None:
    """Raise unless factors, iterations and, where there is one, the step size make sense."""
    factors = validate.positive_integer("factors", solver.factors, "5 to 50 are common")
    if factors > most_factors:
        raise InvalidParameter(f"factors must be at most {most_factors:,}, got {factors:,}")
    validate.positive_integer("iterations", solver.iterations, "see the solver's default")
    if hasattr(solver, "step_size"):
        validate.positive("step_size", solver.step_size, "see the solver's default")


def check_budget(solver: "Solver", budget: Budget | None) -> None:
    """Raise unless a private solver has a budget and another has none."""
    if solver.is_private and budget is None:
        raise InvalidParameter(
            f"{solver.name} needs a budget, such as Budget.from_epsilon(1, 1e-5)"
        )
    if not solver.is_private and budget is not None:
        raise InvalidParameter(f"{solver.name} is not private and takes no budget; leave it out")


def needed_budget(solver: "Solver", budget: Budget | None) -> Budget:
    """Return the budget of a private solver, or raise if there is none."""
    check_budget(solver, budget)
    if budget is None:
        raise InvalidParameter(f"{solver.name} is always private")
    return budget


def check_ratings(ratings: Ratings, unit: Unit = Unit.VALUE) -> None:
    """Raise unless there is something to train on.

    Under units that hide whether there are any ratings, none is as good as any.
    """
    if not isinstance(ratings, Ratings):
        raise InvalidParameter("ratings must be taciturn.Ratings; build them with taciturn.load")
    if unit is Unit.VALUE and len(ratings) == 0:
        raise InvalidParameter("there are no ratings to train on")
