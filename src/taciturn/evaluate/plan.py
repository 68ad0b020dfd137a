"""Plan of a comparison: solvers, privacy units, budgets and splits, and the training runs of it."""

from dataclasses import dataclass
from typing import Any

from taciturn._internal import validate
from taciturn._internal.spelling import option
from taciturn.accounting.budget import Budget
from taciturn.accounting.public_inputs import InputKind
from taciturn.accounting.units import DEFAULT_UNIT, Unit, UnitName
from taciturn.errors import InvalidParameter
from taciturn.solvers.catalog import CATALOG, is_free, make_solver
from taciturn.solvers.contract import Session

DEFAULT = ("als", "gradient", "bias", "input-perturbation", "paper", "non-private")
EPSILONS = (0.5, 1.0, 2.0)

PUBLIC = "public"
"""Name of the row of the public ratings alone, in the place of a solver."""

POPULARITY, EXACT_POPULARITY = "popularity", "non-private-popularity"
"""Solvers that are always compared: the same list of popular items for every user, with noise and
without."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Solvers, privacy units, budgets and splits to compare.

    Popularity is added under every unit and budget, and without noise: lists should be better.

    Parameters
    ----------
    solvers
        Names of the solvers. The others are compared with the first that predicts ratings.
    units
        Privacy units. A solver is run under those that it supports. Solvers that support `value`
        only are always run under `value`.
    epsilons, delta
        Overall budgets of the private solvers.
    seeds, first_seed
        Number of seeds, and the first of them.
    holdout
        Fraction of the ratings that is held out.
    serve
        How users are served by solvers with this setting, such as `fold-in`. Default: as the solver
        does for its unit.
    has_public
        Whether to add, for each unit of `als`, a row `public` of the public ratings alone. Nothing
        of the private ratings is released there, so its ε is 0.
    same_users
        Whether equal user ids in the ratings and in public ratings mean one person, whose held-out
        ratings are then left out. Default: ids are unrelated, and nothing is left out.
    """

    solvers: tuple[str, ...] = DEFAULT
    units: tuple[UnitName, ...] = (DEFAULT_UNIT,)
    epsilons: tuple[float, ...] = EPSILONS
    delta: float = 1e-5
    seeds: int = 3
    first_seed: int = 0
    holdout: float = 0.1
    serve: str | None = None
    has_public: bool = False
    same_users: bool = False

    def __post_init__(self) -> None:
        for name, hint in (
            ("solvers", "such as ('als', 'bias')"),
            ("units", "such as ('rating',)"),
            ("epsilons", "such as (1, 2)"),
        ):
            object.__setattr__(self, name, validate.several(name, getattr(self, name), hint))
        for solver in self.solvers:
            if not (isinstance(solver, str) and solver in CATALOG):
                known = ", ".join(CATALOG)
                raise InvalidParameter(
                    f"{option('solvers')} must be from {known}, got {validate.shown(solver)}"
                )
        if not self.solvers:
            raise InvalidParameter(f"{option('solvers')} must name at least one solver")
        if len(set(self.solvers)) < len(self.solvers):
            raise InvalidParameter(f"{option('solvers')} names a solver twice; name each once")
        units = tuple(validate.choice("units", unit, Unit) for unit in self.units)
        object.__setattr__(self, "units", units)
        if not units or len(set(units)) < len(units):
            raise InvalidParameter(f"{option('units')} must name at least one unit, and none twice")
        for epsilon in self.epsilons:
            Budget.from_epsilon(epsilon, self.delta)
        if not self.epsilons or len(set(self.epsilons)) < len(self.epsilons):
            raise InvalidParameter(
                f"{option('epsilons')} must have at least one value, and none twice"
            )
        validate.positive_integer("seeds", self.seeds, "3 is the default")
        Session(seed=self.first_seed)
        validate.probability("holdout", self.holdout, "0.1 holds out a tenth")
        if self.serve is not None:
            self._check_serve()

    def _check_serve(self) -> None:
        """Raise unless one of the solvers can serve users as chosen."""
        if not any("serve" in CATALOG[name].settings for name in self.solvers):
            raise InvalidParameter(
                f"none of the solvers has the setting serve; leave out {option('serve')}, or add "
                f"als to {option('solvers')}"
            )
        for name, unit in self.kinds:
            self.make_solver(name, unit)

    def make_solver(self, name: str, unit: Unit | None) -> Any:
        """Solver of a run, with the settings of the plan that it has."""
        entry = CATALOG.get(name) if isinstance(name, str) else None
        serve = self.serve if entry and "serve" in entry.settings else None
        return make_solver(name, unit=unit, serve=serve)

    def check_item_features(self) -> None:
        """Raise unless one of the solvers uses item features."""
        if not any(InputKind.ITEM_FEATURES in CATALOG[name].inputs for name in self.solvers):
            raise InvalidParameter(
                f"none of the solvers uses item features; leave out {option('item_features')}, or "
                f"add als to {option('solvers')}"
            )

    def check_public_ratings(self) -> None:
        """Raise unless one of the solvers uses public ratings."""
        if not any(InputKind.PUBLIC_RATINGS in CATALOG[name].inputs for name in self.solvers):
            raise InvalidParameter(
                f"none of the solvers uses public ratings; leave out {option('public_ratings')}, "
                f"or add als to {option('solvers')}"
            )

    @property
    def public_kinds(self) -> list[tuple[str, Unit | None]]:
        """Rows of the public ratings alone: one for each unit of a solver that uses them."""
        users = [name for name in self.solvers if InputKind.PUBLIC_RATINGS in CATALOG[name].inputs]
        units = [unit for name, unit in self.kinds if name in users] if self.has_public else []
        return [(PUBLIC, unit) for unit in dict.fromkeys(units)]

    @property
    def popularity_kinds(self) -> list[tuple[str, Unit | None]]:
        """Rows of popularity beside the solvers: one for each unit, and the exact one."""
        every = [*((POPULARITY, unit) for unit in self.units_shown), (EXACT_POPULARITY, None)]
        return [kind for kind in every if kind not in self.kinds]

    @property
    def baseline(self) -> tuple[str, Unit | None] | None:
        """First solver and unit with predicted ratings; the others are compared with it."""
        return next((kind for kind in self.kinds if predicts_ratings(kind[0])), None)

    @property
    def each_seed(self) -> range:
        """The seeds."""
        return range(self.first_seed, self.first_seed + self.seeds)

    @property
    def kinds(self) -> list[tuple[str, Unit | None]]:
        """Solvers with the units they are run under; None for non-private solvers."""
        return [
            (name, unit)
            for name in self.solvers
            for unit in (self._units_of(name) if CATALOG[name].is_private else [None])
        ]

    def _units_of(self, name: str) -> list[Unit]:
        """Chosen units that a solver supports; `value` if it supports none of them."""
        known = CATALOG[name].units
        return [unit for unit in map(Unit, self.units) if unit in known] or [
            CATALOG[name].default_unit
        ]

    @property
    def value_only(self) -> list[str]:
        """Solvers that are run under `value` although it was not chosen."""
        return [name for name, unit in self.kinds if unit is not None and unit not in self.units]

    @property
    def units_run(self) -> list[Unit]:
        """Units that a solver is run under: the chosen ones first."""
        run = dict.fromkeys(unit for _, unit in self.kinds if unit is not None)
        return sorted(run, key=lambda unit: (*self.units, *Unit).index(unit))

    @property
    def units_shown(self) -> list[Unit]:
        """Chosen units and those that a solver is run under: popularity has a row for each."""
        return list(dict.fromkeys([*map(Unit, self.units), *self.units_run]))

    @property
    def cells(self) -> list["Cell"]:
        """All training runs: every solver and seed; for private solvers, every unit and ε."""
        return [
            Cell(solver=name, unit=unit, epsilon=epsilon, seed=seed)
            for seed in self.each_seed
            for name, unit in [*self.kinds, *self.public_kinds, *self.popularity_kinds]
            for epsilon in self._epsilons_of(name, unit)
        ]

    def _epsilons_of(self, name: str, unit: Unit | None) -> list[float | None]:
        if name == PUBLIC or (unit is not None and is_free(name, unit)):
            return [0.0]
        return [*sorted(self.epsilons)] if unit else [None]


def predicts_ratings(name: str) -> bool:
    """Whether a solver, or the row of the public ratings, predicts ratings or only ranks."""
    return name not in CATALOG or CATALOG[name].predicts_ratings


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One training run: a solver, a seed and, for a private solver, its unit and ε."""

    solver: str
    unit: Unit | None
    epsilon: float | None
    seed: int
