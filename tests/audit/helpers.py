"""Cases for tests of audits: the real solvers, small."""

from typing import Any

from taciturn.accounting.budget import Budget
from taciturn.audit.worlds import EPSILON, PAPER_EPSILON, Case, audited_solver, worst_pair

SOUND = ("als", "gradient", "bias", "input-perturbation")

HIDDEN = ("als:rating", "als:user", "bias:rating", "bias:user")
"""Sound solvers under units that hide who rated what: the unit comes after a colon."""

QUICK: dict[str, dict[str, Any]] = {
    "gradient": {"factors": 2, "iterations": 4},
    "input-perturbation": {"factors": 1, "iterations": 2},
}

CONFIDENCE = 1 - 1e-4
"""Of tests in which a sound solver must pass: all of them together alarm falsely in far less than
1 % of runs of the tests."""


def quick(name: str) -> Any:
    """Return a solver with few iterations."""
    solver, _, unit = name.partition(":")
    return audited_solver(solver, unit=unit or None, **QUICK.get(name, {}))


def case(name: str, epsilon: float | None = None, solver: Any = None) -> Case:
    """Return the worst case that is known for a solver, with few iterations."""
    solver = solver or quick(name)
    epsilon = epsilon or (PAPER_EPSILON if name == "paper" else EPSILON)
    return Case(solver=solver, budget=Budget.from_epsilon(epsilon, 1e-5), pair=worst_pair(solver))
