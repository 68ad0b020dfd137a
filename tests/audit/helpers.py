"""Small audit cases of the real solvers."""

from typing import Any

from taciturn.accounting.budget import Budget
from taciturn.accounting.units import Unit
from taciturn.audit.cases import EPSILON, PAPER_EPSILON, Case, audited_solver, worst_pair

SOUND = ("als", "gradient", "bias", "input-perturbation")

PRIVATE_PATTERN = (
    *("als:rating", "als:user", "bias:rating", "bias:user"),
    *("popularity:rating", "popularity:user"),
)
"""Sound solvers under units that protect the rating pattern, as solver:unit."""

QUICK: dict[str, dict[str, Any]] = {
    "gradient": {"factors": 2, "iterations": 4},
    "input-perturbation": {"factors": 1, "iterations": 2},
}

CONFIDENCE = 1 - 1e-4
"""Confidence for sound solvers: the false-positive rate of a test run is far below 1 %."""


def quick(name: str) -> Any:
    """Solver with few iterations, from `solver` (under unit `value`) or `solver:unit`."""
    solver, _, unit = name.partition(":")
    return audited_solver(solver, unit=unit or Unit.VALUE, **QUICK.get(name, {}))


def case(name: str, epsilon: float | None = None, solver: Any = None) -> Case:
    """Worst case known for a solver, with few iterations."""
    solver = solver or quick(name)
    epsilon = epsilon or (PAPER_EPSILON if name == "paper" else EPSILON)
    return Case(solver=solver, budget=Budget.from_epsilon(epsilon, 1e-5), pair=worst_pair(solver))
