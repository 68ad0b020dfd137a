"""Catalog of solvers: one entry for each, by name.

Commands, comparisons and audits look up names and settings here, and a release is checked against
the entry of its solver. Pure Python: a solver is imported only when it is created. A test compares
every entry with its class.
"""

from collections.abc import Mapping
from typing import Any

from taciturn._internal import validate
from taciturn._internal.spelling import either, option, parameter
from taciturn.accounting.events import Rows
from taciturn.accounting.ledger import Ledger, Status
from taciturn.accounting.public_inputs import InputKind
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.solvers.entry import (
    FOLD_IN,
    INTEREST_ROUNDS,
    PATTERN_FEATURES,
    PATTERN_INTEREST,
    POPULARITY,
    POPULARITY_TABLE,
    SUM_OF_RATINGS,
    Entry,
    Kind,
    Setting,
)
from taciturn.solvers.flaws import FLAWS
from taciturn.solvers.ledger_shape import LedgerShape, Phase, TableShape

_COUNT, _NUMBER, _FLAG = Setting(Kind.COUNT), Setting(Kind.NUMBER), Setting(Kind.FLAG)
_UNIT = Setting(Kind.UNIT)
_OPTIONAL_COUNT, _OPTIONAL_NUMBER, _OPTIONAL_FLAG = (
    Setting(kind, is_optional=True) for kind in (Kind.COUNT, Kind.NUMBER, Kind.FLAG)
)

_DESCENT_SETTINGS = {
    "factors": _COUNT,
    "iterations": _COUNT,
    "step_size": _NUMBER,
    "regularization": _NUMBER,
    "averaged": _NUMBER,
}
_LEAST_SQUARES_SETTINGS = {"factors": _COUNT, "iterations": _COUNT, "regularization": _NUMBER}
_BIAS_SETTINGS = {"unit": _UNIT, "regularization": _NUMBER}


def _phase(prefix: str, tables: Mapping[str, Rows], *, is_repeated: bool = False) -> Phase:
    named = tuple(TableShape(prefix + purpose, rows) for purpose, rows in tables.items())
    return Phase(named, is_repeated)


def _interest_phase(proof: str, by_item: Rows, by_user: Rows | None = None) -> Phase:
    """Tables of interest: by item in every round and, if released, by user between two rounds."""
    tables: dict[str, Rows] = {}
    for number in range(1, INTEREST_ROUNDS + 1):
        when = f"interest, round {number} of {INTEREST_ROUNDS}, sums by "
        tables[when + "item"] = by_item
        if by_user is not None and number < INTEREST_ROUNDS:
            tables[when + "user"] = by_user
    named = tuple(TableShape(purpose, rows) for purpose, rows in tables.items())
    return Phase(named, proof=proof)


_TOTALS = {
    "squares of residuals": Rows.TOTAL,
    "residuals": Rows.TOTAL,
    "clipped residuals": Rows.TOTAL,
}
_BY_ITEM, _BY_USER = {"residuals by item": Rows.ITEMS}, {"residuals by user": Rows.USERS}
_VALUE_LEDGER = LedgerShape(
    "als.md#claim",
    (
        _phase("", {SUM_OF_RATINGS: Rows.TOTAL}),
        _phase("biases: ", _BY_ITEM | _TOTALS | _BY_USER),
        _phase("round {step} of {steps}: ", _TOTALS | _BY_ITEM | _BY_USER, is_repeated=True),
        _phase("round {steps} of {steps}: ", {"squares of residuals": Rows.TOTAL}),
    ),
)
_SUMS = {"sums by user": Rows.USERS, "sums by item": Rows.ITEMS}
_RATING_LEDGER = LedgerShape(
    "rating.md#claim",
    (
        _phase(
            "",
            {
                "numbers of ratings by user": Rows.USERS,
                "numbers of ratings by item": Rows.ITEMS,
                "number of ratings, sums of ratings and of their squares": Rows.TOTAL,
            },
        ),
        _phase(
            "step {step} of {steps}, ",
            {"sums by user and by item": Rows.BALANCED, "sum of squares": Rows.TOTAL},
            is_repeated=True,
        ),
    ),
    interest=_interest_phase("interest.md#claim", Rows.ITEMS, Rows.USERS),
)


def _user_ledger(proof: str, by_item: Rows, totals: Rows) -> LedgerShape:
    """Ledger of contributions of whole users, whose rows depend on the privacy unit."""
    start = {"weights of items": by_item, "number of users, sums of their means": totals}
    each = {
        "sums by item": by_item,
        "products of features": totals,
        "posterior covariances": totals,
        "mean squares": totals,
    }
    phases = _phase("", start), _phase("step {step} of {steps}, ", each, is_repeated=True)
    interest = "interest.md#whole-users" if by_item is Rows.ITEMS else proof
    return LedgerShape(proof, phases, interest=_interest_phase(interest, by_item))


_USER_LEDGER = _user_ledger("user.md#claim", Rows.ITEMS, Rows.TOTAL)
_CONTRIBUTION_LEDGER = _user_ledger("user.md#one-rating", Rows.CONTRIBUTIONS, Rows.CONTRIBUTIONS)
_GRADIENT_LEDGER = LedgerShape(
    "gradient.md#claim", (_phase("gradient {step} of {steps}, ", _SUMS, is_repeated=True),)
)
_BIAS_LEDGER = LedgerShape(
    "grid.md#sensitivity",
    (
        _phase("sums of ratings by ", {"item": Rows.ITEMS, "user": Rows.USERS}),
        _phase("", {SUM_OF_RATINGS: Rows.TOTAL}),
    ),
)
_POPULARITY_PROOF = "popularity.md#claim"
_POPULARITY_LEDGERS = {
    Unit.VALUE: LedgerShape(_POPULARITY_PROOF, ()),
    Unit.RATING: LedgerShape(
        _POPULARITY_PROOF,
        (_phase(POPULARITY_TABLE, {"numbers of ratings by item": Rows.ITEMS}, is_repeated=True),),
    ),
    Unit.USER: LedgerShape(
        _POPULARITY_PROOF,
        (_phase(POPULARITY_TABLE, {"weights of items": Rows.ITEMS}, is_repeated=True),),
    ),
}
_EVERY_RATING_LEDGER = LedgerShape(
    "grid.md#sensitivity", (_phase("", {"every rating": Rows.RATINGS}),)
)
_PAPER_LEDGER = LedgerShape(
    "paper-gap.md#what-is-claimed",
    (
        _phase(
            "gradient of the user profiles, iteration ", {"{step}": Rows.USERS}, is_repeated=True
        ),
    ),
)

CATALOG: dict[str, Entry] = {
    "als": Entry(
        home="als.solver:AlsSolver",
        status=Status.PROVEN,
        settings={
            "unit": _UNIT,
            "factors": _OPTIONAL_COUNT,
            "iterations": _OPTIONAL_COUNT,
            "pattern_features": _OPTIONAL_FLAG,
            "uncertainty": _FLAG,
            "serve": Setting(
                Kind.CHOICE, is_optional=True, choices=("profiles", FOLD_IN), is_new=True
            ),
            "interest": Setting(Kind.FLAG, is_optional=True, is_new=True),
        },
        ledgers={Unit.VALUE: _VALUE_LEDGER, Unit.RATING: _RATING_LEDGER, Unit.USER: _USER_LEDGER},
        pattern_purposes={PATTERN_FEATURES: "pattern_features", PATTERN_INTEREST: "interest"},
        ledger_of_biases=_BIAS_LEDGER,
        ledger_of_users=_CONTRIBUTION_LEDGER,
        inputs=frozenset({InputKind.ITEM_FEATURES, InputKind.PUBLIC_RATINGS}),
    ),
    "gradient": Entry(
        home="gradient:GradientSolver",
        status=Status.PROVEN,
        settings=_DESCENT_SETTINGS,
        ledgers={Unit.VALUE: _GRADIENT_LEDGER},
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
            "epsilon_i": _OPTIONAL_NUMBER,
            "delta_i": _NUMBER,
            "delta": _NUMBER,
            "centre": Setting(Kind.CHOICE, choices=("none", "item-mean")),
            "tau": _OPTIONAL_NUMBER,
            "tolerance": _OPTIONAL_NUMBER,
            "patience": _COUNT,
        },
        ledgers={Unit.VALUE: _PAPER_LEDGER},
        flaws=FLAWS,
    ),
    "bias": Entry(
        home="bias:BiasSolver",
        status=Status.PROVEN,
        settings=_BIAS_SETTINGS,
        ledgers={Unit.VALUE: _BIAS_LEDGER, Unit.RATING: _RATING_LEDGER, Unit.USER: _USER_LEDGER},
    ),
    "input-perturbation": Entry(
        home="input_perturbation:InputPerturbationSolver",
        status=Status.PROVEN,
        settings=_LEAST_SQUARES_SETTINGS,
        ledgers={Unit.VALUE: _EVERY_RATING_LEDGER},
    ),
    "popularity": Entry(
        home="popularity:PopularitySolver",
        status=Status.PROVEN,
        settings={"unit": _UNIT},
        ledgers=_POPULARITY_LEDGERS,
        pattern_purposes={POPULARITY: None},
        predicts_ratings=False,
        always_has_interest=True,
    ),
    "non-private": Entry(
        home="non_private:NonPrivateSolver",
        status=Status.NONE,
        settings={"factors": _COUNT, "iterations": _COUNT},
        ledgers={Unit.VALUE: None},
        always_has_interest=True,
        inputs=frozenset({InputKind.ITEM_FEATURES}),
    ),
    "non-private-gradient": Entry(
        home="gradient:NonPrivateGradientSolver",
        status=Status.NONE,
        settings=_DESCENT_SETTINGS,
        ledgers={Unit.VALUE: None},
    ),
    "non-private-bias": Entry(
        home="bias:NonPrivateBiasSolver",
        status=Status.NONE,
        settings=_BIAS_SETTINGS,
        ledgers={Unit.VALUE: None},
    ),
    "non-private-popularity": Entry(
        home="popularity:NonPrivatePopularitySolver",
        status=Status.NONE,
        settings={"unit": _UNIT},
        ledgers={Unit.VALUE: None},
        predicts_ratings=False,
        always_has_interest=True,
    ),
}


def make_solver(name: str, /, *, unit: Unit | str | None = None, **options: Any) -> Any:
    """Solver with this name and these settings; a setting that is None has its default.

    `unit` is the privacy unit. Default: `rating`, or `value` if the solver supports no other.
    """
    if not (isinstance(name, str) and name in CATALOG):
        known = ", ".join(CATALOG)
        raise InvalidParameter(f"solver must be one of {known}, got {validate.shown(name)}")
    entry = CATALOG[name]
    given = {option: value for option, value in options.items() if value is not None}
    if unit is not None:
        unit = validate.choice("unit", unit, Unit)
        _check_unit(name, entry, unit)
        if "unit" in entry.settings:
            given["unit"] = unit
    unknown = given.keys() - entry.settings.keys()
    if unknown:
        setting = sorted(unknown)[0]
        is_off = given[setting] is False
        setting = either(option(setting, False), setting) if is_off else parameter(setting)
        raise InvalidParameter(f"the solver {name} has no setting {setting}; leave it out")
    return entry.load()(**given)


def _check_unit(name: str, entry: Entry, unit: Unit) -> None:
    if unit in entry.units:
        return
    known = f"{' and '.join(solvers_of_all_units())} support {unit}"
    if not entry.is_private:
        raise InvalidParameter(
            f"{name} is not private, so {option('unit')} does not apply; {known}"
        )
    raise InvalidParameter(f"{name} supports {option('unit', 'value')} only; {known}")


def solvers_of_all_units() -> list[str]:
    """Names of private solvers that predict ratings under every privacy unit."""
    return [
        name
        for name, entry in CATALOG.items()
        if entry.supports_all_units and entry.predicts_ratings
    ]


def is_free(name: str, unit: Unit) -> bool:
    """Whether a solver releases nothing that a unit protects, so that it costs no budget."""
    shape = CATALOG[name].ledgers[unit]
    return shape is not None and not shape.phases


def check_configuration(name: object, settings: Mapping[str, Any]) -> Entry:
    """Entry of a solver; raises unless it is in the catalog and has these settings."""
    entry = CATALOG.get(name) if isinstance(name, str) else None
    if entry is None:
        raise InvalidDocument(f"the solver must be one of {', '.join(CATALOG)}")
    entry.check_settings(settings)
    return entry


def check_solver(name: object, settings: Mapping[str, Any], ledger: Ledger) -> Entry:
    """Entry of a solver; raises unless a release may name it with these settings and ledger."""
    entry = check_configuration(name, settings)
    entry.check_ledger(ledger, settings)
    return entry
