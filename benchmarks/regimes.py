"""Few users, few ratings, many items, a wide scale: what more budget and a weaker unit change.

Subsamples of public datasets, and synthetic ratings from 1 to 100, trained by `als` and `bias` at
ε = 0.5 to 20 under every unit; datasets that are not in TACITURN_DATA are left out. `als fold-in`
serves users by folding in. Means over seeds, each a split (a tenth is held out) and its test noise.
`rise` is the relative increase of the error over the next smaller ε, `to_bias` and `to_mean` the
errors divided by that of `bias` and by that of the training ratings' mean, `to_weaker` the decrease
under this unit relative to the next weaker one, when users fold in under both. Each has its
standard error over seeds. A cell violates a requirement if it misses the bound by more than two
standard errors.
"""

import hashlib
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import numpy.typing as npt

import taciturn
from benchmarks.regime_sources import SOURCES
from benchmarks.report import Bar, Row
from taciturn import _core
from taciturn._internal.cell_cache import CellCache
from taciturn._internal.processes import job_count, run_tasks
from taciturn.accounting.budget import Budget
from taciturn.data.ratings import Ratings
from taciturn.data.splits import random_split
from taciturn.evaluate.metrics import held_out_error
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.solvers.catalog import make_solver
from taciturn.solvers.contract import Session

EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
SEEDS = 10
UNITS = ("value", "rating", "user")
ALS, FOLD_IN, BIAS = "als", "als fold-in", "bias"
SOLVERS = (ALS, FOLD_IN, BIAS)
DELTA = 1e-5
HOLDOUT = 0.1
BOUND = 1.005
CELLS = Path(__file__).parent / "results" / "regimes"

Errors = npt.NDArray[np.float64]
"""An error for each seed."""


@dataclass(frozen=True)
class Task:
    """One source, budget and seed; every unit and solver is trained on it."""

    source: str
    epsilon: float
    seed: int


@lru_cache(maxsize=1)
def _loaded(source: str) -> Ratings:
    return SOURCES[source].load()


@cache
def _version() -> str:
    """SHA-256 of the package, so that cells of other versions are not used."""
    package = Path(taciturn.__file__).parent
    files = [*sorted(package.rglob("*.py")), Path(_core.__file__), Path(__file__)]
    files.append(Path(__file__).with_name("regime_sources.py"))
    return hashlib.sha256(b"".join(each.read_bytes() for each in files)).hexdigest()


def measure(task: Task) -> dict[str, float]:
    """RMSE of each unit and solver, and of the mean training rating, on held-out ratings."""
    facts = {"version": _version(), **asdict(task)}
    cells = CellCache(CELLS)
    found = cells.get(facts, dict)
    if found is None:
        found = _measured(task)
        cells.put(facts, found)
    return found


def _measured(task: Task) -> dict[str, float]:
    train, test = random_split(_loaded(task.source), HOLDOUT, task.seed)
    mean = train.values().mean(dtype=np.float64)
    found = {"mean": float(np.sqrt(np.mean((test.values() - mean) ** 2)))}
    budget = Budget.from_epsilon(task.epsilon, DELTA)
    for unit, name in product(UNITS, SOLVERS):
        if unit == "user" and name == ALS:
            continue  # users always fold in
        serve = {"serve": "fold-in"} if name == FOLD_IN else {}
        solver = make_solver(name.partition(" ")[0], unit=unit, **serve)
        noise = InsecureTestNoise(task.seed)  # the same in every run, so that results repeat
        fit = solver.fit(train, budget, Session(seed=task.seed, threads=1, noise=noise))
        found[f"{unit}:{name}"] = held_out_error(fit, test).rmse
    return found


def run(*, seeds: int = SEEDS, only: Sequence[str] = ()) -> list[Row]:
    """One row for each source, unit, solver and ε, then a row with all violations.

    `only` names some of the sources. Finished trainings are cached, so an interrupted run resumes.
    """
    names = only or tuple(SOURCES)
    if unknown := set(names) - SOURCES.keys():
        sys.exit(
            f"there is no source {', '.join(sorted(unknown))}; choose from {', '.join(SOURCES)}"
        )
    sources = [name for name in names if SOURCES[name].is_at_hand]
    tasks = [Task(*each) for each in product(sources, EPSILONS, range(seeds))]
    found: dict[Task, dict[str, float]] = {}

    def done(task: Task, errors: dict[str, float]) -> None:
        found[task] = errors
        print(f"{len(found)} of {len(tasks)}: {task}", file=sys.stderr, flush=True)

    run_tasks(measure, tasks, job_count(None), done)
    rows: list[Row] = [row for name in sources for row in _rows(_Errors(name, seeds, found))]
    rows.append({"violations": _summary(rows)})
    if absent := [name for name in names if name not in sources]:
        rows.append({"left out, because the dataset is absent": ", ".join(absent)})
    return rows


@dataclass(frozen=True)
class _Errors:
    """Errors of one source."""

    source: str
    seeds: int
    found: dict[Task, dict[str, float]]

    def of(self, epsilon: float, name: str) -> Errors:
        """Errors of each seed under a name that `measure` gives."""
        tasks = [Task(self.source, epsilon, seed) for seed in range(self.seeds)]
        return np.array([self.found[task][name] for task in tasks])


_BOUNDS = {"rise": 0.0, "to_weaker": 0.0, "to_bias": BOUND, "to_mean": BOUND}
"""Requirements on `als`: the maximum of each statistic."""


def _rows(errors: _Errors) -> Iterator[Row]:
    before = dict(pairwise(EPSILONS))
    before = {later: earlier for earlier, later in before.items()}
    weaker = {stronger: each for each, stronger in pairwise(UNITS)}
    for unit, name, epsilon in product(UNITS, SOLVERS, EPSILONS):
        if unit == "user" and name == ALS:
            continue
        own = errors.of(epsilon, f"{unit}:{name}")
        statistics: dict[str, Errors] = {"to_mean": own / errors.of(epsilon, "mean")}
        if name != BIAS:
            statistics["to_bias"] = own / errors.of(epsilon, f"{unit}:{BIAS}")
        if epsilon in before:
            statistics["rise"] = own / errors.of(before[epsilon], f"{unit}:{name}") - 1
        if name == FOLD_IN and unit in weaker:
            statistics["to_weaker"] = 1 - own / errors.of(epsilon, f"{weaker[unit]}:{name}")
        row: Row = {"source": errors.source, "unit": unit, "solver": name, "epsilon": epsilon}
        row["rmse"] = round(float(own.mean()), 4)
        violated = []
        for statistic, bound in _BOUNDS.items():
            values = statistics.get(statistic)
            mean, error = ("", "") if values is None else _mean(values)
            row[statistic], row[f"{statistic}_error"] = mean, error
            if name != BIAS and values is not None and _excess(row, statistic) > bound:
                violated.append(statistic)
        row["violates"] = ", ".join(violated)
        yield row


def _mean(values: Errors) -> tuple[float, float]:
    """Mean and standard error; the latter is 0 for a single seed."""
    error = values.std(ddof=1) / math.sqrt(values.size) if values.size > 1 else 0.0
    return round(float(values.mean()), 5), round(float(error), 5)


def _excess(row: Row, statistic: str) -> float:
    """Statistic less two standard errors."""
    return float(str(row[statistic])) - 2 * float(str(row[f"{statistic}_error"]))


def _summary(rows: list[Row]) -> str:
    """All violations in one line."""
    found = [
        f"{row['source']} {row['unit']} {row['solver']} ε={row['epsilon']:g} "
        f"{statistic} {row[statistic]:+.4f} ± {row[f'{statistic}_error']:.4f}"
        for row in rows
        for statistic in str(row["violates"]).split(", ")
        if statistic
    ]
    return f"{len(found)} of {len(rows)} rows: {'; '.join(found)}" if found else "none"


def bars(rows: list[Row]) -> list[Bar]:
    """Every statistic of `als`, less two standard errors, is within its bound."""
    return [
        Bar.at_most(
            f"largest {statistic} of als, less two standard errors",
            round(max(values), 5),
            bound,
        )
        for statistic, bound in _BOUNDS.items()
        if (
            values := [
                _excess(row, statistic)
                for row in rows
                if row.get(statistic, "") != "" and row["solver"] != BIAS
            ]
        )
    ]
