"""Memory that a training needs, estimated before it starts. Owner-only."""

from taciturn._internal import memory
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.solvers.als.public_model import most_factors
from taciturn.solvers.solver import Solver

_BASE = 48 * 2**20
"""Libraries that are loaded on first use, and buffers of threads, in bytes."""

_WIDTH = 28
"""Number of columns of a profile if the solver chooses it: biases, factors and features."""

_PER_RATING = 24
"""Bytes for each rating: its value on a grid, its residual and its order by item."""

_TABLES = 4
"""Number of tables as wide as the profiles that are in memory at a time."""

_KEPT = 10
"""The same for `als` under unit `value`, which keeps the noisy sums of all rounds."""

_SQUARES, _PER_PUBLIC = 4, 48
"""Number of tables of squares of public rows in memory at a time, and bytes for each public rating:
its value and its place, along both axes."""


def estimated_memory(ratings: Ratings, solver: Solver) -> int:
    """Bytes that training needs beyond the ratings and the process as it is now.

    An estimate from the numbers of users, items and ratings, so it is owner-only. It errs on the
    high side; tests/training/test_memory.py compares it with trainings.
    """
    keeps_sums = solver.name == "als" and solver.unit == Unit.VALUE
    factors = solver.settings.get("factors")
    width = _WIDTH if factors is None else factors + 8
    if solver.uses_item_features and ratings.item_features is not None:
        width += len(ratings.item_features.columns)
    tables = 8 * width * sum(ratings.shape) * (_KEPT if keeps_sums else _TABLES)
    entries = _PER_RATING * len(ratings) * (2 if keeps_sums else 1)
    return _BASE + tables + entries + _public_memory(ratings, solver)


def _public_memory(ratings: Ratings, solver: Solver) -> int:
    """Bytes of the model of public ratings: squares of rows, a few at a time, and the ratings."""
    if not solver.uses_public_ratings or ratings.public_ratings is None:
        return 0
    public = ratings.public_ratings.ratings
    width = 2 + most_factors(len(public))
    return _SQUARES * 8 * width**2 * sum(public.shape) + _PER_PUBLIC * len(public)


def check_memory(ratings: Ratings, solver: Solver) -> None:
    """Raise `OutOfMemory` if the estimate exceeds a limit, before anything is created."""
    memory.require(estimated_memory(ratings, solver), "training")
