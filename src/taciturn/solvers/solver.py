"""Base class of all solvers, with `fit` and `plan`."""

import logging
import numbers
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, ClassVar

from taciturn._internal import parallel, validate
from taciturn._internal.forks import check_fork
from taciturn._internal.spelling import parameter
from taciturn.accounting.budget import Budget
from taciturn.accounting.events import Event
from taciturn.accounting.ledger import Ledger, Status
from taciturn.accounting.public_inputs import PublicInput
from taciturn.accounting.units import Unit, UnitName
from taciturn.data.ratings import Ratings, check_ratings
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.queries.executor import LocalExecutor
from taciturn.queries.per_user import check_users
from taciturn.solvers.catalog import make_solver
from taciturn.solvers.contract import (
    PLAIN,
    Algorithm,
    Fit,
    PublicFacts,
    Session,
)
from taciturn.solvers.loop import Training, planned_events
from taciturn.solvers.public_inputs import (
    ids_from_ratings,
    item_features_input,
    public_ratings_input,
)

_logger = logging.getLogger(__name__)

DELTA = 1e-5
"""δ at which the guarantee of a training without a budget is stated."""


class Solver(ABC):
    """Frozen configuration that trains a model from ratings.

    Subclasses are frozen, keyword-only dataclasses of public settings. Their class attributes
    describe them, so that no code checks for their type.

    Attributes
    ----------
    name
        Name in the catalog.
    status
        Best status that its releases can have.
    units
        Privacy units that it supports.
    has_private_items
        Whether item profiles are exact, so that they cannot be released.
    clips_residuals
        Whether sensitivities depend on clipping thresholds instead of the range of the scale.
    uses_item_features
        Whether it uses public item features; if not, it ignores those of the ratings.
    uses_public_ratings
        Whether it uses public ratings; if not, it ignores those of the ratings.
    claim
        Derivation of its claim, if it is not the accounting of the certificate.
    unit
        Privacy unit; a setting of solvers that support several.
    """

    name: ClassVar[str]
    status: ClassVar[Status] = Status.PROVEN
    units: ClassVar[frozenset[Unit]] = frozenset({Unit.VALUE})
    has_private_items: ClassVar[bool] = False
    clips_residuals: ClassVar[bool] = False
    uses_item_features: ClassVar[bool] = False
    uses_public_ratings: ClassVar[bool] = False
    claim: ClassVar[str] = ""

    unit: UnitName = Unit.VALUE

    @property
    def is_private(self) -> bool:
        """Whether its releases have or claim a guarantee."""
        return self.status is not Status.NONE

    @property
    def folds_in(self) -> bool:
        """Whether users fold in, so that a release has no user profiles."""
        return self.unit is Unit.USER

    @property
    def takes_no_budget(self) -> bool:
        """Whether it takes no budget: it is not private, or its settings determine the noise."""
        return not self.is_private

    @property
    def settings(self) -> dict[str, Any]:
        """Settings as JSON types."""
        settings = asdict(self)  # type: ignore[call-overload]
        return {name: _plain(value) for name, value in settings.items()}

    def to_dict(self) -> dict[str, Any]:
        """Name and settings as JSON types, for `Solver.from_dict`."""
        return {"solver": self.name, "settings": self.settings}

    @staticmethod
    def from_dict(document: object) -> "Solver":
        """Solver that `to_dict` wrote; settings that are missing have their defaults."""
        if not (isinstance(document, dict) and document.keys() == {"solver", "settings"}):
            raise InvalidDocument("a solver must be an object with the fields solver and settings")
        name, settings = document["solver"], document["settings"]
        if not (isinstance(name, str) and isinstance(settings, Mapping)):
            raise InvalidDocument("the solver must be a name and its settings must be an object")
        if not all(isinstance(each, str) for each in settings):
            raise InvalidDocument("the names of settings must be text")
        solver: Solver = make_solver(name, **settings)
        return solver

    @abstractmethod
    def algorithm(
        self, facts: PublicFacts, budget: Budget | None, threads: int | None = None
    ) -> Algorithm[Any]:
        """Algorithm for ratings with these public facts, within a budget."""

    def resolved(self, budget: Budget | None) -> "Solver":
        """Solver with all settings that depend on the budget filled in."""
        if self.is_private and budget is None:
            raise InvalidParameter(
                f"{self.name} needs a budget, such as Budget.from_epsilon(1, 1e-5)"
            )
        if not self.is_private and budget is not None:
            raise InvalidParameter(f"{self.name} is not private and takes no budget; leave it out")
        return self

    def require_budget(self, budget: Budget | None) -> Budget:
        """Budget; raises if it is None."""
        if budget is None:
            raise InvalidParameter(
                f"{self.name} needs a budget, such as Budget.from_epsilon(1, 1e-5)"
            )
        return budget

    def spending(self, budget: Budget) -> tuple["Solver", Budget | None]:
        """Solver and budget of a training that spends exactly this budget, by exact accounting."""
        return self, budget

    def stated_delta(self, budget: Budget | None) -> float:
        """δ at which the guarantee is stated."""
        return DELTA if budget is None else budget.delta

    def claimed_epsilon(self, certified: float, budget: Budget | None) -> float:
        """Claimed ε of a training whose certificate has ε = `certified`."""
        return certified

    @parallel.without_blas_threads
    def fit(self, ratings: Ratings, budget: Budget | None = None, session: Session = PLAIN) -> Fit:
        """Train on ratings, within a budget if it is private.

        Reads private data; only the `model` of the result may be released, under its ledger's
        guarantee.
        """
        check_fork()
        self._check_ratings(ratings)
        check_budget(budget)
        validate.instance("session", session, Session, "build one, such as Session(seed=1)")
        solver = self.resolved(budget)
        algorithm = solver.algorithm(self.public_facts(ratings), budget, threads=session.threads)
        training = Training(algorithm, LocalExecutor(ratings, session.threads), session)
        steps = len(algorithm.schedule)
        _logger.info("training %s under unit %s in %d steps", self.name, self.unit, steps)
        state = training.run()
        model, done = algorithm.model(state), training.finish()
        ledger = Ledger(done.events, run=done.run, public_inputs=self.public_inputs(ratings))
        _logger.info("trained %s", self.name)
        # Computed last, from ratings: no release can depend on it.
        owner_only = algorithm.owner_only(state, ratings)
        return Fit(
            solver=self.name,
            settings=solver.settings,
            model=model,
            private_users=owner_only.users,
            private_items=owner_only.items,
            ledger=ledger,
            ids_from_ratings=ids_from_ratings(ratings, Unit(self.unit)),
            owner_only_facts=owner_only.facts,
        )

    def public_inputs(self, ratings: Ratings) -> tuple[PublicInput, ...]:
        """Public inputs beside the ratings that a training uses, as its ledger names them."""
        features = item_features_input(ratings) if self.uses_item_features else ()
        return features + (public_ratings_input(ratings) if self.uses_public_ratings else ())

    def plan(self, ratings: Ratings, budget: Budget | None = None) -> list[Event]:
        """Events that `fit` would record. Reads public facts only; see `planned_events`."""
        return planned_events(self.algorithm_for(ratings, budget))

    def public_facts(self, ratings: Ratings) -> PublicFacts:
        """Public facts that an algorithm gets: only the public inputs that the solver uses."""
        facts = PublicFacts.of(ratings, self.unit)
        return replace(
            facts,
            features_source=facts.features_source if self.uses_item_features else None,
            public_ratings=facts.public_ratings if self.uses_public_ratings else None,
        )

    def algorithm_for(self, ratings: Ratings, budget: Budget | None = None) -> Algorithm[Any]:
        """Algorithm that `fit` would run. Reads public facts only."""
        self._check_ratings(ratings)
        check_budget(budget)
        facts = self.public_facts(ratings)
        return self.resolved(budget).algorithm(facts, budget)

    def _check_ratings(self, ratings: Ratings) -> None:
        """Raise if there are no ratings to train on.

        Under units that protect the rating pattern, an empty dataset is allowed.
        """
        check_ratings(ratings)
        if self.unit is Unit.VALUE and len(ratings) == 0:
            raise InvalidParameter("there are no ratings to train on")
        if self.unit is Unit.USER:
            check_users(ratings.shape[0])


def _plain(value: Any) -> Any:
    """Setting as a JSON type; numbers may come from NumPy."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return value
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def check_budget(budget: object) -> None:
    """Raise unless it is a budget or None."""
    if budget is not None:
        hint = "build one, such as Budget.from_epsilon(1, delta=1e-5)"
        validate.instance("budget", budget, Budget, hint)


def check_solver(solver: object) -> None:
    """Raise unless it is a solver."""
    if not isinstance(solver, Solver):
        raise InvalidParameter(
            f"solver must be a solver such as AlsSolver(), got {validate.shown(solver)}; pass a "
            "budget by name, such as budget=Budget.from_epsilon(1, delta=1e-5)"
        )


def check_factors(factors: int, most: int) -> None:
    """Raise unless the number of factors is valid."""
    validate.positive_integer("factors", factors, "5 to 50 are common")
    if factors > most:
        raise InvalidParameter(f"{parameter('factors')} must be at most {most:,}, got {factors:,}")


def check_iterations(iterations: int) -> None:
    """Raise unless the number of iterations is valid."""
    validate.positive_integer("iterations", iterations, "see the solver's default")
