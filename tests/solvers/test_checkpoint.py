"""Checkpoints: a packed state is unpacked unchanged or not at all."""

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from taciturn.accounting.budget import Budget
from taciturn.accounting.units import Unit
from taciturn.solvers.catalog import CATALOG, make_solver
from taciturn.solvers.checkpoint import pack, unpack
from taciturn.solvers.contract import PublicFacts, Seeds
from tests.solvers.helpers import random_ratings


@dataclass(frozen=True, eq=False, kw_only=True)
class Inner:
    rows: npt.NDArray[Any]
    variance: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Outer:
    users: Inner
    items: Inner
    counts: npt.NDArray[Any]
    mean: float


def inner(seed: int, dtype: Any = np.float64) -> Inner:
    random = np.random.default_rng(seed)
    return Inner(rows=random.normal(size=(4, 3)).astype(dtype), variance=0.1 * seed)


STATE = Outer(
    users=inner(1),
    items=inner(2, np.float32),
    counts=np.array([3, 2**60], dtype=np.int64),
    mean=1 / 3,
)
LIKE = Outer(
    users=Inner(rows=np.empty((0, 0)), variance=0.0),
    items=Inner(rows=np.empty((0, 0)), variance=0.0),
    counts=np.empty(0),
    mean=0.0,
)
"""Another state with the same structure."""


def assert_same(one: Any, other: Any) -> None:
    """Check that two states have the same types and are equal to the last bit."""
    assert type(one) is type(other)
    if is_dataclass(one):
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype and one.shape == other.shape
        assert one.tobytes() == other.tobytes()
    else:
        assert repr(one) == repr(other)


@pytest.mark.parametrize("like", [STATE, LIKE])
def test_a_nested_state_is_restored_to_the_last_bit(like: Outer) -> None:
    found = unpack(pack(17, STATE), like)
    assert found is not None and found[0] == 17
    assert_same(found[1], STATE)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, -0.0, 5e-324])
def test_unusual_numbers_are_restored(value: float) -> None:
    state = Inner(rows=np.array([value, 1.0]), variance=value)
    found = unpack(pack(0, state), inner(0))
    assert found is not None
    assert_same(found[1], state)


@pytest.mark.parametrize(
    ("name", "unit"), [(name, unit) for name in CATALOG for unit in sorted(CATALOG[name].units)]
)
def test_states_of_every_algorithm_are_restored(name: str, unit: Unit) -> None:
    solver = make_solver(name, unit=unit)
    budget = Budget.from_epsilon(1, 1e-5) if solver.is_private else None
    facts = PublicFacts.of(random_ratings(), unit)
    algorithm = solver.resolved(budget).algorithm(facts, budget)
    state, other = (algorithm.initial_state(Seeds(seed=seed)) for seed in (1, 2))
    found = unpack(pack(0, state), other)
    assert found is not None
    assert_same(found[1], state)


def test_truncated_bytes_give_no_state() -> None:
    content = pack(3, STATE)
    for length in range(len(content)):
        assert unpack(content[:length], STATE) is None


@pytest.mark.slow
def test_damaged_bytes_give_the_same_state_or_none() -> None:
    """Never another state or an exception. Some bytes of the container do not matter."""
    content = pack(3, STATE)
    damaged = 0
    for place in range(len(content)):
        for flipped in (1, 8, 128, 255):
            changed = content[:place] + bytes([content[place] ^ flipped]) + content[place + 1 :]
            found = unpack(changed, STATE)
            damaged += found is None
            if found is not None:
                assert found[0] == 3
                assert_same(found[1], STATE)
    assert damaged > len(content)


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 100, b"not a state", b"PK\x03\x04" + b"\xff" * 90]
)
def test_other_bytes_give_no_state(content: bytes) -> None:
    assert unpack(content, STATE) is None


def test_the_state_of_another_algorithm_gives_none() -> None:
    assert unpack(pack(3, STATE), inner(0)) is None
    assert unpack(pack(3, inner(0)), STATE) is None
    several: Any = np.ones(3)
    many = Inner(rows=np.ones(3), variance=several)
    assert unpack(pack(3, many), inner(0)) is None


@pytest.mark.parametrize("bad", [3, "text", None, [1.0], {"rows": 1.0}])
def test_only_arrays_floats_and_dataclasses_are_packed(bad: Any) -> None:
    with pytest.raises(TypeError, match=r"state\.variance must be an array or a float"):
        pack(0, Inner(rows=np.ones(1), variance=bad))


def test_objects_are_never_unpickled() -> None:
    """Reading a checkpoint runs no code from the file."""
    hidden = Inner(rows=np.array([print], dtype=object), variance=0.0)
    assert unpack(pack(0, hidden), inner(0)) is None
