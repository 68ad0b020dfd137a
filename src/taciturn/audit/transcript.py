"""Transcripts: what a run released, and what the same history would mean in another world.

A run is observed through a private hook of its gate, and its ledger says so. The transcript of one
world is then played to a run in another: it is handed the same releases, and its exact sums are
those that the other world would have had along the same history. Exact sums are private; an audit
is the owner's own view.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from taciturn.accounting.budget import Budget
from taciturn.accounting.events import OBSERVED, GaussianRelease
from taciturn.accounting.ledger import Ledger
from taciturn.data.ratings import Ratings
from taciturn.errors import TaciturnError
from taciturn.mechanisms.gate import _observed
from taciturn.mechanisms.query import BoundedQuery, Executor, QuerySpec
from taciturn.solvers.contract import PLAIN, Fit, Session
from taciturn.solvers.solver import Solver


class Stopped(Exception):
    """A run was ended in the middle, like by a crash."""

    def __init__(self, tables: Sequence["Table"]) -> None:
        super().__init__()
        self.tables = tuple(tables)


class Interrupted(KeyboardInterrupt):
    """A run was ended in the middle, like by Ctrl-C."""

    def __init__(self, tables: Sequence["Table"]) -> None:
        super().__init__()
        self.tables = tuple(tables)


class Diverged(TaciturnError):
    """A run in another world, handed the same releases, asked for something else."""


Sums = npt.NDArray[np.int64]
Released = tuple[npt.NDArray[np.float64], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """One table: its query, the event that was recorded, its exact sums (private), the release.

    `others` are the sums that another world would have had after the same history, if known.
    """

    query: BoundedQuery
    event: GaussianRelease
    sums: Sums
    released: npt.NDArray[np.float64]
    others: Sums | None = None

    def noise(self) -> npt.NDArray[np.float64]:
        """Return what was added to the exact sums, in grid steps. Private."""
        steps: npt.NDArray[np.float64] = self.released / self.query.step - self.sums
        return steps


@dataclass(frozen=True, eq=False, repr=False)
class Transcript:
    """Everything that one run released, and its fit."""

    tables: tuple[Table, ...]
    fit: Fit

    @property
    def ledger(self) -> Ledger:
        """The ledger of the run as it would be, had nobody observed it."""
        events = self.fit.ledger.events
        return Ledger(
            (event for event in events if event.purpose != OBSERVED),
            run=self.fit.ledger.run,
        )

    @property
    def events(self) -> tuple[GaussianRelease, ...]:
        """Recorded events, one for each table."""
        recorded = self.fit.ledger.events
        return tuple(event for event in recorded if isinstance(event, GaussianRelease))

    @property
    def noise_scales(self) -> npt.NDArray[np.float64]:
        """The recorded noise of each table, in grid steps."""
        pairs = zip(self.events, self.tables, strict=True)
        return np.array([event.noise_scale / table.query.step for event, table in pairs])


def watch(
    solver: Solver,
    ratings: Ratings,
    budget: Budget | None,
    session: Session = PLAIN,
    *,
    others: Executor | None = None,
    stop_after: int | None = None,
    stop: type[Stopped] | type[Interrupted] = Stopped,
) -> Transcript:
    """Return the transcript of a run. Reads private data; so does its result.

    Parameters
    ----------
    others
        Executor of a neighbouring dataset, for its sums along the transcript of this run.
    stop_after, stop
        Raise `stop` after so many tables.
    """
    watcher = _Watcher(others, stop_after, stop)
    with _observed(watcher):
        fit = solver.fit(ratings, budget, session)
    return watcher.transcript(fit)


def play(
    history: Transcript,
    solver: Solver,
    ratings: Ratings,
    budget: Budget | None,
    session: Session = PLAIN,
) -> Transcript:
    """Return the transcript of a run that is handed the releases of another. Private.

    Raises
    ------
    Diverged
        The run asked for other tables: what it asks for depends on the ratings.
    """
    player = _Player(history)
    with _observed(player):
        fit = solver.fit(ratings, budget, replace(session, noise=None, folder=None))
    if len(player.tables) != len(history.tables):
        raise Diverged("the number of releases depends on the ratings")
    return player.transcript(fit)


class _Recorder:
    """Keeps what a gate was asked for and its exact sums. Private."""

    def __init__(self) -> None:
        self.tables: list[Table] = []

    def transcript(self, fit: Fit) -> Transcript:
        return Transcript(tuple(self.tables), fit)


class _Watcher(_Recorder):
    """Records a run, with the sums of a neighbouring dataset along the same transcript if given."""

    def __init__(
        self,
        others: Executor | None,
        stop_after: int | None,
        stop: type[Stopped] | type[Interrupted],
    ) -> None:
        super().__init__()
        self._others, self._stop_after, self._stop = others, stop_after, stop
        self._twins: tuple[Sums | None, ...] = ()

    def asked(self, spec: QuerySpec, executor: Executor) -> None:
        self._twins = (None,) * len(spec.queries)
        if self._others is not None:
            self._twins = self._others.answer(spec).tables

    def released(
        self,
        queries: Sequence[BoundedQuery],
        events: Sequence[GaussianRelease],
        tables: Sequence[Sums],
        released: Released,
    ) -> Released:
        copies = (table.copy() for table in released)
        self.tables.extend(map(Table, queries, events, tables, copies, self._twins))
        if self._stop_after is not None and len(self.tables) >= self._stop_after:
            raise self._stop(self.tables)
        return released


class _Player(_Recorder):
    """Hands a run the releases of another, in place of its own."""

    def __init__(self, history: Transcript) -> None:
        super().__init__()
        self._history = history

    def asked(self, spec: QuerySpec, executor: Executor) -> None:
        pass

    def released(
        self,
        queries: Sequence[BoundedQuery],
        events: Sequence[GaussianRelease],
        tables: Sequence[Sums],
        released: Released,
    ) -> Released:
        first = len(self.tables)
        played = self._history.tables[first : first + len(tables)]
        if [table.query for table in played] != list(queries):
            raise Diverged(f"release {first} depends on the ratings of the other world")
        again = tuple(table.released.copy() for table in played)
        self.tables.extend(map(Table, queries, events, tables, again))
        return tuple(table.copy() for table in again)


def with_others(history: Transcript, played: Transcript) -> Transcript:
    """Return a history with the sums of the world that it was played in."""
    tables = zip(history.tables, played.tables, strict=True)
    both = tuple(replace(one, others=two.sums) for one, two in tables)
    return replace(history, tables=both)


def losses(history: Transcript) -> npt.NDArray[np.float64]:
    """Return how much likelier each table is in its own world than in the other: logarithms.

    Their sum is that of the whole history, and exact if the noise is what was booked.
    """
    found = []
    for table, scale in zip(history.tables, history.noise_scales, strict=True):
        if table.others is None:
            raise ValueError("the sums of the other world are not known")
        difference = (table.sums - table.others).astype(np.float64)
        offset = table.released / table.query.step - (table.others + difference / 2)
        found.append(float(np.vdot(difference, offset)) / scale**2)
    return np.array(found)


def released_numbers(fit: Fit) -> npt.NDArray[np.float64]:
    """Return every number of a fit that a release holds, in one row."""
    model = fit.model
    parts: list[Any] = [model.mean, model.residual_variance]
    if model.prior is not None:
        parts += [model.prior.residual_variance, model.prior.variances]
    for side in (model.users, model.items):
        if side is not None:
            parts += [side.biases, side.factors, side.bias_variances, side.variances]
    return np.concatenate([np.ravel(part) for part in parts if part is not None]).astype(float)
