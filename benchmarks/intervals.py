"""Held-out ratings within nominal 50 %, 80 % and 95 % intervals of `als --uncertainty`, δ = 1e-5.

Every unit and way of serving, on the datasets that are in TACITURN_DATA; means over three splits,
test noise. On a scale with a step, a rating counts with the share of the probability of its cell
that lies in the interval (`taciturn.coverage`). `sd` is the mean predictive standard deviation as a
multiple of the RMSE, and `farthest` the largest difference from a nominal coverage in points.
Coverages are exact, so owner-only.
"""

import os
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.report import Bar
from taciturn.accounting.budget import Budget
from taciturn.accounting.units import Unit
from taciturn.data import load
from taciturn.data.ratings import Ratings
from taciturn.data.splits import random_split
from taciturn.errors import TaciturnError
from taciturn.evaluate.matching import match
from taciturn.evaluate.metrics import coverage, rmse
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.solvers.als.solver import AlsSolver, Serve
from taciturn.solvers.contract import Session

EPSILONS = (1, 5, 10)
SETS = ("ml-100k", "ml-latest-small", "anime", "ml-1m", "netflix-slice.parquet")
SHARES = (0.5, 0.8, 0.95)
SPLITS = (41, 42, 43)
POINTS = 4.0

SERVED = (
    (Unit.VALUE, Serve.PROFILES),
    (Unit.VALUE, Serve.FOLD_IN),
    (Unit.RATING, Serve.PROFILES),
    (Unit.RATING, Serve.FOLD_IN),
    (Unit.USER, Serve.FOLD_IN),
)


def loaded(name: str) -> Ratings:
    """Dataset by name, or from a file in TACITURN_DATA."""
    if not name.endswith(".parquet"):
        return load(name)
    return load(Path(os.environ.get("TACITURN_DATA", "")) / name, scale="1:5:1")


def _known(test: Ratings, train: Ratings) -> Ratings:
    """Held-out ratings of users and items that have training ratings."""
    counts = train.pattern.by_user.counts, train.pattern.by_item.counts
    return test.select((counts[0][test.rows()] > 0) & (counts[1][test.by_user.columns] > 0))


def measure(ratings: Ratings, unit: Unit, serve: Serve, epsilon: float) -> dict[str, object]:
    """Mean coverages over the splits."""
    found, ratios = [], []
    for split in SPLITS:
        train, test = random_split(ratings, 0.1, split)
        test = _known(test, train)
        solver = AlsSolver(unit=unit, serve=serve, uncertainty=True)
        session = Session(noise=InsecureTestNoise(split))
        fit = solver.fit(train, Budget.from_epsilon(epsilon, 1e-5), session)
        found.append(coverage(fit, test, SHARES))
        matched = match(fit, test)
        rows = matched.users[test.rows()], matched.items[test.by_user.columns]
        deviations = matched.model.standard_deviation_rows(*rows).astype(np.float64)
        ratios.append(float(np.sqrt(np.mean(deviations**2))) / rmse(fit, test))
    means = np.mean(found, axis=0)
    row: dict[str, object] = {"unit": unit, "serve": serve, "epsilon": epsilon}
    row |= {f"within_{share}": round(means[n], 3) for n, share in enumerate(SHARES)}
    farthest = 100 * np.abs(means - np.array(SHARES)).max()
    return row | {"sd": round(float(np.mean(ratios)), 3), "farthest": round(float(farthest), 1)}


def _rows() -> Iterator[dict[str, object]]:
    for name in SETS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a repacked archive will do
                ratings = loaded(name)
        except TaciturnError as error:
            yield {"ratings": name, "left out": str(error)}
            continue
        for (unit, serve), epsilon in product(SERVED, EPSILONS):
            yield {"ratings": name} | measure(ratings, unit, serve, epsilon)


def run() -> list[dict[str, object]]:
    """One row for each dataset, unit, way of serving and ε."""
    return list(_rows())


def bars(rows: list[dict[str, object]]) -> list[Bar]:
    """Every coverage is within 4 points of its nominal value."""
    measured = [float(str(row["farthest"])) for row in rows if "farthest" in row]
    return [Bar.at_most("largest difference in points", max(measured, default=0.0), POINTS)]
