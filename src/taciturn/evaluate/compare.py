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
from time import monotonic
from typing import Any

from taciturn._internal import validate
from taciturn._internal.cell_cache import COMPARISON, CellCache
from taciturn._internal.progress import as_report
from taciturn._internal.spelling import option
from taciturn._version import __version__
from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.units import Unit
from taciturn.data.public_ratings import without_users_of
from taciturn.data.ratings import Ratings, check_ratings
from taciturn.data.splits import random_split
from taciturn.errors import InvalidParameter
from taciturn.evaluate.against import EarlierRuns, Pairing
from taciturn.evaluate.bands import BandMetric
from taciturn.evaluate.cell_times import CellTimes, ordered
from taciturn.evaluate.metrics import Accuracy, accuracy
from taciturn.evaluate.plan import PUBLIC, Cell, Plan, predicts_ratings
from taciturn.model.factor_model import FactorModel
from taciturn.solvers.als.public_alone import public_alone
from taciturn.solvers.contract import Fit, Session
from taciturn.solvers.solver import Solver

_logger = logging.getLogger(__name__)

VERSION = 5
"""Version of the computation in a cell. Cached results of other versions are ignored."""

METRICS = {
    "rmse": "rmse",
    "mae": "mae",
    "ndcg": "ndcg@10_unrated_top_quarter",
    "recall": "recall@20_unrated_top_quarter",
    "item_coverage": "item_coverage@10_unrated",
    "novelty": "novelty@10_unrated",
}
"""Names of the metrics in JSON. Names of ranking metrics include their protocol."""

BAND_METRICS = {
    f"{metric}_by_{axis}": f"{METRICS[metric]}_by_{axis}"
    for metric, axis in (
        ("rmse", "activity"),
        ("ndcg", "activity"),
        ("recall", "activity"),
        ("rmse", "popularity"),
        ("recall", "popularity"),
    )
}
"""Names in JSON of the metrics by band of user activity or of item popularity."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One solver under one unit at one ε: means over seeds with standard errors.

    A mean is None where it is unknown, such as the RMSE of a solver that only ranks. `bands` has
    the means of each metric by band. `difference` is the mean RMSE difference from the baseline of
    the plan at the same ε on the same splits, and its standard error.
    """

    solver: str
    unit: Unit | None
    epsilon: float | None
    status: str
    means: dict[str, float | None]
    errors: dict[str, float | None]
    bands: dict[str, BandMetric]
    difference: tuple[float, float | None] | None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Comparison:
    """The results of all cells of a plan. Exact: owner-only.

    `ratings_digest` identifies the ratings, with or without item features. `earlier` is a
    comparison to take differences from.
    """

    plan: Plan
    source: str
    results: dict[Cell, Accuracy]
    statuses: dict[tuple[str, Unit | None], str]
    ratings_digest: str
    earlier: EarlierRuns | None = None

    def against(self, earlier: "Comparison | Path | str") -> "Comparison":
        """Comparison with paired differences from an earlier one on the same splits.

        `earlier` is a comparison, or the path of the JSON document of one. Runs are paired by
        solver, unit, ε and seed. Refused unless holdout, δ and ratings are the same.
        """
        runs = _earlier(earlier)
        runs.check(self.plan, self.ratings_digest)
        return replace(self, earlier=runs)

    def pairing(self) -> Pairing | None:
        """Paired differences from the earlier comparison; None without one."""
        if self.earlier is None:
            return None
        errors = {cell: each.rmse for cell, each in self.results.items()}
        return self.earlier.pair({cell: rmse for cell, rmse in errors.items() if rmse is not None})

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
        bands = {}
        for name in BAND_METRICS:
            values = zip(*(getattr(each, name) for each in found), strict=True)
            bands[name] = tuple(_mean(band)[0] for band in values)
        return Summary(
            solver=cell.solver,
            unit=cell.unit,
            epsilon=cell.epsilon,
            status=self.statuses[cell.solver, cell.unit],
            means=means,
            errors=errors,
            bands=bands,
            difference=self._difference(cell),
        )

    def _difference(self, cell: Cell) -> tuple[float, float | None] | None:
        if self.plan.baseline is None or cell.solver == PUBLIC or not predicts_ratings(cell.solver):
            return None
        solver, unit = self.plan.baseline
        first = replace(cell, solver=solver, unit=unit, epsilon=cell.epsilon if unit else None)
        if cell == first or (unit is not None and cell.epsilon is None):
            return None
        errors = [[each.rmse for each in self._of(kind)] for kind in (cell, first)]
        pairs = zip(*errors, strict=True)
        mean, error = _mean(
            [one - two for one, two in pairs if one is not None and two is not None]
        )
        return (mean, error) if mean is not None else None

    def __repr__(self) -> str:
        from taciturn.evaluate.compare_report import overview

        return f"Comparison on {self.source}, owner-only\n{overview(self)}"

    def _repr_html_(self) -> str:
        from taciturn.evaluate.compare_report import as_html

        return as_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Comparison as JSON types."""
        pairing = self.pairing()
        solver, unit = self.plan.baseline or (None, None)
        return {
            "view": "owner",
            "source": self.source,
            "ratings_digest": self.ratings_digest,
            "delta": self.plan.delta,
            "seeds": list(self.plan.each_seed),
            "holdout": self.plan.holdout,
            "serve": self.plan.serve,
            "same_users": self.plan.same_users,
            "units": {unit: unit.facts.protects for unit in self.plan.units_shown},
            "compared_with": solver,
            "compared_with_unit": unit,
            "results": [_row(summary) for summary in self.summaries()],
            "runs": [asdict(cell) | _named(asdict(found)) for cell, found in self.results.items()],
        } | ({} if pairing is None else {"against": pairing.to_dict()})


def run_comparison(
    ratings: Ratings,
    plan: Plan,
    *,
    source: str = "ratings",
    folder: Path | None = None,
    threads: int | None = None,
    progress: Callable[[int, int, float], None] | bool = False,
    against: Comparison | Path | str | None = None,
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
    against
        Earlier comparison, or the path of its JSON document, to take paired differences from; see
        `Comparison.against`. It is checked before the first run.
    """
    check_ratings(ratings)
    validate.instance("plan", plan, Plan, "build one, such as Plan(solvers=('als', 'bias'))")
    validate.instance("source", source, str, "it is the name of the ratings")
    report, cache = _reported(progress), None
    earlier = None if against is None else _earlier(against)
    digest, pairs = ratings.digest(), ratings.pairs_digest()
    if earlier is not None:
        earlier.check(plan, pairs)
    if folder is not None:
        cache = CellCache(validate.path("folder", folder) / COMPARISON, is_private=True)
    split: tuple[int, Ratings, Ratings] | None = None
    facts = {cell: _facts(cell, plan, digest) for cell in plan.cells}
    found = {cell: cache.get(each, _measured) if cache else None for cell, each in facts.items()}
    missing = ordered(cell for cell, cached in found.items() if cached is None)
    done, times = len(found) - len(missing), CellTimes(missing)
    for number, cell in enumerate(missing):
        report(done + number, len(found), times.share)
        _logger.info("run %d of %d: %s", done + number + 1, len(found), _described(cell))
        begun = monotonic()
        if split is None or split[0] != cell.seed:
            split = (cell.seed, *_split(ratings, plan, cell.seed))
        fit, status = _fit(cell, plan, split[1], threads)
        predicts = predicts_ratings(cell.solver)
        measured = accuracy(fit, *split[1:], threads, predicts_ratings=predicts)
        if cache is not None:
            cache.put(facts[cell], asdict(cell) | asdict(measured) | {"status": status})
        found[cell] = measured, status
        times.add(cell, monotonic() - begun)
    report(len(found), len(found), 1.0)
    known = {cell: each for cell, each in found.items() if each is not None}
    return Comparison(
        plan=plan,
        source=source,
        results={cell: each[0] for cell, each in known.items()},
        statuses={(cell.solver, cell.unit): each[1] for cell, each in known.items()},
        ratings_digest=pairs,
        earlier=earlier,
    )


def _split(ratings: Ratings, plan: Plan, seed: int) -> tuple[Ratings, Ratings]:
    """Ratings to train on and to test on; users who are also public may be left out of the test."""
    train, test = random_split(ratings, plan.holdout, seed)
    if plan.same_users and ratings.public_ratings is not None:
        test = test.select(without_users_of(test, ratings.public_ratings))
        if len(test) == 0:
            raise InvalidParameter(
                "all held-out ratings are of users of the public ratings; leave out "
                f"{option('same_users', True)}"
            )
    return train, test


def _earlier(given: Comparison | Path | str) -> EarlierRuns:
    if isinstance(given, Comparison):
        return EarlierRuns.from_dict(given.to_dict(), f"the earlier comparison on {given.source}")
    return EarlierRuns.read(validate.path("against", given))


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
    """Solver and budget of a cell, which spends exactly its ε.

    One that costs nothing takes any budget.
    """
    name = "als" if cell.solver == PUBLIC else cell.solver
    solver: Solver = plan.make_solver(name, cell.unit)
    if cell.epsilon is None or cell.solver == PUBLIC:
        return solver, None
    budget = Budget.from_epsilon(cell.epsilon or max(plan.epsilons), plan.delta)
    return solver.spending(budget)


def _fit(
    cell: Cell, plan: Plan, train: Ratings, threads: int | None
) -> tuple[Fit | FactorModel, str]:
    """Fit of a cell, and the status that follows from its ledger."""
    solver, budget = _configured(cell, plan)
    if cell.solver == PUBLIC:
        return public_alone(train, solver, threads), PUBLIC
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
        "same_users": plan.same_users,
    }


def _measured(document: Any) -> tuple[Accuracy, str]:
    """Accuracy and status of a cached cell."""
    metrics = {name: document[name] for name in (*METRICS, "unknown_users", "unknown_items")}
    metrics |= {name: tuple(document[name]) for name in BAND_METRICS}
    return Accuracy(**metrics), str(document["status"])


def _mean(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    """Mean and standard error. Both None if a value is missing; no error for a single value."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None, None
    return fmean(known), stdev(known) / math.sqrt(len(known)) if len(known) > 1 else None


def _named(document: dict[str, Any]) -> dict[str, Any]:
    labels = METRICS | BAND_METRICS
    return {labels.get(name, name): value for name, value in document.items()}


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
    for name, label in BAND_METRICS.items():
        row[label] = list(summary.bands[name])
    if summary.difference:
        row["rmse_difference"], row["rmse_difference_error"] = summary.difference
    return row
