"""The Gaussian mechanism, through which all private releases pass.

`Gate.release` is the one place that computes a noise scale, records an event and draws noise, in
that order. Its inputs are private; its outputs may be published.
"""

import json
import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict
from fractions import Fraction
from typing import NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from taciturn import _core
from taciturn._internal import parallel, validate
from taciturn.accounting import sampler
from taciturn.accounting.budget import Budget
from taciturn.accounting.calibration import MARGIN
from taciturn.accounting.events import (
    OBSERVED,
    Event,
    ExactRelease,
    FoldInServing,
    GaussianRelease,
    PatternRelease,
)
from taciturn.accounting.ledger import Ledger
from taciturn.accounting.units import Unit
from taciturn.errors import BudgetExceeded, InvalidParameter, NoiseReuse
from taciturn.mechanisms.extent import SMALL, Extent, ideal_mu
from taciturn.mechanisms.noise import BLOCK, NoiseSource, SecureNoise, check_source
from taciturn.mechanisms.query import Answer, BoundedQuery, Executor, QuerySpec, Released
from taciturn.mechanisms.run_folder import TOGETHER_MAX, RunFolder


class _Observer(Protocol):
    """Audit that sees the exact sums of a run; the ledger of an observed run has status `none`."""

    def asked(self, spec: QuerySpec, executor: Executor) -> None:
        """Receive a query spec before it is answered. Private."""

    def released(
        self,
        queries: Sequence[BoundedQuery],
        events: Sequence[GaussianRelease],
        tables: Sequence[npt.NDArray[np.int64]],
        released: tuple[npt.NDArray[np.float64], ...],
    ) -> tuple[npt.NDArray[np.float64], ...]:
        """Receive exact and noisy tables; the run continues with the tables that this returns."""


_observer: ContextVar[_Observer | None] = ContextVar("observer", default=None)


@contextmanager
def _observed(observer: _Observer) -> Iterator[None]:
    """Show an observer every release of the gates that are created in this context."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


class Gate:
    """Releases private sums with Gaussian noise, within a budget.

    Parameters
    ----------
    budget
        Maximum cost of all releases together. The cost of the sampler's error is reserved in
        advance, so the certificate of the ledger never exceeds the budget.
    unit
        Privacy unit that every query must be bounded under.
    noise
        Noise source. Default: a fresh secure one.
    folder
        Keeps ledger and noise key on disk, so that an interrupted run can resume with the same
        noise; see `RunFolder`. Use it instead of `noise`.
    position
        Number of events of a resumed run to skip because the caller already has their results. They
        count towards the budget.
    threads
        Number of threads that draw noise; the result does not depend on it.
    extent
        Maximum size of all releases together; a release that would exceed it is refused.
    """

    def __init__(
        self,
        *,
        budget: Budget,
        unit: Unit,
        noise: NoiseSource | None = None,
        folder: RunFolder | None = None,
        position: int = 0,
        threads: int | None = None,
        extent: Extent = SMALL,
    ) -> None:
        if noise is not None and folder is not None:
            raise InvalidParameter(
                "pass either noise or folder, not both: a run folder has its own noise source"
            )
        self.budget = budget
        self.unit = Unit(unit)
        self.extent = extent
        self.mu = ideal_mu(budget, extent)
        self._folder = folder
        if folder is not None and type(folder) is not RunFolder:
            raise InvalidParameter("folder must be a RunFolder; create one with RunFolder.create")
        self._noise = folder._noise if folder else noise or SecureNoise()
        check_source(self._noise)
        self._noise.claim()
        self._observer = _observer.get()
        self._ledger = folder._ledger if folder else Ledger()
        self._threads = parallel.thread_count(threads)
        self._lock = threading.Lock()
        recorded = self._ledger.events
        if not 0 <= position <= len(recorded):
            raise NoiseReuse(
                "the run cannot resume after events that its ledger does not have; start a new run"
            )
        self._position = position
        # μ² is exact, so that many small budget shares may sum to exactly 1.
        self._square, self._drawn = Fraction(0), Extent(coordinates=0, releases=0, numbers=0)
        for event in recorded[:position]:
            if isinstance(event, ExactRelease) or event.unit is not self.unit:
                raise NoiseReuse(
                    "the ledger of the run has exact releases or another unit; start a new run"
                )
            if isinstance(event, GaussianRelease):
                self._square = self._after(event, self._square)
                skipped = Extent(coordinates=event.coordinates, releases=1, numbers=0)
                self._drawn = self._drawn.plus(skipped)

    def __reduce__(self) -> NoReturn:
        raise NoiseReuse("a gate cannot be copied: both copies would draw the same noise")

    @property
    def ledger(self) -> Ledger:
        """Copy of the current ledger; the ledger of an observed run has status `none`."""
        ledger = Ledger(self._ledger.events, run=self._ledger.run)
        if self._observer is not None:
            ledger.append(ExactRelease(purpose=OBSERVED, unit=self.unit))
        return ledger

    @property
    def position(self) -> int:
        """Number of events of the run that were released or skipped."""
        return self._position

    def plan(self, query: BoundedQuery, share: float) -> GaussianRelease:
        """Event that would be recorded for releasing `query` with a budget share.

        The noise scale is sensitivity/(μ√share), rounded up. Reads no private data.
        """
        if query.unit is not self.unit:
            raise InvalidParameter(
                f"this run protects unit {self.unit}, but the query is bounded under unit "
                f"{query.unit}; use a query for unit {self.unit}"
            )
        share = validate.positive("share", share, "all budget shares sum to at most 1")
        if share > 1:
            raise InvalidParameter(
                f"share must be at most 1, got {share}; it is a fraction of the budget"
            )
        sigma = query.sensitivity / (self.mu * math.sqrt(share)) * (1 + 2.0**-50)
        if query.sensitivity > sampler.RATIO_MAX * sigma:
            raise InvalidParameter(
                f"one release may spend at most mu = {sampler.RATIO_MAX:g}; "
                "divide the budget among several releases"
            )
        sampler.check_scale(sigma)
        return GaussianRelease(
            purpose=query.purpose,
            proof=query.proof,
            unit=query.unit,
            sensitivity=math.ldexp(query.sensitivity, query.exponent),
            noise_scale=math.ldexp(sigma, query.exponent),
            rows=query.rows,
            noise=self._noise.kind,
            coordinates=query.coordinates,
            sampler_error=sampler.ERROR,
            sampler_tail=sampler.TAIL,
            flaw=query.flaw,
        )

    def plan_all(self, asked: Iterable[tuple[BoundedQuery, float]]) -> list[GaussianRelease]:
        """Events that would be recorded for releasing (query, budget share) pairs.

        Raises if the gate would refuse one of them; records nothing.
        """
        asked = list(asked)
        extent, square = Extent.of(query for query, _ in asked), Fraction(0)
        if not self.extent.covers(extent):
            raise BudgetExceeded(_TOO_LARGE)
        events = [self.plan(query, share) for query, share in asked]
        for event in events:
            square = self._after(event, square)
        return events

    def publish_pattern(self, purpose: str) -> None:
        """Record the exact release of a statistic of the rating pattern; free under `value`.

        The gate refuses further releases afterwards.
        """
        event = PatternRelease(purpose=purpose, unit=self.unit)
        if not event.is_free:
            raise InvalidParameter(
                f"unit {self.unit} protects the rating pattern, so it cannot be published without "
                "noise"
            )
        self._record_last(event)

    def serve_by_fold_in(self, purpose: str) -> None:
        """Record that each user is shown an exact profile of their own, which nobody else sees.

        The gate refuses further releases afterwards: none can depend on these profiles.
        """
        self._record_last(FoldInServing(purpose=purpose, unit=self.unit))

    def _record_last(self, event: PatternRelease | FoldInServing) -> None:
        with self._lock:
            self._record(self._position, [event])
            self._position += 1

    def release(self, spec: QuerySpec, executor: Executor, *, shares: Sequence[float]) -> Released:
        """Release the tables of a query spec with Gaussian noise, each with its budget share.

        Reads private data through the executor; the released tables may be published. Records all
        events first, durably if the run has a folder, and then draws noise, so a crash in between
        costs budget but reveals nothing. No exception depends on the sums. The spec must keep them
        within its queries' magnitudes; larger sums would only wrap around, which is
        post-processing. A resumed run must repeat the recorded events in the same order with the
        same sums, and draws the same noise.

        Raises
        ------
        BudgetExceeded
            The budget shares sum to more than 1; nothing was recorded.
        NoiseReuse
            A resumed run differs from its recorded events, or the run is complete.
        """
        queries = spec.queries
        if not 0 < len(queries) <= TOGETHER_MAX:
            raise InvalidParameter(
                f"a query spec must have 1 to {TOGETHER_MAX} tables to release together, got "
                f"{len(queries)}"
            )
        events = [self.plan(query, share) for query, share in zip(queries, shares, strict=True)]
        if self._observer is not None:
            self._observer.asked(spec, executor)
        answer = executor.answer(spec)
        _check_answer(queries, answer)
        tables = answer.tables
        with self._lock:
            position, square = self._position, self._square
            last = PatternRelease | FoldInServing
            if any(isinstance(event, last) for event in self._ledger.events[:position]):
                raise InvalidParameter(
                    "nothing can be released after the rating pattern was published or users were "
                    "served; call publish_pattern and serve_by_fold_in last"
                )
            for event in events:
                square = self._after(event, square)
            drawn = self._drawn.plus(Extent.of(queries))
            if not self.extent.covers(drawn):
                raise BudgetExceeded(_TOO_LARGE)
            self._noise._secret()  # raises if the noise cannot be used, before anything is recorded
            self._record(position, events)
            if self._folder:
                uses = [
                    self._use(position + place, query, sums)
                    for place, (query, sums) in enumerate(zip(queries, tables, strict=True))
                ]
                self._folder.bind(position, uses)
            self._square, self._drawn = square, drawn
            self._position = position + len(events)
            drafts = [
                _Draft(position + place, query, event, sums)
                for place, (query, event, sums) in enumerate(
                    zip(queries, events, tables, strict=True)
                )
            ]
            released = self._noised(drafts)
        if self._observer is not None:
            released = self._observer.released(queries, events, tables, released)
        scales = tuple(event.noise_scale for event in events)
        return Released(spec=spec, tables=released, noise_scales=scales, private=answer.private)

    def _record(self, position: int, events: Sequence[Event]) -> None:
        """Record new events; raise if an event differs from the one already recorded."""
        recorded = self._ledger.events
        for place, (known, event) in enumerate(zip(recorded[position:], events, strict=False)):
            if self._folder is None or known != event:
                raise NoiseReuse(
                    f"event {position + place} of this run was {known.purpose!r} with other "
                    "parameters; resume with the same configuration or start a new run"
                )
        new = events[max(0, len(recorded) - position) :]
        if self._folder and new:
            self._folder.record(new)
        for event in new:
            self._ledger.append(event)

    def _use(self, event: int, query: BoundedQuery, sums: npt.NDArray[np.int64]) -> str:
        """Fingerprint of the query and the sums that the noise of an event is added to."""
        facts = json.dumps(asdict(query), sort_keys=True).encode()
        return self._noise._fingerprint(event, facts, np.ascontiguousarray(sums).data)

    def close(self) -> None:
        """Complete the run: erase the noise key, here and on disk. The ledger stays."""
        with self._lock:
            self._noise.erase()
            if self._folder:
                self._folder.erase_key()

    def _after(self, event: GaussianRelease, before: Fraction) -> Fraction:
        """μ² after `event`; raises if the budget does not cover it."""
        square = before + Fraction(event.mu) ** 2
        if square > Fraction(self.mu * (1 + MARGIN)) ** 2:
            raise BudgetExceeded(
                "the budget shares of all releases sum to more than the budget; this release "
                "was not made"
            )
        return square

    def _noised(self, drafts: list["_Draft"]) -> tuple[npt.NDArray[np.float64], ...]:
        """Noisy tables. Threads share the blocks of all tables."""
        blocks = [(draft, block) for draft in drafts for block in range(draft.blocks)]

        def work(begin: int, end: int) -> None:
            for draft, block in blocks[begin:end]:
                draft.add_noise(self._noise, block)

        parallel.for_ranges(work, len(blocks), size=1, threads=self._threads)
        return tuple(draft.released for draft in drafts)


def _check_answer(queries: Sequence[BoundedQuery], answer: Answer) -> None:
    """Raise unless an answer fits its queries; that of a proven query has only its tables."""
    for query, sums in zip(queries, answer.tables, strict=True):
        if sums.shape != query.shape or sums.dtype != np.int64:
            raise InvalidParameter("an answer must have 64-bit integers of its query's shape")
    if answer.private is not None and any(query.flaw is None for query in queries):
        raise InvalidParameter("a proven query must return nothing but its tables")


_TOO_LARGE = (
    "the releases have more coordinates, tables or numbers than planned in the extent of the run; "
    "this release was not made"
)


class _Draft:
    """Table to which noise is being added block by block; a block has whole rows."""

    def __init__(
        self, event: int, query: BoundedQuery, facts: GaussianRelease, sums: npt.NDArray[np.int64]
    ) -> None:
        self._event, self._sums, self._step = event, sums, query.step
        self._table = _core.Ziggurat(math.ldexp(facts.noise_scale, -query.exponent))
        rows, self._width = query.shape
        self._size = max(1, BLOCK // self._width)
        self.blocks = -(-rows // self._size)
        self.released = np.empty(query.shape, dtype=np.float64)

    def add_noise(self, source: NoiseSource, block: int) -> None:
        rows = slice(block * self._size, (block + 1) * self._size)
        sums = self._sums[rows]
        noise = source._integers(self._table, event=self._event, block=block, count=sums.size)
        noise = noise.reshape(sums.shape)
        noise += sums
        np.multiply(noise, self._step, out=self.released[rows])
