"""Cases for tests of audits: the real solvers, small."""

from typing import Any

from tacit.audit.worlds import EPSILON, PAPER_EPSILON, Case, audited_solver, worst_pair
from tacit.privacy.budget import Budget

SOUND = ("als", "gradient", "bias", "input-perturbation")

QUICK: dict[str, dict[str, Any]] = {
    "gradient": {"factors": 2, "iterations": 4},
    "input-perturbation": {"factors": 1, "iterations": 2},
}

CONFIDENCE = 1 - 1e-4
"""Of tests in which a sound solver must pass: all of them together alarm falsely in far less than
1 % of runs of the tests."""


def case(name: str, epsilon: float | None = None, solver: Any = None) -> Case:
    """Return the worst case that is known for a solver, with few iterations."""
    solver = solver or audited_solver(name, **QUICK.get(name, {}))
    epsilon = epsilon or (PAPER_EPSILON if name == "paper" else EPSILON)
    return Case(solver=solver, budget=Budget.from_epsilon(epsilon, 1e-5), pair=worst_pair(solver))
