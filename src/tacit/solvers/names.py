"""Solvers by name."""

from dataclasses import fields
from typing import Any

from tacit.errors import InvalidParameter
from tacit.solvers.als import AlsSolver
from tacit.solvers.bias import BiasSolver, NonPrivateBiasSolver
from tacit.solvers.contract import Solver
from tacit.solvers.gradient import GradientSolver, NonPrivateGradientSolver
from tacit.solvers.input_perturbation import InputPerturbationSolver
from tacit.solvers.non_private import NonPrivateSolver
from tacit.solvers.paper import PaperSolver

SOLVERS: dict[str, type[Any]] = {
    kind.name: kind
    for kind in (
        AlsSolver,
        GradientSolver,
        PaperSolver,
        BiasSolver,
        InputPerturbationSolver,
        NonPrivateSolver,
        NonPrivateGradientSolver,
        NonPrivateBiasSolver,
    )
}


def make_solver(name: str, **options: Any) -> Solver:
    """Return the solver of a name with some options; those that are None keep their default."""
    if name not in SOLVERS:
        raise InvalidParameter(f"solver must be one of {', '.join(SOLVERS)}, got {name!r}")
    kind = SOLVERS[name]
    given = {option: value for option, value in options.items() if value is not None}
    unknown = given.keys() - {field.name for field in fields(kind)}
    if unknown:
        raise InvalidParameter(f"the solver {name} has no option {sorted(unknown)[0]!r}")
    solver: Solver = kind(**given)
    return solver
