"""Everything public, called with wrong types, works or raises an error of Taciturn.

Python itself raises a `TypeError` for a missing or an unknown argument, and a `ValueError` for a
value that is not in an enum. An error in a caller's own function, such as `progress`, is the
caller's. Everything else is checked where it enters.
"""

import enum
import inspect
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import taciturn
from tests.public_call_values import NEW, Calls
from tests.public_calls import GROUPS

SOLVER_CONTRACT = {
    "algorithm",
    "claimed_budget",
    "claimed_epsilon",
    "flaw",
    "public_facts",
    "public_inputs",
    "require_budget",
    "resolved",
    "spending",
    "stated_delta",
}
"""Methods of a solver that the training loop calls, never a user."""

_paths = (Path(f"new-{number}") for number in itertools.count())

FRAME = pd.DataFrame({"a": [1], "b": [2]})
WRONG: list[Any] = [
    None,
    True,
    -1,
    3.5,
    math.nan,
    10**30,
    "text",
    b"bytes",
    (),
    [object()],
    {"a": 1},
    object(),
    np.zeros((2, 2)),
    np.array(["a"]),
    FRAME,
    pl.DataFrame({"a": [1]}),
    math,
]


def public() -> Iterator[str]:
    """Names of public functions, classes and methods."""
    for name in taciturn.__all__:
        what = getattr(taciturn, name)
        if inspect.isclass(what):
            if issubclass(what, BaseException | enum.Enum):
                continue
            is_solver = issubclass(what, taciturn.Solver)
            for method, code in inspect.getmembers(what, callable):
                is_internal = method.startswith("_") or (is_solver and method in SOLVER_CONTRACT)
                if not is_internal and not inspect.isclass(code):
                    yield f"{name}.{method}"
            if what is taciturn.Solver:
                continue  # abstract
        if callable(what):
            yield name


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder in which wrong arguments may create files."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_every_public_name_is_called_here(folder: Path) -> None:
    calls = Calls()
    for group in GROUPS:
        group(calls)
    assert sorted(calls.made) == sorted(public())
    for name, (call, arguments) in calls.made.items():
        assert raised(call, arguments, is_valid=True) is None, name
        parameters = inspect.signature(call).parameters.values()
        if all(each.kind is not inspect.Parameter.VAR_KEYWORD for each in parameters):
            assert {each.name for each in parameters} == set(arguments), name


def raised(call: Any, arguments: dict[str, Any], *, is_valid: bool = False) -> Exception | None:
    """Error of a call: any error if the arguments are valid, else one that is not Taciturn's."""
    given = {name: next(_paths) if each is NEW else each for name, each in arguments.items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(**given)
    except taciturn.TaciturnError as error:
        text = str(error)
        assert text and "\n" not in text and len(text) < 400
        return error if is_valid else None
    except Exception as error:
        return error
    return None


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_wrong_types_raise_no_raw_error(group: Callable[[Calls], None], folder: Path) -> None:
    calls = Calls()
    group(calls)
    found = []
    for name, (call, arguments) in calls.made.items():
        for parameter, wrong in itertools.product(arguments, WRONG):
            error = raised(call, arguments | {parameter: wrong})
            if error is not None:
                shown = type(wrong).__name__
                found.append(f"{name}({parameter}={shown}): {type(error).__name__}: {error}")
    assert found == [], "\n".join(found)
