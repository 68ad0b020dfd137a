"""No way around the gate: no exact sums, no chosen keys, no access of algorithms to the key."""

import gc
import os
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import taciturn
from taciturn.accounting.events import ExactRelease, Noise
from taciturn.accounting.ledger import Ledger, Status
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter, NoiseReuse
from taciturn.mechanisms.gate import Gate
from taciturn.mechanisms.noise import InsecureTestNoise, NoiseSource, SecureNoise
from taciturn.mechanisms.run_folder import RunFolder
from taciturn.queries.executor import LocalExecutor
from taciturn.queries.values import GridValues
from taciturn.solvers.catalog import CATALOG
from taciturn.solvers.contract import Algorithm, Session
from taciturn.solvers.loop import Training
from tests import noise_keys
from tests.solvers.helpers import BUDGET, SOLVERS, random_ratings, small_solver


def algorithms() -> list[type[Algorithm[Any]]]:
    """Algorithms of all solvers in the catalog."""
    for entry in CATALOG.values():
        entry.load()
    found: list[type[Algorithm[Any]]] = []
    waiting = Algorithm.__subclasses__()
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith("taciturn.solvers") and not kind.__abstractmethods__:
            found.append(kind)
    return found


def test_a_session_takes_no_gate() -> None:
    """A custom gate could store exact sums under a ledger with status proven."""
    options: dict[str, Any] = {"make_gate": Gate}
    with pytest.raises(TypeError):
        Session(**options)
    assert {field.name for field in fields(Session) if not field.name.startswith("_")} == {
        "seed",
        "user_seed",
        "threads",
        "noise",
        "folder",
        "progress",
    }


def test_a_caller_cannot_choose_a_key() -> None:
    constructors: list[Any] = [NoiseSource, SecureNoise]
    with pytest.raises((TypeError, InvalidParameter)):
        constructors[0](bytes(32), Noise.SECURE)
    with pytest.raises((TypeError, InvalidParameter)):
        NoiseSource()
    with pytest.raises(TypeError):
        constructors[1](bytes(32))
    assert InsecureTestNoise(1).kind is Noise.TEST


class ChosenKey(SecureNoise):
    """Claims to be a secure source, but its key is all zeros."""

    def _secret(self) -> bytes:
        return bytes(32)

    def _integers(self, *args: Any, count: int, **options: Any) -> Any:
        return np.zeros(count, dtype=np.int64)


@pytest.mark.parametrize("name", ["als", "bias", "gradient"])
def test_a_source_of_another_class_is_refused(name: str) -> None:
    with pytest.raises(InvalidParameter, match="SecureNoise"):
        small_solver(name).fit(random_ratings(), BUDGET, Session(noise=ChosenKey()))
    with pytest.raises(InvalidParameter, match="SecureNoise"):
        Gate(budget=BUDGET, unit=Unit.VALUE, noise=ChosenKey())


def test_a_source_cannot_be_changed_or_drawn_from() -> None:
    """Its creator can neither replace its methods nor read its numbers."""
    noise = SecureNoise()
    for name in ("_integers", "integers", "kind"):
        with pytest.raises(AttributeError):
            setattr(noise, name, lambda *args, **options: np.zeros(1, dtype=np.int64))
    public = {name for name in dir(noise) if not name.startswith("_")}
    assert public == {"claim", "erase", "kind"}


class OwnFolder:
    """Has the attributes of a run folder and is none."""

    def __init__(self, folder: RunFolder) -> None:
        self.__dict__ |= vars(folder)


def test_a_folder_cannot_be_replaced_or_rewritten(tmp_path: Any) -> None:
    folder = RunFolder.create(tmp_path / "run", data=[])
    with pytest.raises(AttributeError):
        setattr(folder, "ledger", Ledger())  # noqa: B010 — the property has no setter
    folder.ledger.append(ExactRelease(purpose="nothing", unit=Unit.VALUE))
    assert folder.ledger.events == ()
    own: Any = OwnFolder(folder)
    with pytest.raises(InvalidParameter, match="RunFolder"):
        small_solver("bias").fit(random_ratings(), BUDGET, Session(folder=own))
    public = {name for name in dir(folder) if not name.startswith("_")}
    assert not {"noise", "key"} & public
    folder.close()


def test_an_audited_fit_is_not_private() -> None:
    """An audit stores exact sums, so the ledger of its run is not private."""
    from taciturn.audit.transcript import play, watch

    transcript = watch(small_solver("bias"), random_ratings(), BUDGET)
    again = play(transcript, small_solver("bias"), random_ratings(), BUDGET)
    for fit in (transcript.fit, again.fit):
        assert fit.ledger.status is Status.NONE
        assert "audit" in " ".join(fit.ledger.reasons)
    assert small_solver("bias").fit(random_ratings(), BUDGET).ledger.status is Status.PROVEN


def reachable(root: Any) -> Iterator[Any]:
    """All objects reachable from an object, except code and types."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, type) or type(each).__name__ == "module":
            continue
        seen.add(id(each))
        yield each
        found = gc.get_referents(each)
        if callable(each) and hasattr(each, "__globals__"):
            found = [*(each.__closure__ or ()), *(each.__defaults__ or ())]
        waiting.extend(found)


@pytest.mark.parametrize(("name", "unit"), SOLVERS)
def test_an_algorithm_has_access_to_neither_key_nor_ratings(
    name: str, unit: Unit, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """No reference leads from its arguments or attributes to gate, source, folder or ratings.

    Only `owner_only` gets ratings, after the model is made, and stores none.
    """
    given: list[Any] = []
    called: list[str] = []

    def watched(kind: type, method: str) -> None:
        original = getattr(kind, method)

        def call(self: Any, *args: Any, **options: Any) -> Any:
            called.append(method)
            result = original(self, *args, **options)
            given.append(vars(self))
            if method != "owner_only":
                given.extend((args, options))
            return result

        monkeypatch.setattr(kind, method, call)

    for kind in algorithms():
        for method in ("__init__", "initial_state", "query", "update", "model", "owner_only"):
            watched(kind, method)
    solver = small_solver(name, unit)
    folder = RunFolder.create(tmp_path / "run", data=[])
    solver.fit(random_ratings(), BUDGET if solver.is_private else None, Session(folder=folder))
    folder.close()
    first = called.index("owner_only")
    assert "model" in called[:first]
    # Once ratings are read, nothing is queried or updated.
    assert set(called[first:]) <= {"owner_only", "model"}
    sources = (NoiseSource, RunFolder, Gate, Session, LocalExecutor, Training)
    for each in reachable(given):
        assert not isinstance(each, (*sources, Ratings, GridValues)), type(each)


def test_the_seed_of_users_does_not_follow_from_the_noise_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(os, "urandom", lambda count: bytes(count))
    with noise_keys.fresh():
        folders = [RunFolder.create(tmp_path / name, data=[]) for name in ("one", "two")]
    monkeypatch.undo()
    assert folders[0]._noise._secret() == folders[1]._noise._secret()
    assert folders[0].secret_seed() != folders[1].secret_seed()
    seed = folders[0].secret_seed()
    for folder in folders:
        folder.close()
    assert RunFolder.resume(tmp_path / "one", data=[]).secret_seed() == seed


def test_a_fork_loses_the_key() -> None:
    """Even if the child has the parent's process number, as in another container."""
    noise = SecureNoise()
    noise._secret()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        noise._process = os.getpid()
        try:
            result = b"zero" if not any(noise._secret()) else b"key"
        except NoiseReuse:
            result = b"refused"
        os.write(writing, result)
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 100) == b"refused"
    assert any(noise._secret())


def test_the_top_level_package_exports_no_gate_and_no_source() -> None:
    assert not {"Gate", "NoiseSource", "SecureNoise", "RunFolder"} & set(taciturn.__all__)
