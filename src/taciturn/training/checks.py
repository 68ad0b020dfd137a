"""Checks before a training starts and before its release is written."""

from taciturn._internal import validate
from taciturn._internal.spelling import option
from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings, check_ratings
from taciturn.errors import BudgetExceeded, InvalidParameter
from taciturn.solvers.catalog import check_configuration
from taciturn.solvers.solver import Solver, check_budget, check_solver


def check_arguments(ratings: object, solver: Solver, budget: object, **flags: object) -> None:
    """Raise unless these are ratings, a solver with valid settings, a budget, and true or false."""
    check_ratings(ratings)
    check_solver(solver)
    check_budget(budget)
    for name, value in flags.items():
        validate.flag(name, value)
    check_configuration(solver.name, solver.settings)


def check_pattern(ratings: Ratings, solver: Solver, pattern_is_public: bool) -> None:
    """Raise under unit `value`, where the rating pattern is public, if it depends on values."""
    is_exposed = solver.is_private and solver.unit is Unit.VALUE and not pattern_is_public
    if is_exposed and ratings.preparation.is_pattern_from_values:
        raise InvalidParameter(
            "unit value publishes the rating pattern, which here depends on rating values: ratings "
            "outside the scale are dropped, or the ratings are a sparse matrix, which cannot hold "
            f"a 0; pass {option('outside', 'clip')} or {option('unit', 'rating')}, or "
            f"{option('pattern_is_public', True)} if the pattern is "
            "public"
        )


def check_within(certificate: Certificate, budget: Budget | None) -> None:
    """Raise if a certificate exceeds the budget, so that a bug cannot reach a release."""
    if budget is None:
        return
    if certificate.epsilon is not None and certificate.epsilon > budget.epsilon:
        raise BudgetExceeded(
            "the training spent more than its budget, so no release was written; this is a bug in "
            "Taciturn: please report it"
        )
