"""Transcripts: what a run released, and what the same history would mean in another world.

A run is watched through a gate of its own. The transcript of one world is then played to a run in
another: it is handed the same releases, and its exact sums are those that the other world would
have had along the same history. Exact sums are private; an audit is the owner's own view.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.data.ratings import Ratings
from tacit.errors import TacitError
from tacit.privacy.budget import Budget
from tacit.privacy.events import GaussianRelease
from tacit.privacy.mechanism import Gate
from tacit.privacy.query import BoundedQuery, JointMeasurement
from tacit.solvers.contract import PLAIN, Fit, Session, Solver


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


class Diverged(TacitError):
    """A run in another world, handed the same releases, asked for something else."""


Sums = npt.NDArray[np.int64]
Values = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Table:
    """One table: what is public about it, its exact sums (private), and what was released.

    `others` are the sums that another world would have had after the same history, if known.
    """

    query: BoundedQuery
    sums: Sums
    released: npt.NDArray[np.float64]
    others: Sums | None = None

    def noise(self) -> npt.NDArray[np.float64]:
        """Return what was added to the exact sums, in grid steps. Private."""
        steps: npt.NDArray[np.float64] = self.released / self.query.step - self.sums
        return steps


@dataclass(frozen=True, eq=False)
class Transcript:
    """Everything that one run released, and its fit.

    `values` are the private values that its releases were computed from, one array for each time
    that something was released.
    """

    tables: tuple[Table, ...]
    values: tuple[Values, ...]
    fit: Fit

    @property
    def events(self) -> tuple[GaussianRelease, ...]:
        """What was booked, one for each table."""
        booked = self.fit.ledger.events
        return tuple(event for event in booked if isinstance(event, GaussianRelease))

    @property
    def noise_scales(self) -> npt.NDArray[np.float64]:
        """The booked noise of each table, in grid steps."""
        pairs = zip(self.events, self.tables, strict=True)
        return np.array([event.noise_scale / table.query.step for event, table in pairs])


def watch(
    solver: Solver,
    ratings: Ratings,
    budget: Budget | None,
    session: Session = PLAIN,
    *,
    others: Sequence[Values] = (),
    stop_after: int | None = None,
    stop: type[Stopped] | type[Interrupted] = Stopped,
) -> Transcript:
    """Return the transcript of a run. Reads private data; so does its result.

    Parameters
    ----------
    others
        The values of another world, for its sums along the history of this run.
    stop_after, stop
        Raise `stop` after so many tables.
    """
    tables: list[Table] = []
    asked: list[Values] = []

    class Watched(Gate):
        def release_together(
            self, measurement: JointMeasurement, values: Values, **options: Any
        ) -> tuple[npt.NDArray[np.float64], ...]:
            kept = _Kept(measurement)
            # The other world first: a measurement may remember what it was asked last.
            twin: tuple[Sums | None, ...] = (None,) * len(kept.queries)
            if len(asked) < len(others):
                twin = measurement.exact(others[len(asked)], 1)
            elif others:
                raise Diverged("the number of releases depends on the ratings")
            released = super().release_together(kept, values, **options)
            asked.append(values)
            copies = (table.copy() for table in released)
            tables.extend(map(Table, kept.queries, kept.sums, copies, twin))
            if stop_after is not None and len(tables) >= stop_after:
                raise stop(tables)
            return released

    fit = solver.fit(ratings, budget, replace(session, make_gate=Watched))
    return Transcript(tuple(tables), tuple(asked), fit)


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
    tables: list[Table] = []
    asked: list[Values] = []

    class Played(Gate):
        def release_together(
            self, measurement: JointMeasurement, values: Values, **options: Any
        ) -> tuple[npt.NDArray[np.float64], ...]:
            kept = _Kept(measurement)
            super().release_together(kept, values, **options)  # books; what it draws is dropped
            played = history.tables[len(tables) : len(tables) + len(kept.sums)]
            if [table.query for table in played] != list(kept.queries):
                raise Diverged(f"release {len(tables)} depends on the ratings of the other world")
            asked.append(values)
            released = [table.released for table in played]
            tables.extend(map(Table, kept.queries, kept.sums, released))
            return tuple(table.copy() for table in released)

    session = replace(session, noise=None, folder=None, make_gate=Played)
    fit = solver.fit(ratings, budget, session)
    if len(tables) != len(history.tables):
        raise Diverged("the number of releases depends on the ratings")
    return Transcript(tuple(tables), tuple(asked), fit)


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
    parts: list[Any] = [fit.mean, fit.residual_variance]
    if fit.prior is not None:
        parts += [fit.prior.residual_variance, fit.prior.variances]
    for side in (fit.users, fit.items):
        if side is not None:
            parts += [side.biases, side.factors, side.bias_variances, side.variances]
    return np.concatenate([np.ravel(part) for part in parts if part is not None]).astype(float)


class _Kept:
    """A measurement that keeps the exact sums it gave. Private."""

    def __init__(self, measurement: JointMeasurement) -> None:
        self._measurement = measurement
        self.queries = measurement.queries
        self.sums: tuple[Sums, ...] = ()

    def exact(self, values: Values, threads: int | None = None) -> tuple[Sums, ...]:
        self.sums = self._measurement.exact(values, threads)
        return self.sums
