"""Small solvers and small sets of ratings."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from taciturn.accounting.budget import Budget
from taciturn.accounting.units import Unit
from taciturn.data import load
from taciturn.data.ratings import Ratings
from taciturn.mechanisms.gate import Gate
from taciturn.mechanisms.query import Executor, Released
from taciturn.queries.executor import LocalExecutor
from taciturn.solvers.catalog import CATALOG, make_solver
from taciturn.solvers.contract import Fit
from taciturn.solvers.solver import Solver

BUDGET = Budget.from_epsilon(10, 1e-5)


SOLVERS = [(name, unit) for name, entry in CATALOG.items() for unit in sorted(entry.units)]
"""Every solver with every unit that it supports."""


def small_solver(name: str, unit: Unit = Unit.VALUE, iterations: int = 3) -> Solver:
    """A solver with few factors and iterations."""
    options = {"factors": 2, "iterations": iterations}
    known = {key: value for key, value in options.items() if key in CATALOG[name].settings}
    solver: Solver = make_solver(name, unit=unit, **known)
    return solver


def random_ratings(
    seed: int = 0, users: int = 30, items: int = 20, density: float = 0.3, scale: str = "1:5:1"
) -> Ratings:
    """Ratings of random pairs, at least one of each user and item."""
    random = np.random.default_rng(seed)
    rated = random.random((users, items)) < density
    rated[np.arange(users), np.arange(users) % items] = True
    rated[np.arange(items) % users, np.arange(items)] = True
    rows, columns = np.nonzero(rated)
    frame = pl.DataFrame(
        {
            "user_id": rows + 1,
            "item_id": columns + 100,
            "rating": random.integers(1, 6, rows.size).astype(float),
        }
    )
    return load(frame, scale=scale)


def checkerboard(size: int = 50) -> tuple[Ratings, Ratings]:
    """Ratings of a checkerboard for training, and those held out.

    Users like items of their own parity and dislike the others. Two diagonals are held out.
    """
    rows, columns = (each.ravel() for each in np.indices((size, size)))
    values = np.where(rows % 2 == columns % 2, 5.0, 1.0)
    frame = pl.DataFrame({"user_id": rows, "item_id": columns, "rating": values})
    ratings = load(frame, scale="1:5:1")
    held_out = (ratings.rows() == ratings.by_user.columns) | (
        ratings.rows() == (ratings.by_user.columns + 1) % size
    )
    return ratings.select(~held_out), ratings.select(held_out)


def replaced(ratings: Ratings, place: int, value: float) -> Ratings:
    """Neighbour under `value`: one rating, in the order of `by_user`, replaced."""
    frame = ratings.to_frame()
    values = frame["rating"].to_numpy().copy()
    values[place] = value
    return load(frame.with_columns(rating=pl.Series(values)), scale=str(ratings.scale))


def numbers(fit: Fit) -> list[npt.NDArray[Any]]:
    """Every number of a fit, private ones included."""
    model = fit.model
    every = [model.users, model.items, fit.private_users, fit.private_items]
    profiles = [each for each in every if each is not None]
    arrays = [array for each in profiles for array in (each.biases, each.factors, each.interests)]
    return [np.array(model.mean), *(array for array in arrays if array is not None)]


def same(one: Fit, two: Fit) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(numbers(one), numbers(two), strict=True))


def close(one: Fit, two: Fit) -> bool:
    """True if all numbers agree within 10⁻⁴ of the largest in their array."""
    return all(
        np.abs(a - b).max(initial=0.0) <= 1e-4 * np.abs(b).max(initial=0.0)
        for a, b in zip(numbers(one), numbers(two), strict=True)
    )


def largest_changes(run: Callable[[Ratings], Fit], monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Largest change of each table over neighbours under `value`, as a fraction of its bound."""
    ratings = random_ratings(8, users=15, items=10)
    specs: list[Any] = []
    released = Gate.release

    def release(gate: Gate, spec: Any, executor: Executor, **options: Any) -> Released:
        specs.append(spec)
        return released(gate, spec, executor, **options)

    monkeypatch.setattr(Gate, "release", release)
    run(ratings)
    here = LocalExecutor(ratings)
    found = [0.0] * sum(len(spec.queries) for spec in specs)
    random = np.random.default_rng(0)
    for place in random.choice(len(ratings), size=10, replace=False):
        for value in (1.0, 5.0):
            there = LocalExecutor(replaced(ratings, int(place), value))
            changes = []
            for spec in specs:
                one, two = (each.values(spec.view).steps for each in (here, there))
                assert np.count_nonzero(one != two) <= 1
                tables = (each.answer(spec).tables for each in (here, there))
                for query, first, second in zip(spec.queries, *tables, strict=True):
                    change = float(np.linalg.norm((first - second).astype(float)))
                    changes.append(change / query.sensitivity)
            found = [max(pair) for pair in zip(found, changes, strict=True)]
    return found
