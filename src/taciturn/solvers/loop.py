"""Training loop: the only code that passes queries to a gate.

Recording, noise, checkpoints, progress and plans are implemented here for all algorithms. A
`Training` runs to the end or step by step, so audits and the reproduction of the paper use it too.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Generic

from taciturn.accounting.events import Event, FoldInServing, GaussianRelease, PatternRelease
from taciturn.accounting.ledger import Ledger
from taciturn.errors import BudgetExceeded, InvalidParameter
from taciturn.mechanisms.exact_gate import ExactGate
from taciturn.mechanisms.extent import Extent
from taciturn.mechanisms.gate import Gate
from taciturn.mechanisms.query import BoundedQuery, Executor, QuerySpec, Released
from taciturn.solvers.checkpoint import check_state, pack, unpack
from taciturn.solvers.contract import (
    Algorithm,
    ExactStep,
    PostProcess,
    QueryStep,
    Session,
    State,
)

_logger = logging.getLogger(__name__)

_ROUNDING = 1e-9
"""Relative error of sums of shares."""

CHECKPOINT_SECONDS = 10.0
"""Time between checkpoints of a run with a folder."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FinishedStep(Generic[State]):
    """One finished step: its number, the states around it and what was released.

    The states are private if those of the algorithm are, as in the published algorithm.
    """

    step: int
    before: State
    after: State
    released: Released


class Training(Generic[State]):
    """One training: a gate, an executor that holds the ratings, and steps that can be interrupted.

    A run with a folder saves its state there regularly and when it is interrupted. A new training
    with the same folder resumes from that state. Later steps are repeated with the same noise, so
    the result is the same as without the interruption.

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
        check_state(initial)
        self.state: State = initial
        self._steps_done, position = 0, 0
        if (saved := self._saved(initial)) is not None:
            position, self._steps_done, self.state = saved
        self._gate = self._make_gate(position)
        self._events_done, self._saved_at = self._gate.position, monotonic()

    def _saved(self, initial: State) -> tuple[int, int, State] | None:
        """Events, steps and state of the checkpoint; None unless one fits the schedule."""
        saved = self._session.folder.read_state() if self._session.folder else None
        found = unpack(saved[1], initial) if saved else None
        if saved is None or found is None:
            return None
        events, (steps, state) = saved[0], found
        done = self._schedule[: max(0, steps)]
        recorded = sum(len(step.queries) for step in done if isinstance(step, QueryStep))
        if len(done) != steps or events != (recorded if self._algorithm.budget else 0):
            return None
        return events, steps, state

    def _make_gate(self, position: int) -> Gate | ExactGate:
        session = self._session
        if self._algorithm.budget is None:
            return ExactGate(unit=self._algorithm.unit, folder=session.folder)
        asked = scheduled_queries(self._algorithm)
        gate = Gate(
            budget=self._algorithm.budget,
            unit=self._algorithm.unit,
            noise=None if session.folder else session.noise,
            folder=session.folder,
            position=position,
            threads=session.threads,
            extent=Extent.of(query for query, _ in asked),
        )
        self._planned = _squares(gate.plan_all(asked))
        return gate

    def run(self) -> State:
        """Last state, after all remaining steps."""
        for _ in self.steps():
            pass
        return self.state

    def steps(self) -> Iterator[FinishedStep[State]]:
        """Remaining steps, one at a time."""
        algorithm, total = self._algorithm, len(self._schedule)
        progress = self._session.report
        try:
            while self._steps_done < total:
                if self._steps_done > 0 and algorithm.is_settled(self.state):
                    break
                progress(self._steps_done, total)
                number, before = self._steps_done, self.state
                released = self._release(number)
                after = algorithm.update(number, before, released)
                reached = self._gate.position
                # In one assignment: an interrupt in between would save a state with a wrong number.
                self.state, self._steps_done, self._events_done = after, number + 1, reached
                if monotonic() - self._saved_at > CHECKPOINT_SECONDS:
                    self._save()
                _logger.debug("step %d of %d is done", self._steps_done, total)
                yield FinishedStep(step=number, before=before, after=after, released=released)
        except KeyboardInterrupt:
            self._save()
            raise
        progress(total, total)
        self._save()

    def _release(self, number: int) -> Released:
        """Pass the query of a step to the gate."""
        step = self._schedule[number]
        if isinstance(step, PostProcess):
            return Released(spec=None, tables=(), noise_scales=())
        if isinstance(step, ExactStep):
            if not isinstance(self._gate, ExactGate):
                raise InvalidParameter("a private training reads no rating without noise")
            return self._gate.read(self._executor)
        spec = self._algorithm.query(number, self.state)
        _check_scheduled(spec, step)
        shares = self._algorithm.shares(number, self.state)
        if isinstance(self._gate, Gate):
            self._check_shares(self._gate, spec, shares)
        return self._gate.release(spec, self._executor, shares=shares)

    def _check_shares(self, gate: Gate, spec: QuerySpec, shares: Sequence[float]) -> None:
        """Raise if shares moved to tables that cost groups of ratings more than those planned.

        The guarantee for groups follows from the totals of tables that grow alike, so each of these
        totals is capped, not only that of all tables.
        """
        asked = [gate.plan(each, share) for each, share in zip(spec.queries, shares, strict=True)]
        for growth, total in _squares([*gate.ledger.events[: gate.position], *asked]).items():
            if total > self._planned.get(growth, 0.0) * (1 + _ROUNDING):
                raise BudgetExceeded(
                    "a step would spend more than planned for tables of its kind; this release was "
                    "not made"
                )

    def finish(self) -> Ledger:
        """Ledger of a finished training.

        The noise key is erased. In a run folder it stays until the owner of the folder has written
        the result, so that a crash in between loses nothing.
        """
        for purpose in self._algorithm.published_patterns:
            if isinstance(self._gate, Gate):
                self._gate.publish_pattern(purpose)
        if self._algorithm.served_exactly and isinstance(self._gate, Gate):
            self._gate.serve_by_fold_in(self._algorithm.served_exactly)
        if not self._session.folder:
            self._gate.close()
        return self._gate.ledger

    def _save(self) -> None:
        if self._session.folder:
            self._session.folder.save_state(self._events_done, pack(self._steps_done, self.state))
            self._saved_at = monotonic()


def _squares(events: Iterable[Event]) -> dict[float, float]:
    """Sum of μ² of noisy tables, by the growth of their sensitivity for groups."""
    found: dict[float, float] = {}
    for event in events:
        if isinstance(event, GaussianRelease):
            growth = event.growth(2)
            found[growth] = found.get(growth, 0.0) + event.mu**2
    return found


def _check_scheduled(spec: QuerySpec, step: QueryStep) -> None:
    """Raise unless a spec has the scheduled tables, none larger than scheduled.

    Thresholds, and with them sensitivity and noise scale, may depend on earlier releases.
    """
    if len(spec.queries) != len(step.queries):
        raise InvalidParameter("a step has a different number of tables than scheduled")
    for query, planned in zip(spec.queries, step.queries, strict=True):
        facts = [_fixed_facts(each) for each in (query, planned)]
        is_covered = all(own <= most for own, most in zip(query.shape, planned.shape, strict=True))
        if facts[0] != facts[1] or not is_covered:
            raise InvalidParameter(f"{query.purpose!r} is not what was scheduled")


def _fixed_facts(query: BoundedQuery) -> tuple[object, ...]:
    """Facts of a query that must not depend on earlier releases."""
    return query.purpose, query.unit, query.rows, query.coordinates, query.proof, query.flaw


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

    Reads the schedule alone. If a clipping threshold depends on earlier releases, sensitivity and
    noise scale are those of the initial threshold; their ratio is exact.
    """
    if algorithm.budget is None:
        return []
    asked = scheduled_queries(algorithm)
    extent = Extent.of(query for query, _ in asked)
    gate = Gate(budget=algorithm.budget, unit=algorithm.unit, extent=extent)
    events: list[Event] = [*gate.plan_all(asked)]
    events += [
        PatternRelease(purpose=purpose, unit=algorithm.unit)
        for purpose in algorithm.published_patterns
    ]
    if algorithm.served_exactly:
        events.append(FoldInServing(purpose=algorithm.served_exactly, unit=algorithm.unit))
    return events
