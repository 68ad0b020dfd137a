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
    """Takes the place of a `Gate` and returns exact answers; no guarantee survives it.

    Solvers that private ones are compared with run the same steps through it.
    """

    position = 0

    def __init__(self, *, unit: Unit, folder: RunFolder | None = None) -> None:
        self._unit, self._folder = unit, folder
        self._ledger = folder._ledger if folder else Ledger()
        if not all(isinstance(event, ExactRelease) for event in self._ledger.events):
            raise NoiseReuse("the ledger of the run holds what this gate never records")

    @property
    def ledger(self) -> Ledger:
        """A copy of the ledger as it stands."""
        return Ledger(self._ledger.events, run=self._ledger.run)

    def _record(self) -> None:
        """Record, once, that something leaves without noise."""
        if not self._ledger.events:
            event = ExactRelease(purpose=EXACT, unit=self._unit)
            if self._folder:
                self._folder.book([event])
            self._ledger.append(event)

    def release(self, spec: QuerySpec, executor: Executor, *, shares: Sequence[float]) -> Released:
        """Exact tables of a query spec. Reads private data; the result is private too."""
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
        """Every rating as it is, which a `Gate` never hands on. Reads private data."""
        self._record()
        return Released(spec=None, tables=(executor.every_value(),), noise_scales=(0.0,))

    def close(self) -> None:
        """Complete the run; there is no key to erase."""
