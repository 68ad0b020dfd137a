"""Training configuration and ratings that an audit attacks, from options or from a release."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taciturn._internal import validate
from taciturn.accounting.budget import Budget
from taciturn.accounting.units import DEFAULT_UNIT, Unit
from taciturn.audit import cases, one_run
from taciturn.audit.cases import PAPER_EPSILON, Case, audited_solver, chosen_pair, worst_pair
from taciturn.audit.one_run import Canaries, choose_canaries, own_canaries
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.release.read import load_release
from taciturn.solvers.catalog import CATALOG
from taciturn.solvers.solver import DELTA, Solver

CANARIES_MAX = 100_000
"""Maximum number of canaries in synthetic ratings."""

Reader = Callable[[], Ratings]
"""Function that reads the ratings; called once the configuration is validated."""


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """Training configuration to audit; a field that is None gets the default of the audit.

    Attributes
    ----------
    solver, unit, epsilon, delta
        As in training.
    options
        Other options of the solver, by name.
    like
        Release that supplies the whole configuration; no other field may be set.
    """

    solver: str | None = None
    unit: str | None = None
    epsilon: float | None = None
    delta: float | None = None
    options: dict[str, Any] = field(default_factory=dict)
    like: Path | None = None

    def __post_init__(self) -> None:
        if self.unit is not None:
            validate.choice("unit", self.unit, Unit)
        given = (self.solver, self.unit, self.epsilon, self.delta, *self.options.values())
        if self.like is not None and any(each is not None for each in given):
            raise InvalidParameter(
                "--like takes the whole configuration from a release; leave other options out"
            )

    @property
    def remark(self) -> str | None:
        """Sentence about a solver that is audited under `value`, the only unit it supports."""
        entry = CATALOG.get(self.solver or "als")
        if self.unit is not None or self.like is not None or entry is None:
            return None
        if not entry.is_private or entry.default_unit is DEFAULT_UNIT:
            return None
        return f"{self.solver} supports unit value only, so its claim is audited under unit value"

    def resolve(self, epsilon: float, *, is_small: bool) -> tuple[Solver, Budget | None]:
        """Solver and budget; `epsilon` is used if none was given.

        The budget is None where the solver's own parameters determine the noise.
        """
        if self.like is not None:
            return _like(self.like)
        name = self.solver or "als"
        solver = audited_solver(name, is_small=is_small, unit=self.unit, **self.options)
        default = PAPER_EPSILON if solver.has_private_items else epsilon
        return solver, Budget.from_epsilon(
            default if self.epsilon is None else self.epsilon,
            DELTA if self.delta is None else self.delta,
        )


def _like(path: Path) -> tuple[Solver, Budget | None]:
    """Solver and budget of a release."""
    release = load_release(path)
    certificate = release.certificate
    solver = audited_solver(release.facts.solver, is_small=False, **release.facts.settings)
    if certificate.epsilon is None:
        raise InvalidParameter(f"{path} makes no privacy claim, so there is no claim to audit")
    budget = Budget.from_epsilon(certificate.epsilon, certificate.delta)
    return solver, None if solver.takes_no_budget else budget


def choose_case(
    configuration: Configuration,
    read: Reader | None = None,
    *,
    user: str | None = None,
    item: str | None = None,
    to: float | None = None,
) -> Case:
    """Case for many runs: neighbouring datasets from real data, or the worst pair known."""
    solver, budget = configuration.resolve(cases.EPSILON, is_small=read is None)
    if read is not None:
        pair = chosen_pair(read(), Unit(solver.unit), user=user, item=item, to=to)
    elif user is not None or item is not None or to is not None:
        raise InvalidParameter(
            "--user, --item and --to choose a rating of real data: give a ratings file"
        )
    else:
        pair = worst_pair(solver)
    return Case(solver=solver, budget=budget, pair=pair)


def choose_targets(
    configuration: Configuration,
    read: Reader | None,
    most: int,
    values: tuple[float | None, float | None] = (None, None),
) -> tuple[Solver, Budget | None, Canaries]:
    """Solver and budget for one run, and canaries in real or synthetic ratings."""
    solver, budget = configuration.resolve(one_run.EPSILON, is_small=False)
    (low, high), unit = values, Unit(solver.unit)
    if read is not None:
        return solver, budget, choose_canaries(read(), most, unit, low=low, high=high)
    if not 0 < most <= CANARIES_MAX:
        raise InvalidParameter(
            f"without data the number of canaries must be from 10 to {CANARIES_MAX:,}"
        )
    return solver, budget, own_canaries(most, unit, low=low, high=high)
