"""The way out for what is not private: exact sums, and a ledger that says so."""

import numpy as np
import numpy.typing as npt

from taciturn._internal import parallel
from taciturn.accounting.events import ExactRelease
from taciturn.accounting.ledger import Ledger
from taciturn.accounting.units import Unit
from taciturn.mechanisms.query import BoundedQuery, JointMeasurement, Measurement
from taciturn.mechanisms.run_folder import RunFolder


class OpenDoor:
    """Takes a gate's place and hands out exact sums; no guarantee survives it.

    Solvers that are compared with private ones run the same steps through it.
    """

    def __init__(
        self, *, unit: Unit, folder: RunFolder | None = None, threads: int | None = None
    ) -> None:
        self._unit, self._folder = unit, folder
        self._ledger = folder._ledger if folder else Ledger()
        self._threads = parallel.thread_count(threads)

    position = 0

    @property
    def ledger(self) -> Ledger:
        """A copy of the ledger as it stands."""
        return Ledger(self._ledger.events, run=self._ledger.run)

    def noise_scale(self, query: BoundedQuery, share: float) -> float:
        """Return the noise that a release would carry: none."""
        return 0.0

    def book(self, purpose: str) -> None:
        """Book, once, that something leaves without noise."""
        if not self._ledger.events:
            event = ExactRelease(purpose=purpose, unit=self._unit)
            if self._folder:
                self._folder.book([event])
            self._ledger.append(event)

    def release(
        self, measurement: Measurement, values: npt.NDArray[np.int32], *, share: float
    ) -> npt.NDArray[np.float64]:
        """Return exact sums. Reads private data; the result is private too."""
        self.book(measurement.query.purpose)
        return np.multiply(measurement.exact(values, self._threads), measurement.query.step)

    def release_together(
        self,
        measurement: JointMeasurement,
        values: npt.NDArray[np.int32],
        *,
        shares: tuple[float, ...],
    ) -> tuple[npt.NDArray[np.float64], ...]:
        """Return several exact tables. Reads private data; the result is private too."""
        queries = measurement.queries
        self.book(queries[0].purpose)
        tables = measurement.exact(values, self._threads)
        return tuple(
            np.multiply(sums, query.step) for query, sums in zip(queries, tables, strict=True)
        )

    def close(self) -> None:
        """Complete the run; there is no key to erase."""
