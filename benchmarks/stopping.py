"""Stopping rules against the paper's numbers of iterations.

Trains with the paper's settings, well beyond its numbers of iterations, on MovieLens-1M and the
Netflix slice if they are in TACITURN_DATA, and computes when stopping rules of several kinds would
have stopped. `error` is the root mean square of the logarithm of the ratio to the paper's number,
which is the mean of figures 4 or 5 and of the two sweeps at the same configuration. Takes about ten
minutes; finished trainings are cached.
"""

import math
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import numpy.typing as npt

from taciturn.errors import TaciturnError
from taciturn.reproduction.cells import Cell, cost
from taciturn.reproduction.descents import Protocol
from taciturn.reproduction.figures import Settings, cells_of
from taciturn.reproduction.published import figure, published_iterations
from taciturn.reproduction.runner import run_cells
from taciturn.solvers.paper import has_settled

Errors = npt.NDArray[np.float64]
Rule = Callable[[Errors, float, int], bool]

BEYOND = 1.6
"""Length of a training, as a multiple of the paper's number of iterations."""

TOLERANCES = (0.0, 1e-6, 5e-6, 1e-5, 2e-5, 5e-5, 7e-5, 1e-4, 2e-4, 5e-4, 1e-3)
PATIENCES = (1, 2, 5, 10, 15, 20, 30, 50)


def run() -> list[dict[str, object]]:
    """Best two rules of each kind, with the iterations at which they stop."""
    wanted: dict[Cell, float] = {}
    for number in (4, 5):
        wanted |= dict(_targets(number))
    costs = {cell: cost(cell, cell.iterations or 0) for cell in wanted}
    try:
        traces = run_cells(costs.items())
    except TaciturnError as failure:
        return [{"left out": str(failure)}]
    runs = [(np.array(traces[cell].rmse), target) for cell, target in wanted.items()]
    rows: list[dict[str, object]] = []
    for name, rule in RULES.items():
        tried = []
        for tolerance, patience in product(TOLERANCES, PATIENCES):
            ends = [_end(rule, errors, tolerance, patience) for errors, _ in runs]
            gaps = [math.log(end / target) for end, (_, target) in zip(ends, runs, strict=True)]
            error = math.sqrt(sum(gap**2 for gap in gaps) / len(gaps))
            tried.append((error, tolerance, patience, ends))
        rows += [
            {
                "rule": name,
                "tolerance": tolerance,
                "patience": patience,
                "error": round(error, 3),
                "iterations": ends,
            }
            for error, tolerance, patience, ends in sorted(tried)[:2]
        ]
    rows.append({"rule": "the paper", "iterations": [round(target) for _, target in runs]})
    return rows


def _targets(number: int) -> Iterator[tuple[Cell, float]]:
    """Trainings that are longer than the paper's, with its number of iterations."""
    for cell in cells_of(figure(number), Settings()):
        epsilon_i = cell.configuration.epsilon_i or math.nan
        if cell.held_out:
            continue
        counts = [published_iterations(figure(number), "rmse", epsilon_i)]
        if epsilon_i >= 0.2:  # the smallest in the sweeps
            series = f"eps_i={epsilon_i:.2f}"
            counts.append(published_iterations(figure(number + 6), series, 20))
            counts.append(published_iterations(figure(number + 18), series, 5e-4))
        target = sum(counts) / len(counts)
        longer = Cell(
            data=cell.data,
            protocol=Protocol.AS_RUN,
            configuration=cell.configuration,
            iterations=math.ceil(BEYOND * target),
            seed=cell.seed,
            held_out=False,
        )
        yield longer, target


def _end(rule: Rule, errors: Errors, tolerance: float, patience: int) -> int:
    """Iteration at which a rule stops; slightly beyond the end if it does not."""
    for length in range(patience + 2, errors.size + 1):
        if rule(errors[:length], tolerance, patience):
            return length
    return math.ceil(1.2 * errors.size)


def _fall(errors: Errors, tolerance: float, patience: int) -> bool:
    return bool(errors[-patience - 1] - errors[-1] < tolerance)


def _means(errors: Errors, tolerance: float, patience: int) -> bool:
    if errors.size < 2 * patience:
        return False
    earlier, later = errors[-2 * patience : -patience], errors[-patience:]
    return bool(earlier.mean() - later.mean() < tolerance)


def _small_falls(errors: Errors, tolerance: float, patience: int) -> bool:
    return bool((-np.diff(errors[-patience - 1 :]) < tolerance).all())


RULES: dict[str, Rule] = {
    "least of the last against least before": has_settled,
    "fall over a window": _fall,
    "means of two windows": _means,
    "consecutive small falls": _small_falls,
}
