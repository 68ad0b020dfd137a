"""Small data and small budgets: `als` and `bias` against saying nothing.

Synthetic ratings, 100 to 100,000 of them, dense (half of all pairs) and sparse (three for each
user), with budgets from ε = 0.01 to 20 under every unit. Errors are measured on 20,000 fresh
ratings from the same source. `to_middle` is the mean over seeds of the RMSE divided by that of the
middle of the scale, `to_bias` that of `als` divided by that of `bias`, each with its one-sided 95 %
upper confidence bound.
"""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.stats import t

from benchmarks.report import Bar
from taciturn._internal.processes import job_count, run_tasks
from taciturn.accounting.budget import Budget
from taciturn.data import load
from taciturn.data.id_lists import with_id_lists
from taciturn.data.ratings import Ratings
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.solvers.catalog import make_solver
from taciturn.solvers.contract import Session

SIZES = (100, 1_000, 10_000, 100_000)
EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
SEEDS = 20
UNITS = ("value", "rating", "user")
SOLVERS = ("als", "bias")
DELTA = 1e-5
FRESH = 20_000
BOUND = 1.01

FACTORS = 8


@dataclass(frozen=True)
class Task:
    """One source and one budget; every unit and solver is trained on it."""

    ratings: int
    is_dense: bool
    epsilon: float
    seed: int


class Source:
    """Ratings with biases, factors and noise; popularity and activity have long tails."""

    def __init__(self, ratings: int, is_dense: bool, seed: int) -> None:
        self._random = np.random.default_rng([seed, ratings, is_dense])
        self.ratings = ratings
        if is_dense:
            self.items = round(math.sqrt(ratings))
            self.users = 2 * self.items
        else:
            self.users, self.items = ratings // 3, max(10, ratings // 30)
        random = self._random
        popularity = random.permutation(1 / (np.arange(self.items) + 0.02 * self.items + 1))
        activity = random.lognormal(0.0, 1.0 if is_dense else 0.5, self.users)
        self._popularity = popularity / popularity.sum()
        self._activity = activity / activity.sum()
        self._item_bias = random.normal(0, 0.45, self.items) + 0.1 * np.log(
            popularity / popularity.mean()
        )
        self._user_bias = random.normal(0, 0.45, self.users)
        self._item_factors = random.normal(0, 1, (self.items, FACTORS)) / math.sqrt(FACTORS)
        self._user_factors = random.normal(0, 0.7, (self.users, FACTORS))

    def pairs(self, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Pairs of users and items, drawn with repetition."""
        users = self._random.choice(self.users, count, p=self._activity)
        items = self._random.choice(self.items, count, p=self._popularity)
        return users, items

    def rate(
        self, users: npt.NDArray[np.int64], items: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        """Fresh ratings of pairs."""
        score = 3.6 + self._item_bias[items] + self._user_bias[users]
        score += (self._item_factors[items] * self._user_factors[users]).sum(axis=1)
        score += self._random.normal(0, 0.8, users.size)
        return np.asarray(np.clip(np.rint(score), 1, 5))

    def train(self) -> Ratings:
        """Ratings to train on; every user and item is listed, rated or not."""
        codes = np.empty(0, dtype=np.int64)
        while codes.size < self.ratings:
            users, items = self.pairs(2 * self.ratings)
            codes = np.unique(np.concatenate([codes, users * self.items + items]))
        codes = np.sort(self._random.permutation(codes)[: self.ratings])
        users, items = codes // self.items, codes % self.items
        frame = pl.DataFrame(
            {"user_id": users, "item_id": items, "rating": self.rate(users, items)}
        )
        ratings = load(frame, scale="1:5:1")
        return with_id_lists(ratings, users=range(self.users), items=range(self.items))


def measure(task: Task) -> dict[str, float]:
    """RMSE of each unit and solver, and of the middle of the scale, on fresh ratings."""
    source = Source(task.ratings, task.is_dense, task.seed)
    ratings = source.train()
    users, items = source.pairs(FRESH)
    values = source.rate(users, items)
    budget = Budget.from_epsilon(task.epsilon, DELTA)
    found = {"middle": float(np.sqrt(np.mean((values - 3) ** 2)))}
    for unit, name in product(UNITS, SOLVERS):
        solver = make_solver(name, unit=unit)
        noise = InsecureTestNoise(task.seed)  # the same in every run, so that results repeat
        fit = solver.fit(ratings, budget, Session(seed=task.seed, threads=1, noise=noise))
        predicted = fit.owner_model.predict_rows(users, items)
        found[f"{unit}:{name}"] = float(np.sqrt(np.mean((predicted - values) ** 2)))
    return found


def run() -> list[dict[str, object]]:
    """One row for each size, density, unit and ε."""
    tasks = [
        Task(ratings, is_dense, epsilon, seed)
        for ratings, is_dense, epsilon, seed in product(
            reversed(SIZES), (True, False), EPSILONS, range(SEEDS)
        )
    ]
    found: dict[Task, dict[str, float]] = {}
    run_tasks(measure, tasks, job_count(None), found.__setitem__)
    return [
        _row(ratings, is_dense, unit, epsilon, found)
        for ratings, is_dense, unit, epsilon in product(SIZES, (True, False), UNITS, EPSILONS)
    ]


def _row(
    ratings: int, is_dense: bool, unit: str, epsilon: float, found: dict[Task, dict[str, float]]
) -> dict[str, object]:
    cells = [found[Task(ratings, is_dense, epsilon, seed)] for seed in range(SEEDS)]
    pairs = {
        "als_to_middle": (f"{unit}:als", "middle"),
        "bias_to_middle": (f"{unit}:bias", "middle"),
        "als_to_bias": (f"{unit}:als", f"{unit}:bias"),
    }
    row: dict[str, object] = {
        "ratings": ratings,
        "density": "dense" if is_dense else "sparse",
        "unit": unit,
        "epsilon": epsilon,
    }
    for name, (one, other) in pairs.items():
        ratios = np.array([cell[one] / cell[other] for cell in cells])
        half = t.ppf(0.95, SEEDS - 1) * ratios.std(ddof=1) / math.sqrt(SEEDS)
        row[name] = round(float(ratios.mean()), 4)
        row[f"{name}_upper"] = round(float(ratios.mean() + half), 4)
    return row


def bars(rows: list[dict[str, object]]) -> list[Bar]:
    """Every upper confidence bound is at most 1.01."""
    return [
        Bar.at_most(
            f"largest {name}_upper", max(float(str(row[f"{name}_upper"])) for row in rows), BOUND
        )
        for name in ("als_to_middle", "bias_to_middle", "als_to_bias")
    ]
