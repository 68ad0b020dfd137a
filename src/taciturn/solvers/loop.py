"""The training loop: the only code that carries queries to a gate.

Recording, noise, checkpoints, progress and plans are written here once, for every algorithm. A
`Training` runs to the end or step by step, so that audits and the reproduction of the paper use it
too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Generic

from taciturn.accounting.events import Event, PatternRelease
from taciturn.accounting.ledger import Ledger
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.exact_gate import ExactGate
from taciturn.mechanisms.extent import Extent
from taciturn.mechanisms.gate import Gate
from taciturn.mechanisms.query import BoundedQuery, Executor, QuerySpec, Released
from taciturn.solvers.checkpoint import pack, unpack
from taciturn.solvers.contract import (
    Algorithm,
    ExactStep,
    PostProcess,
    QueryStep,
    Session,
    State,
)

CHECKPOINT_SECONDS = 10.0
"""Time between checkpoints of a run with a folder."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Done(Generic[State]):
    """One finished step: its number, the states around it and what was released.

    The states are private where the algorithm's are, as those of the published algorithm.
    """

    step: int
    before: State
    after: State
    released: Released


class Training(Generic[State]):
    """One training: a gate, an executor that holds the ratings, and steps that can be interrupted.

    A run with a folder saves its state there from time to time and when it is interrupted. Begun
    again on the same folder, it goes on from there; what came after is repeated with the same
    noise, so that the result is the same as without the interruption.

    Raises, before anything is released, if the budget does not cover the schedule.
    """

    def __init__(
        self,
        algorithm: Algorithm[State],
        executor: Executor,
        session: Session,
    ) -> None:
        self._algorithm, self._executor, self._session = algorithm, executor, session
        self._schedule = algorithm.schedule
        initial = algorithm.initial_state(session.seeds)
        saved = session.folder.read_state() if session.folder else None
        found = unpack(saved[1], initial) if saved else None
        self._number, position = 0, 0
        self.state: State = initial
        if saved and found:
            position, (self._number, self.state) = saved[0], found
        self._gate = self._make_gate(position)
        self._position, self._saved_at = self._gate.position, monotonic()

    def _make_gate(self, position: int) -> Gate | ExactGate:
        algorithm, session = self._algorithm, self._session
        if algorithm.budget is None:
            return ExactGate(unit=algorithm.unit, folder=session.folder)
        asked = scheduled_queries(algorithm)
        gate = Gate(
            budget=algorithm.budget,
            unit=algorithm.unit,
            noise=None if session.folder else session.noise,
            folder=session.folder,
            position=position,
            threads=session.threads,
            extent=Extent.of(query for query, _ in asked),
        )
        gate.plan_all(asked)
        return gate

    def run(self) -> State:
        """Take all steps that are left; the last state."""
        for _ in self.steps():
            pass
        return self.state

    def steps(self) -> Iterator[Done[State]]:
        """Take the steps that are left, one at a time."""
        algorithm, total = self._algorithm, len(self._schedule)
        progress = self._session.progress
        try:
            while self._number < total:
                if self._number > 0 and algorithm.is_settled(self.state):
                    break
                progress(self._number, total)
                number, before = self._number, self.state
                released = self._release(number)
                after = algorithm.update(number, before, released)
                reached = self._gate.position
                # At once: an interrupt in between would save a state under a wrong number.
                self.state, self._number, self._position = after, number + 1, reached
                if monotonic() - self._saved_at > CHECKPOINT_SECONDS:
                    self._save()
                yield Done(step=number, before=before, after=after, released=released)
        except KeyboardInterrupt:
            self._save()
            raise
        progress(total, total)
        self._save()

    def _release(self, number: int) -> Released:
        """Carry the query of a step to the gate."""
        step = self._schedule[number]
        if isinstance(step, PostProcess):
            return Released(spec=None, tables=(), noise_scales=())
        if isinstance(step, ExactStep):
            if not isinstance(self._gate, ExactGate):
                raise InvalidParameter("a private training reads no rating without noise")
            return self._gate.read(self._executor)
        spec = self._algorithm.query(number, self.state)
        _check_scheduled(spec, step)
        return self._gate.release(spec, self._executor, shares=step.shares)

    def finish(self) -> Ledger:
        """Ledger of a training whose releases are all made.

        The noise key is erased, except in a folder: there it stays until whoever made the folder
        has put the result in its place, so that a crash in between loses nothing.
        """
        if self._algorithm.published_pattern and isinstance(self._gate, Gate):
            self._gate.publish_pattern(self._algorithm.published_pattern)
        if not self._session.folder:
            self._gate.close()
        return self._gate.ledger

    def _save(self) -> None:
        if self._session.folder:
            self._session.folder.save_state(self._position, pack(self._number, self.state))
            self._saved_at = monotonic()


def _check_scheduled(spec: QuerySpec, step: QueryStep) -> None:
    """Raise unless a query spec is the scheduled one, or asks for smaller tables."""
    for query, planned in zip(spec.queries, step.queries, strict=True):
        facts = [
            (each.purpose, each.unit, each.rows, each.coordinates) for each in (query, planned)
        ]
        is_covered = all(own <= most for own, most in zip(query.shape, planned.shape, strict=True))
        if facts[0] != facts[1] or not is_covered:
            raise InvalidParameter(f"{query.purpose!r} is not what was scheduled")


def scheduled_queries(algorithm: Algorithm[State]) -> list[tuple[BoundedQuery, float]]:
    """All queries of a schedule at their maximum size, each with its budget share."""
    return [
        (query, share)
        for step in algorithm.schedule
        if isinstance(step, QueryStep)
        for query, share in zip(step.queries, step.shares, strict=True)
    ]


def planned_events(algorithm: Algorithm[State]) -> list[Event]:
    """Events that a training would record; raises if its gate would refuse one.

    Reads the schedule alone. Where the scale of a query follows from earlier releases, the ratio of
    sensitivity and noise is that of the training, and both are given for the initial scale.
    """
    if algorithm.budget is None:
        return []
    asked = scheduled_queries(algorithm)
    extent = Extent.of(query for query, _ in asked)
    gate = Gate(budget=algorithm.budget, unit=algorithm.unit, extent=extent)
    events: list[Event] = [*gate.plan_all(asked)]
    if algorithm.published_pattern:
        events.append(PatternRelease(purpose=algorithm.published_pattern, unit=algorithm.unit))
    return events
