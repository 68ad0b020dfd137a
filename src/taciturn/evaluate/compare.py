"""`taciturn compare`: accuracy against privacy for several solvers on the same splits.

A seed determines the split and the public initial profiles. Noise is secure and drawn afresh for
each seed. All solvers are compared at the same exact ε. Results are exact, computed from private
data, and owner-only.
"""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from taciturn._internal import validate
from taciturn._internal.cell_cache import COMPARISON, CellCache
from taciturn._internal.progress import as_report
from taciturn._internal.spelling import option
from taciturn._version import __version__
from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.units import DEFAULT_UNIT, Unit, UnitName
from taciturn.data.ratings import Ratings, check_ratings
from taciturn.data.splits import random_split
from taciturn.errors import InvalidParameter
from taciturn.evaluate.metrics import Accuracy, accuracy
from taciturn.solvers.catalog import CATALOG, make_solver
from taciturn.solvers.contract import Fit, Session
from taciturn.solvers.solver import Solver

DEFAULT = ("als", "gradient", "bias", "input-perturbation", "paper", "non-private")
EPSILONS = (0.5, 1.0, 2.0)

_logger = logging.getLogger(__name__)

VERSION = 3
"""Version of the computation in a cell. Cached results of other versions are ignored."""

METRICS = {
    "rmse": "rmse",
    "mae": "mae",
    "ndcg": "ndcg@10_unrated_top_quarter",
    "recall": "recall@20_unrated_top_quarter",
}
"""Names of the metrics in JSON. Names of ranking metrics include their protocol."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Solvers, privacy units, budgets and splits to compare.

    Parameters
    ----------
    solvers
        Names of the solvers. The others are compared with the first.
    units
        Privacy units. A solver is run under those that it supports. Solvers that support `value`
        only are always run under `value`.
    epsilons, delta
        Overall budgets of the private solvers.
    seeds, first_seed
        Number of seeds, and the first of them.
    holdout
        Fraction of the ratings that is held out.
    """

    solvers: tuple[str, ...] = DEFAULT
    units: tuple[UnitName, ...] = (DEFAULT_UNIT,)
    epsilons: tuple[float, ...] = EPSILONS
    delta: float = 1e-5
    seeds: int = 3
    first_seed: int = 0
    holdout: float = 0.1

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
    def cells(self) -> list["Cell"]:
        """All training runs: every solver and seed; for private solvers, every unit and ε."""
        return [
            Cell(solver=name, unit=unit, epsilon=epsilon, seed=seed)
            for seed in self.each_seed
            for name, unit in self.kinds
            for epsilon in (sorted(self.epsilons) if unit else [None])
        ]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One training run: a solver, a seed and, for a private solver, its unit and ε."""

    solver: str
    unit: Unit | None
    epsilon: float | None
    seed: int


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One solver under one unit at one ε: means over seeds with standard errors.

    A mean is None where it is unknown. `difference` is the mean RMSE difference from the first
    solver at the same ε on the same splits, and its standard error.
    """

    solver: str
    unit: Unit | None
    epsilon: float | None
    status: str
    means: dict[str, float | None]
    errors: dict[str, float | None]
    by_popularity: tuple[float | None, ...]
    difference: tuple[float, float | None] | None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Comparison:
    """The results of all cells of a plan. Exact: owner-only."""

    plan: Plan
    source: str
    results: dict[Cell, Accuracy]
    statuses: dict[tuple[str, Unit | None], str]

    def summaries(self) -> list[Summary]:
        """One summary for each solver, unit and ε, in the order of the plan."""
        firsts = [cell for cell in self.plan.cells if cell.seed == self.plan.first_seed]
        return [self._summary(cell) for cell in firsts]

    def _of(self, cell: Cell) -> list[Accuracy]:
        return [self.results[replace(cell, seed=seed)] for seed in self.plan.each_seed]

    def _summary(self, cell: Cell) -> Summary:
        found = self._of(cell)
        means, errors = {}, {}
        for name in METRICS:
            means[name], errors[name] = _mean([getattr(each, name) for each in found])
        groups = zip(*(each.rmse_by_popularity for each in found), strict=True)
        return Summary(
            solver=cell.solver,
            unit=cell.unit,
            epsilon=cell.epsilon,
            status=self.statuses[cell.solver, cell.unit],
            means=means,
            errors=errors,
            by_popularity=tuple(_mean(list(group))[0] for group in groups),
            difference=self._difference(cell),
        )

    def _difference(self, cell: Cell) -> tuple[float, float | None] | None:
        solver, unit = self.plan.kinds[0]
        first = replace(cell, solver=solver, unit=unit, epsilon=cell.epsilon if unit else None)
        if cell == first or (unit is not None and cell.epsilon is None):
            return None
        pairs = zip(self._of(cell), self._of(first), strict=True)
        mean, error = _mean([one.rmse - two.rmse for one, two in pairs])
        return (mean, error) if mean is not None else None

    def __repr__(self) -> str:
        from taciturn.evaluate.compare_report import as_text

        return f"Comparison on {self.source}, owner-only\n{as_text(self)}"

    def _repr_html_(self) -> str:
        from taciturn.evaluate.compare_report import as_html

        return as_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Comparison as JSON types."""
        return {
            "view": "owner",
            "source": self.source,
            "delta": self.plan.delta,
            "seeds": list(self.plan.each_seed),
            "holdout": self.plan.holdout,
            "units": {unit: unit.facts.protects for unit in self.plan.units_run},
            "compared_with": self.plan.kinds[0][0],
            "compared_with_unit": self.plan.kinds[0][1],
            "results": [_row(summary) for summary in self.summaries()],
            "runs": [asdict(cell) | _named(asdict(found)) for cell, found in self.results.items()],
        }


def run_comparison(
    ratings: Ratings,
    plan: Plan,
    *,
    source: str = "ratings",
    folder: Path | None = None,
    threads: int | None = None,
    progress: Callable[[int, int, float], None] | bool = False,
) -> Comparison:
    """Run all cells that are not cached in the folder. Reads private data: results are owner-only.

    Parameters
    ----------
    ratings, plan
        Ratings, and what to compare on them.
    source
        Name of the ratings in the title of a report.
    folder
        Folder in which finished runs are kept, in the subfolder `cells`, by a key of all their
        inputs, including the ratings. Default: they are not kept.
    threads
        Number of threads; does not affect the result. Default: one for each processor.
    progress
        True to draw a bar on stderr, or a function of the runs done, in total, and the fraction of
        the work done.
    """
    check_ratings(ratings)
    validate.instance("plan", plan, Plan, "build one, such as Plan(solvers=('als', 'bias'))")
    validate.instance("source", source, str, "it is the name of the ratings")
    report, cache = _reported(progress), None
    if folder is not None:
        cache = CellCache(validate.path("folder", folder) / COMPARISON, is_private=True)
    digest = ratings.digest()
    split: tuple[int, Ratings, Ratings] | None = None
    facts = {cell: _facts(cell, plan, digest) for cell in plan.cells}
    found = {cell: cache.get(each, _measured) if cache else None for cell, each in facts.items()}
    missing = [cell for cell, cached in found.items() if cached is None]
    done = len(found) - len(missing)
    for number, cell in enumerate(missing):
        report(done + number, len(found), number / len(missing))
        _logger.info("run %d of %d: %s", done + number + 1, len(found), _described(cell))
        if split is None or split[0] != cell.seed:
            split = (cell.seed, *random_split(ratings, plan.holdout, cell.seed))
        fit, status = _fit(cell, plan, split[1], threads)
        measured = accuracy(fit, split[1], split[2], threads)
        if cache is not None:
            cache.put(facts[cell], asdict(cell) | asdict(measured) | {"status": status})
        found[cell] = measured, status
    report(len(found), len(found), 1.0)
    known = {cell: each for cell, each in found.items() if each is not None}
    return Comparison(
        plan=plan,
        source=source,
        results={cell: each[0] for cell, each in known.items()},
        statuses={(cell.solver, cell.unit): each[1] for cell, each in known.items()},
    )


def _described(cell: Cell) -> str:
    """Cell in words, for the log."""
    budget = "" if cell.epsilon is None else f" at ε = {cell.epsilon:g}"
    unit = "" if cell.unit is None else f" under unit {cell.unit}"
    return f"{cell.solver}{unit}{budget}, seed {cell.seed}"


def _reported(
    progress: Callable[[int, int, float], None] | bool,
) -> Callable[[int, int, float], None]:
    """Function that reports progress."""
    if not isinstance(progress, bool) and callable(progress):
        return progress
    bar = as_report(progress, "runs")
    return lambda done, total, share: bar(done, total)


def _configured(cell: Cell, plan: Plan) -> tuple[Solver, Budget | None]:
    """Solver and budget of a cell, which spends exactly its ε."""
    solver: Solver = make_solver(cell.solver, unit=cell.unit)
    if cell.epsilon is None:
        return solver, None
    return solver.spending(Budget.from_epsilon(cell.epsilon, plan.delta))


def _fit(cell: Cell, plan: Plan, train: Ratings, threads: int | None) -> tuple[Fit, str]:
    """Fit of a cell, and the status that follows from its ledger."""
    solver, budget = _configured(cell, plan)
    fit = solver.fit(train, budget, Session(seed=cell.seed, threads=threads))
    certificate = Certificate.from_ledger(fit.ledger, plan.delta)
    spent = math.inf if certificate.epsilon is None else certificate.epsilon
    if cell.epsilon is not None and spent > cell.epsilon * (1 + 1e-6):
        raise InvalidParameter(f"{cell.solver} spent more than its budget of ε = {cell.epsilon:g}")
    return fit, certificate.status.value


def _facts(cell: Cell, plan: Plan, digest: str) -> dict[str, Any]:
    """All inputs of a cell's result, as a cache key."""
    return {
        "version": (VERSION, __version__),
        "ratings": digest,
        "cell": asdict(cell),
        "settings": _configured(cell, plan)[0].settings,
        "delta": plan.delta,
        "holdout": plan.holdout,
    }


def _measured(document: Any) -> tuple[Accuracy, str]:
    """Accuracy and status of a cached cell."""
    groups = tuple(document["rmse_by_popularity"])
    metrics = {name: document[name] for name in (*METRICS, "unknown_users", "unknown_items")}
    return Accuracy(rmse_by_popularity=groups, **metrics), str(document["status"])


def _mean(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    """Mean and standard error. Both None if a value is missing; no error for a single value."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None, None
    return fmean(known), stdev(known) / math.sqrt(len(known)) if len(known) > 1 else None


def _named(document: dict[str, Any]) -> dict[str, Any]:
    return {METRICS.get(name, name): value for name, value in document.items()}


def _row(summary: Summary) -> dict[str, Any]:
    row: dict[str, Any] = {
        "solver": summary.solver,
        "unit": summary.unit,
        "epsilon": summary.epsilon,
        "status": summary.status,
    }
    for name, label in METRICS.items():
        row[label] = summary.means[name]
        row[f"{label}_error"] = summary.errors[name]
    row["rmse_by_popularity"] = list(summary.by_popularity)
    if summary.difference:
        row["rmse_difference"], row["rmse_difference_error"] = summary.difference
    return row
