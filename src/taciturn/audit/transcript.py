"""Transcripts of runs, and their replay on neighbouring datasets.

A run is observed through a private hook of its gate, which is recorded in its ledger. A replay runs
the training on another dataset but hands it the releases of the first run. It yields the exact sums
of the other dataset along the same transcript. Exact sums are private, so transcripts are
owner-only.
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
    """Stops a run as a crash would."""

    def __init__(self, tables: Sequence["Table"]) -> None:
        super().__init__()
        self.tables = tuple(tables)


class Interrupted(KeyboardInterrupt):
    """Stops a run as Ctrl-C would."""

    def __init__(self, tables: Sequence["Table"]) -> None:
        super().__init__()
        self.tables = tuple(tables)


class Diverged(TaciturnError):
    """Queries of a replay differ from those of the original run."""


Sums = npt.NDArray[np.int64]
Released = tuple[npt.NDArray[np.float64], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """One released table: query, recorded event, exact sums (private) and released values.

    `others` are the exact sums of a neighbouring dataset along the same transcript, if known.
    """

    query: BoundedQuery
    event: GaussianRelease
    sums: Sums
    released: npt.NDArray[np.float64]
    others: Sums | None = None

    def noise(self) -> npt.NDArray[np.float64]:
        """Noise that was added to the exact sums, in grid steps. Private."""
        steps: npt.NDArray[np.float64] = self.released / self.query.step - self.sums
        return steps


@dataclass(frozen=True, eq=False, repr=False)
class Transcript:
    """All tables released by one run, and its fit."""

    tables: tuple[Table, ...]
    fit: Fit

    @property
    def ledger(self) -> Ledger:
        """Ledger of the run without the events that record its observation."""
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
        """Recorded noise scale of each table, in grid steps."""
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
    """Run a solver and return its transcript. Private.

    Parameters
    ----------
    others
        Executor of a neighbouring dataset, to get its sums along the transcript of this run.
    stop_after, stop
        Raise `stop` once `stop_after` tables are released.
    """
    watcher = _Watcher(others, stop_after, stop)
    with _observed(watcher):
        fit = solver.fit(ratings, budget, session)
    return watcher.transcript(fit)


def play(
    transcript: Transcript,
    solver: Solver,
    ratings: Ratings,
    budget: Budget | None,
    session: Session = PLAIN,
) -> Transcript:
    """Replay a transcript: run a solver on other ratings with the same releases. Private.

    Raises
    ------
    Diverged
        The queries of the replay differ, so they depend on the ratings.
    """
    player = _Player(transcript)
    with _observed(player):
        fit = solver.fit(ratings, budget, replace(session, noise=None, folder=None))
    if len(player.tables) != len(transcript.tables):
        raise Diverged("the number of releases depends on the ratings")
    return player.transcript(fit)


class _Recorder:
    """Records queries, events, exact sums and releases of a gate. Private."""

    def __init__(self) -> None:
        self.tables: list[Table] = []

    def transcript(self, fit: Fit) -> Transcript:
        return Transcript(tuple(self.tables), fit)


class _Watcher(_Recorder):
    """Records a run, and optionally the sums of a neighbouring dataset."""

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
    """Replaces the releases of a run with those of a transcript."""

    def __init__(self, transcript: Transcript) -> None:
        super().__init__()
        self._transcript = transcript

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
        played = self._transcript.tables[first : first + len(tables)]
        if [table.query for table in played] != list(queries):
            raise Diverged(f"the query of release {first} depends on the ratings")
        again = tuple(table.released.copy() for table in played)
        self.tables.extend(map(Table, queries, events, tables, again))
        return tuple(table.copy() for table in again)


def with_others(transcript: Transcript, played: Transcript) -> Transcript:
    """Add the sums of a replay to a transcript."""
    tables = zip(transcript.tables, played.tables, strict=True)
    both = tuple(replace(one, others=two.sums) for one, two in tables)
    return replace(transcript, tables=both)


def losses(transcript: Transcript) -> npt.NDArray[np.float64]:
    """Privacy loss of each table: log-likelihood ratio of its own dataset against the other.

    The sum is the privacy loss of the transcript. It is exact if the noise is as recorded.
    """
    found = []
    for table, scale in zip(transcript.tables, transcript.noise_scales, strict=True):
        if table.others is None:
            raise ValueError("the transcript lacks the sums of the neighbouring dataset")
        difference = (table.sums - table.others).astype(np.float64)
        offset = table.released / table.query.step - (table.others + difference / 2)
        found.append(float(np.vdot(difference, offset)) / scale**2)
    return np.array(found)


def released_numbers(fit: Fit) -> npt.NDArray[np.float64]:
    """All numbers of a fit that a release contains, as one vector."""
    model = fit.model
    parts: list[Any] = [model.mean, model.residual_variance]
    if model.prior is not None:
        parts += [model.prior.residual_variance, model.prior.variances]
    for side in (model.users, model.items):
        if side is not None:
            parts += [side.biases, side.factors, side.bias_variances, side.variances]
    return np.concatenate([np.ravel(part) for part in parts if part is not None]).astype(float)
