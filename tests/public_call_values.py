"""Values for valid calls of public functions and classes, and a collection of such calls."""

import inspect
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

import taciturn
from tests.accounting.test_ledger import ITEMS
from tests.solvers.helpers import random_ratings

BUDGET = taciturn.Budget.from_epsilon(2, 1e-5)
RATINGS = random_ratings(1, users=8, items=6)
SMALL = RATINGS.select(np.arange(len(RATINGS)) < 3)

ORDER: dict[str, Any] = {"by": "rating", "popularity_weight": 1.0, "explain": True}
"""Order of a list, for every method that makes one."""

NEW = object()
"""Stands for a path at which nothing exists yet."""


@cache
def fit() -> taciturn.Fit:
    """With variances, so that every method of a recommender can be called."""
    solver = taciturn.AlsSolver(unit="value", factors=1, iterations=1, uncertainty=True)
    return solver.fit(RATINGS, BUDGET)


@cache
def ledger() -> taciturn.Ledger:
    return taciturn.Ledger([ITEMS])


@cache
def certificate() -> taciturn.Certificate:
    return taciturn.Certificate.from_ledger(ledger(), 1e-5)


@dataclass
class Calls:
    """Valid arguments of every public function, class and method. Files are in the work folder."""

    made: dict[str, tuple[Any, dict[str, Any]]] = field(default_factory=dict)

    def add(self, name: str, what: Any, /, **arguments: Any) -> None:
        self.made[name] = what, arguments


def names_of(kind: type) -> list[str]:
    return list(inspect.signature(kind).parameters)
