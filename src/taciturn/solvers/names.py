"""Solvers by name."""

from dataclasses import fields
from typing import Any

from taciturn._internal import validate
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidParameter
from taciturn.solvers.als.solver import AlsSolver
from taciturn.solvers.bias import BiasSolver, NonPrivateBiasSolver
from taciturn.solvers.contract import Solver
from taciturn.solvers.gradient import GradientSolver, NonPrivateGradientSolver
from taciturn.solvers.input_perturbation import InputPerturbationSolver
from taciturn.solvers.non_private import NonPrivateSolver
from taciturn.solvers.paper import PaperSolver

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


UNITS = tuple(name for name, kind in SOLVERS.items() if hasattr(kind, "unit") and kind.is_private)
"""Solvers that know every unit; others know `value`."""


def unit_option(name: str, unit: str | Unit) -> dict[str, Unit]:
    """Return the option that makes a solver protect a unit, none for the usual one, or raise."""
    unit = validate.choice("unit", unit, Unit)
    if unit is Unit.VALUE:
        return {}
    if name in SOLVERS and name not in UNITS:
        known = f"{' and '.join(UNITS)} know {unit}"
        if not SOLVERS[name].is_private:
            raise InvalidParameter(f"{name} hides nothing, whatever the unit; {known}")
        raise InvalidParameter(f"{name} knows unit value only; {known}")
    return {"unit": unit}


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
