"""What every solver keeps to, and what it returns.

A solver is a frozen configuration of public facts with a method ``fit(ratings, budget, session)``.
One that is private reads ratings only through a gate that books its events; one that is not books
that it is not. The result has the caller's own ids and is the same whatever the number of threads.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from taciturn._internal import validate
from taciturn.accounting.budget import Budget
from taciturn.accounting.events import Event
from taciturn.accounting.ledger import Ledger
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.noise import NoiseSource
from taciturn.mechanisms.run_folder import RunFolder
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Profiles

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
class Fit:
    """Result of a solver: the model that may be released, and owner-only parts.

    Attributes
    ----------
    solver, settings
        Name and public configuration.
    model
        May be released under the ledger's guarantee. Its `items` is None for a solver that never
        noised them, its `users` under unit `user`.
    private_users, private_items
        Profiles that were never noised: private, owner-only.
    ledger
        Events of the training.
    owner_view
        Exact facts about the private data, such as training errors: owner-only.
    """

    solver: str
    settings: Mapping[str, Any]
    model: FactorModel
    private_users: Profiles | None = None
    private_items: Profiles | None = None
    ledger: Ledger
    owner_view: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        # Some of it is private, and all of it is long.
        return f"Fit(solver={self.solver!r}, status={self.ledger.status.value!r})"

    @property
    def owner_model(self) -> FactorModel:
        """The model with private profiles where it has none to release. Private: owner-only."""
        users, items = self.model.users, self.model.items
        return replace(
            self.model,
            users=self.private_users if users is None else users,
            items=self.private_items if items is None else items,
        )


class Solver(Protocol):
    """A frozen configuration that turns ratings into profiles."""

    name: ClassVar[str]
    is_private: ClassVar[bool]

    def fit(self, ratings: Ratings, budget: Budget | None = None, session: Session = PLAIN) -> Fit:
        """Train. Reads private data; see `Fit` for what may be released."""

    def plan(self, ratings: Ratings, budget: Budget | None = None) -> Sequence[Event]:
        """Return the events that `fit` would book; reads public facts of the ratings only."""


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
