"""The loop of a solver: progress, checkpoints, and going on after an interruption."""

import io
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Protocol
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from taciturn.accounting.budget import Budget
from taciturn.accounting.events import GaussianRelease
from taciturn.accounting.ledger import Ledger
from taciturn.accounting.units import Unit
from taciturn.mechanisms.exact_gate import OpenDoor
from taciturn.mechanisms.extent import Extent
from taciturn.mechanisms.gate import Gate
from taciturn.mechanisms.query import BoundedQuery, JointMeasurement
from taciturn.solvers.contract import Seeds, Session

State = dict[str, npt.NDArray[np.float64]]

Asked = Sequence[tuple[BoundedQuery, float]]
"""Queries with their shares of μ²."""

CHECKPOINT_SECONDS = 10.0
"""How often the state of a run with a folder is kept."""


Tables = Sequence[npt.NDArray[np.float64]]


class Descent(Protocol):
    """A training that asks for tables and learns from what is released of them, step by step."""

    @property
    def steps(self) -> int:
        """How many steps there are."""

    def begin(self, seeds: Seeds) -> State:
        """Return the state before the first step."""

    def ask(self, number: int, state: State) -> tuple[JointMeasurement, tuple[float, ...]]:
        """Return what a step measures, and for which shares of μ²."""

    def learn(self, number: int, state: State, released: Tables, noise: list[float]) -> State:
        """Return the state after a step, from tables and the scales of their noise."""


class Run:
    """One training: a gate for what is private, and a loop that can be interrupted.

    A run with a folder keeps its state there from time to time and when it is interrupted. Begun
    again on the same folder, it goes on from there; what came after is repeated with the same
    noise, so that the result is the same as without the interruption.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._start, self._position = 0, 0
        self._state: State | None = None
        kept = session.folder.read_state() if session.folder else None
        state = _unpack(kept[1]) if kept else None
        if kept and state:
            self._start, self._position = int(state.pop("iteration")), kept[0]
            self._state = state
        self._door: Gate | OpenDoor | None = None

    def gate(self, unit: Unit, budget: Budget, asked: Asked) -> Gate:
        """Gate for the private sums of a run that asks for these queries, or for smaller ones.

        Raises if it could not release all of them, before anything is released.
        """
        session = self._session
        self._door = gate = Gate(
            budget=budget,
            unit=unit,
            noise=None if session.folder else session.noise,
            folder=session.folder,
            position=self._position,
            threads=session.threads,
            extent=Extent.of(query for query, _ in asked),
        )
        gate.plan_all(asked)
        return gate

    def open_door(self, unit: Unit) -> OpenDoor:
        """Return the door of a run that is not private."""
        session = self._session
        self._door = door = OpenDoor(unit=unit, folder=session.folder, threads=session.threads)
        return door

    def door(self, unit: Unit, budget: Budget | None, asked: Asked) -> Gate | OpenDoor:
        """Return a gate if there is a budget, and the open door if not."""
        return self.gate(unit, budget, asked) if budget else self.open_door(unit)

    @property
    def _made(self) -> Gate | OpenDoor:
        if self._door is None:
            raise RuntimeError("a run makes its door before its first step")
        return self._door

    def steps(
        self,
        iterations: int,
        begin: Callable[[], State],
        step: Callable[[int, State], State],
        stop: Callable[[State], bool] = lambda state: False,
    ) -> State:
        """Return the state after `iterations` steps, or after one that `stop` accepts.

        `step` takes the number of the iteration and a state, which it leaves as it is, and returns
        the next; it may depend on nothing else that changes.
        """
        session = self._session
        state = self._state if self._state is not None else begin()
        number, position, saved = self._start, self._made.position, monotonic()
        try:
            while number < iterations and not (number > 0 and stop(state)):
                session.progress(number, iterations)
                after = step(number, state)
                reached = self._made.position
                # At once: an interrupt in between would keep a state under a wrong number.
                state, number, position = after, number + 1, reached
                if session.folder and monotonic() - saved > CHECKPOINT_SECONDS:
                    self._save(number, position, state)
                    saved = monotonic()
        except KeyboardInterrupt:
            self._save(number, position, state)
            raise
        session.progress(iterations, iterations)
        self._save(number, position, state)
        return state

    def descend(self, descent: Descent, gate: Gate, values: npt.NDArray[np.int32]) -> State:
        """Make all releases of a descent; return its last state, which is public.

        Reads private data, `values`.
        """

        def step(number: int, state: State) -> State:
            measurement, shares = descent.ask(number, state)
            released = gate.release_together(measurement, values, shares=shares)
            queries = zip(measurement.queries, shares, strict=True)
            noise = [gate.noise_scale(query, share) for query, share in queries]
            return descent.learn(number, state, released, noise)

        return self.steps(descent.steps, lambda: descent.begin(self._session.seeds), step)

    def finish(self) -> Ledger:
        """Return the ledger of a run whose releases are all made.

        The noise key is erased, except in a folder: there it stays until whoever made the folder
        has put the result in its place, so that a crash in between loses nothing.
        """
        if not self._session.folder:
            self._made.close()
        return self._made.ledger

    def _save(self, number: int, position: int, state: State) -> None:
        if self._session.folder:
            content = io.BytesIO()
            np.savez(content, iteration=np.float64(number), **state)  # type: ignore[arg-type]
            self._session.folder.save_state(position, content.getvalue())


def asked_by(descent: Descent) -> Asked:
    """Queries of a descent with their shares of μ²; those it will ask for are no larger."""
    state = descent.begin(Seeds())
    asked = [descent.ask(number, state) for number in range(descent.steps)]
    return [
        (query, share)
        for measurement, shares in asked
        for query, share in zip(measurement.queries, shares, strict=True)
    ]


def planned(unit: Unit, budget: Budget, asked: Asked) -> list[GaussianRelease]:
    """Events of a run that asks for these queries; raises if its gate would refuse one."""
    gate = Gate(budget=budget, unit=unit, extent=Extent.of(query for query, _ in asked))
    return gate.plan_all(asked)


def _unpack(content: bytes) -> State | None:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return dict(arrays)
    except (OSError, ValueError, BadZipFile):
        return None
