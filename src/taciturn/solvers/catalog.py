"""The catalog of solvers: one entry for each, by name.

Commands, comparisons and audits read names and options here, and a release is checked against the
entry of its solver. Pure Python: a solver is imported only when it is made. A test compares every
entry with its class.
"""

import re
from collections.abc import Mapping
from typing import Any

from taciturn._internal import validate
from taciturn.accounting.ledger import Ledger, Status
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.solvers.entry import Entry, Kind, Setting
from taciturn.solvers.flaws import FLAWS

_COUNT, _NUMBER, _FLAG = Setting(Kind.COUNT), Setting(Kind.NUMBER), Setting(Kind.FLAG)
_UNIT, _CENTRE = Setting(Kind.UNIT), Setting(Kind.CENTRE)
_SOME_COUNT, _SOME_NUMBER, _SOME_FLAG = (
    Setting(kind, is_optional=True) for kind in (Kind.COUNT, Kind.NUMBER, Kind.FLAG)
)

_N = "[1-9][0-9]{0,5}"
_VALUE = (
    f"(biases|round {_N} of {_N}): "
    "(residuals by (item|user)|squares of residuals|residuals|clipped residuals)"
)
_RATING = (
    "numbers of ratings by (item|user)|sums of ratings and of their squares|"
    f"step {_N} of {_N}, (sums by (item|user)|sum of squares)"
)
_USER = (
    "weights of items|number of users, sums of their means|"
    f"step {_N} of {_N}, (sums by item|products of features|mean squares)"
)
_GRADIENT = re.compile(f"gradient {_N} of {_N}, sums by (item|user)")
_SUMS = r"sums of ratings by (item|user)"
_DESCENT = {
    "factors": _COUNT,
    "iterations": _COUNT,
    "step_size": _NUMBER,
    "regularization": _NUMBER,
    "averaged": _NUMBER,
}
_SQUARES = {"factors": _COUNT, "iterations": _COUNT, "regularization": _NUMBER}
_BIAS = {"unit": _UNIT, "regularization": _NUMBER}

CATALOG: Mapping[str, Entry] = {
    "als": Entry(
        home="als.solver:AlsSolver",
        status=Status.PROVEN,
        settings={
            "unit": _UNIT,
            "factors": _SOME_COUNT,
            "iterations": _SOME_COUNT,
            "mask_features": _SOME_FLAG,
            "uncertainty": _FLAG,
        },
        purposes=re.compile(f"{_VALUE}|{_RATING}|{_USER}"),
        proofs=frozenset({"als.md#claim", "rating.md#claim", "user.md#claim"}),
        units=frozenset(Unit),
    ),
    "gradient": Entry(
        home="gradient:GradientSolver",
        status=Status.PROVEN,
        settings=_DESCENT,
        purposes=_GRADIENT,
        proofs=frozenset({"gradient.md#claim"}),
    ),
    "paper": Entry(
        home="paper:PaperSolver",
        status=Status.CLAIMED,
        settings={
            "factors": _COUNT,
            "iterations": _COUNT,
            "step_size": _NUMBER,
            "regularization": _NUMBER,
            "norm_bound": _NUMBER,
            "epsilon_i": _SOME_NUMBER,
            "delta_i": _NUMBER,
            "delta": _NUMBER,
            "centre": _CENTRE,
            "tau": _SOME_NUMBER,
            "tolerance": _SOME_NUMBER,
            "patience": _COUNT,
        },
        purposes=re.compile(f"gradient of the user profiles, iteration {_N}"),
        proofs=frozenset({"paper-gap.md#what-is-claimed"}),
        flaws=FLAWS,
    ),
    "bias": Entry(
        home="bias:BiasSolver",
        status=Status.PROVEN,
        settings=_BIAS,
        purposes=re.compile(f"{_SUMS}|{_RATING}|{_USER}"),
        proofs=frozenset({"grid.md#sensitivity", "rating.md#claim", "user.md#claim"}),
        units=frozenset(Unit),
    ),
    "input-perturbation": Entry(
        home="input_perturbation:InputPerturbationSolver",
        status=Status.PROVEN,
        settings=_SQUARES,
        purposes=re.compile("every rating"),
        proofs=frozenset({"grid.md#sensitivity"}),
    ),
    "non-private": Entry(
        home="non_private:NonPrivateSolver",
        status=Status.NONE,
        settings=_SQUARES,
        purposes=re.compile("profiles of users and items"),
    ),
    "non-private-gradient": Entry(
        home="gradient:NonPrivateGradientSolver",
        status=Status.NONE,
        settings=_DESCENT,
        purposes=_GRADIENT,
    ),
    "non-private-bias": Entry(
        home="bias:NonPrivateBiasSolver",
        status=Status.NONE,
        settings=_BIAS,
        purposes=re.compile(_SUMS),
    ),
}


def make_solver(name: str, *, unit: Unit | str | None = None, **options: Any) -> Any:
    """The solver of a name with some settings; those that are None keep their default.

    `unit` is the privacy unit, for solvers that support several.
    """
    if name not in CATALOG:
        raise InvalidParameter(f"solver must be one of {', '.join(CATALOG)}, got {name!r}")
    entry = CATALOG[name]
    given = {option: value for option, value in options.items() if value is not None}
    if unit is not None:
        unit = validate.choice("unit", unit, Unit)
        _check_unit(name, entry, unit)
        if "unit" in entry.settings:
            given["unit"] = unit
    unknown = given.keys() - entry.settings.keys()
    if unknown:
        raise InvalidParameter(f"the solver {name} has no option {sorted(unknown)[0]!r}")
    return entry.load()(**given)


def _check_unit(name: str, entry: Entry, unit: Unit) -> None:
    if unit in entry.units:
        return
    known = f"{' and '.join(solvers_of_all_units())} support {unit}"
    if not entry.is_private:
        raise InvalidParameter(f"{name} is not private, so --unit does not apply; {known}")
    raise InvalidParameter(f"{name} supports unit value only; {known}")


def solvers_of_all_units() -> list[str]:
    """Names of private solvers that support every privacy unit."""
    return [name for name, entry in CATALOG.items() if entry.supports_all_units]


def check_configuration(name: object, settings: Mapping[str, Any]) -> Entry:
    """Entry of a solver; raises unless a release may name it with these settings."""
    entry = CATALOG.get(name) if isinstance(name, str) else None
    if entry is None:
        raise InvalidDocument(f"the solver of a release must be one of {', '.join(CATALOG)}")
    entry.check_settings(settings)
    return entry


def check_solver(name: object, settings: Mapping[str, Any], ledger: Ledger) -> None:
    """Raise unless a release may name this solver with these settings beside this ledger."""
    entry = check_configuration(name, settings)
    if ledger.patterns and settings.get("mask_features") is False:
        raise InvalidDocument("the ledger publishes features that the settings leave out")
    if settings.get("unit", Unit.VALUE) != ledger.unit:
        raise InvalidDocument("the release has the ledger of another unit than its settings")
    entry.check_ledger(ledger)
