"""Gate for non-private baselines: returns exact answers and records an `ExactRelease`."""

from collections.abc import Sequence

import numpy as np

from taciturn.accounting.events import EXACT, ExactRelease
from taciturn.accounting.ledger import Ledger
from taciturn.accounting.units import Unit
from taciturn.errors import NoiseReuse
from taciturn.mechanisms.query import Executor, QuerySpec, Released
from taciturn.mechanisms.run_folder import RunFolder


class ExactGate:
    """Replaces a `Gate` and returns exact answers, so that the run has no guarantee.

    Non-private baselines run the same steps as private solvers through it.
    """

    position = 0

    def __init__(self, *, unit: Unit, folder: RunFolder | None = None) -> None:
        self._unit, self._folder = unit, folder
        self._ledger = folder._ledger if folder else Ledger()
        if not all(isinstance(event, ExactRelease) for event in self._ledger.events):
            raise NoiseReuse(
                "the ledger of the run has events other than exact releases; start a new run"
            )

    @property
    def ledger(self) -> Ledger:
        """Copy of the current ledger."""
        return Ledger(self._ledger.events, run=self._ledger.run)

    def _record(self) -> None:
        """Record the exact release, once per run."""
        if not self._ledger.events:
            event = ExactRelease(purpose=EXACT, unit=self._unit)
            if self._folder:
                self._folder.record([event])
            self._ledger.append(event)

    def release(self, spec: QuerySpec, executor: Executor, *, shares: Sequence[float]) -> Released:
        """Exact tables of a query spec. Reads private data; the result is private."""
        queries = spec.queries
        self._record()
        answer = executor.answer(spec)
        pairs = zip(queries, answer.tables, strict=True)
        exact = tuple(np.multiply(sums, query.step) for query, sums in pairs)
        return Released(
            spec=spec,
            tables=exact,
            noise_scales=(0.0,) * len(queries),
            private=answer.private,
        )

    def read(self, executor: Executor) -> Released:
        """Every exact rating, which a `Gate` never returns. Reads private data."""
        self._record()
        return Released(spec=None, tables=(executor.every_value(),), noise_scales=(0.0,))

    def close(self) -> None:
        """Complete the run; does nothing, since there is no key to erase."""
