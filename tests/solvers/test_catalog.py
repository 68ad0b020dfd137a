"""The catalog of solvers is complete and refuses unknown names, options and units."""

import pkgutil
from importlib import import_module
from typing import Any

import pytest

import tests.solvers
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidParameter
from taciturn.solvers.catalog import CATALOG, make_solver, solvers_of_all_units
from taciturn.solvers.contract import Session
from tests.solvers.contract import SolverContract
from tests.solvers.helpers import BUDGET, random_ratings


def contracts() -> set[tuple[str, Unit]]:
    """Solvers and units that have a contract test class."""
    for module in pkgutil.walk_packages(tests.solvers.__path__, "tests.solvers."):
        import_module(module.name)
    waiting, found = [SolverContract], set()
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__name__.startswith("Test"):
            found.add((kind.name, kind.unit))
    return found


def test_every_solver_has_contract_tests_under_every_unit() -> None:
    assert contracts() == {(name, unit) for name, entry in CATALOG.items() for unit in entry.units}


def test_unknown_names_and_options_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="one of als"):
        make_solver("magic")
    with pytest.raises(InvalidParameter, match="no setting factors"):
        make_solver("bias", factors=3)
    with pytest.raises(InvalidParameter, match="no setting interest"):
        make_solver("popularity", interest=False)


def test_units_that_a_solver_does_not_support_are_refused() -> None:
    assert solvers_of_all_units() == ["als", "bias"]
    with pytest.raises(InvalidParameter, match='gradient supports unit="value" only; als and bias'):
        make_solver("gradient", unit="user")
    with pytest.raises(InvalidParameter, match="not private, so unit does not apply"):
        make_solver("non-private", unit="rating")
    assert make_solver("gradient", unit="value") == make_solver("gradient")
    assert make_solver("bias", unit="rating").unit is Unit.RATING


@pytest.mark.parametrize("name", CATALOG)
def test_the_default_unit_is_rating_where_the_solver_supports_it(name: str) -> None:
    supports = Unit.RATING in CATALOG[name].units
    assert supports == (name in ("als", "bias", "popularity"))
    expected = Unit.RATING if supports else Unit.VALUE
    assert CATALOG[name].load()().unit is make_solver(name).unit is expected


@pytest.mark.parametrize("seed", [-1, True, 2**63, 0.5])
def test_seeds_out_of_range_are_refused(seed: Any) -> None:
    with pytest.raises(InvalidParameter, match="seed"):
        Session(seed=seed)


@pytest.mark.parametrize("name", ["paper", "als"])
def test_the_repr_of_a_fit_shows_no_numbers(name: str) -> None:
    """Some numbers of a fit are private, and notebooks print return values."""
    fit = make_solver(name, iterations=3, factors=2).fit(random_ratings(), BUDGET)
    status = fit.ledger.status.value
    assert repr(fit) == f"Fit(solver={name!r}, status={status!r})"
    assert "array" not in repr(fit.model.users) and "array" not in repr(fit.model)
