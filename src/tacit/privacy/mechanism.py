"""The Gaussian mechanism: the only door out of the private side.

`Gate.release` is the one place that computes a noise scale, books an event and draws noise, in that
order. What it returns may be published; what goes in may not.
"""

import json
import math
import threading
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from tacit import _core, _parallel, _validate
from tacit.errors import BudgetExceeded, InvalidParameter, NoiseReuse
from tacit.privacy.budget import Budget
from tacit.privacy.calibration import MARGIN, calibrate
from tacit.privacy.events import GaussianRelease
from tacit.privacy.ledger import Ledger
from tacit.privacy.noise import sampler
from tacit.privacy.noise.source import BLOCK, NoiseSource, SecureNoise
from tacit.privacy.query import BoundedQuery, Measurement
from tacit.privacy.run_folder import RunFolder
from tacit.privacy.units import Unit

RESERVE = 1e-5
"""Share of ε and δ set aside for the sampler's error."""


class Gate:
    """Releases private sums with Gaussian noise, within a budget.

    Parameters
    ----------
    budget
        What all releases together may cost. A share of 1e-5 is set aside for the error of the
        sampler; the certificate of the ledger never exceeds the budget.
    unit
        The unit that every query must be bounded under.
    noise
        Where noise comes from; a fresh secure source when omitted.
    folder
        Keeps ledger and noise key on disk, so that an interrupted run can go on with the same
        noise; see `RunFolder`. Takes the place of `noise`.
    threads
        How many threads draw noise; the result does not depend on it.
    """

    def __init__(
        self,
        *,
        budget: Budget,
        unit: Unit,
        noise: NoiseSource | None = None,
        folder: RunFolder | None = None,
        threads: int | None = None,
    ) -> None:
        if noise is not None and folder is not None:
            raise InvalidParameter("give a noise source or a run folder, which has its own")
        self.budget = budget
        self.unit = Unit(unit)
        self.mu = calibrate(budget.epsilon * (1 - RESERVE), budget.delta * (1 - RESERVE))
        self._folder = folder
        self._noise = folder.noise if folder else noise or SecureNoise()
        self._noise.claim()
        self._ledger = folder.ledger if folder else Ledger()
        self._threads = _parallel.thread_count(threads)
        self._lock = threading.Lock()
        self._position = 0
        self._spent = _Spent()

    def __reduce__(self) -> NoReturn:
        raise NoiseReuse("a gate cannot be copied: both copies would draw the same noise")

    @property
    def ledger(self) -> Ledger:
        """A copy of the ledger as it stands."""
        return Ledger(self._ledger.events, run=self._ledger.run)

    def plan(self, query: BoundedQuery, share: float) -> GaussianRelease:
        """Return the event that releasing `query` with a share of the budget's μ² would book.

        The noise scale is sensitivity/(μ√share), rounded up. Reads no private data.
        """
        if query.unit is not self.unit:
            raise InvalidParameter(
                f"this run protects unit {self.unit}, the query is bounded under {query.unit}"
            )
        share = _validate.positive("share", share, "shares of the budget add up to at most 1")
        if share > 1:
            raise InvalidParameter(f"share must be at most 1, got {share}")
        sigma = query.sensitivity / (self.mu * math.sqrt(share)) * (1 + 2.0**-50)
        if query.sensitivity > sampler.RATIO_MAX * sigma:
            raise InvalidParameter(
                f"one release may spend at most mu = {sampler.RATIO_MAX:g}; "
                "spread the budget over several"
            )
        sampler.check_scale(sigma)
        return GaussianRelease(
            purpose=query.purpose,
            unit=query.unit,
            sensitivity=math.ldexp(query.sensitivity, query.exponent),
            noise_scale=math.ldexp(sigma, query.exponent),
            rows=query.rows,
            noise=self._noise.kind,
            coordinates=query.coordinates,
            sampler_error=sampler.relative_error(sigma),
            sampler_tail=sampler.TAIL,
        )

    def release(
        self, measurement: Measurement, values: npt.NDArray[np.int32], *, share: float
    ) -> npt.NDArray[np.float64]:
        """Release the sums of a measurement with Gaussian noise, for a share of the budget's μ².

        Reads private data, `values`; what it returns may be published. Books the event first,
        durably if the run has a folder, then draws the noise: a crash in between costs budget and
        reveals nothing. No exception depends on the sums: that they stay within the query's
        magnitude is up to the measurement, and sums that did not would only wrap around, which is
        post-processing. In a resumed run the events that were booked before must come again in the
        same order with the same sums, and draw the same noise.

        Raises
        ------
        BudgetExceeded
            The shares add up to more than 1; nothing was booked.
        NoiseReuse
            A resumed run asks for something else than it did before, or the run is complete.
        """
        query = measurement.query
        event = self.plan(query, share)
        sums = measurement.exact(values, self._threads)
        if sums.shape != query.shape or sums.dtype != np.int64:
            raise InvalidParameter("a measurement must give 64-bit integers of its query's shape")
        with self._lock:
            position, spent = self._position, self._after(event)
            self._noise.secret()  # raises if the noise cannot be used, before anything is booked
            self._book(position, event)
            if self._folder:
                facts = json.dumps(asdict(query), sort_keys=True).encode()
                use = self._noise.fingerprint(position, facts, np.ascontiguousarray(sums).data)
                self._folder.bind(position, use)
            self._spent = spent
            self._position = position + 1
            return self._noised(sums, position, query, event)

    def _book(self, position: int, event: GaussianRelease) -> None:
        """Book an event that is new; one that was booked before must be the same."""
        booked = self._ledger.events
        if position < len(booked):
            if self._folder is None or booked[position] != event:
                raise NoiseReuse(
                    f"event {position} of this run was {booked[position].purpose!r} with other "
                    "parameters; resume with the same configuration or begin a new run"
                )
            return
        if self._folder:
            self._folder.book(event)
        self._ledger.append(event)

    def close(self) -> None:
        """Complete the run: erase the noise key, here and on disk. The ledger stays."""
        with self._lock:
            self._noise.erase()
            if self._folder:
                self._folder.erase_key()

    def _after(self, event: GaussianRelease) -> "_Spent":
        """Return the cost after `event`, or raise if the budget does not cover it."""
        spent = self._spent.plus(event)
        if spent.square > Fraction(self.mu * (1 + MARGIN)) ** 2:
            raise BudgetExceeded(
                "the shares of the releases add up to more than the budget; nothing was released"
            )
        reserve = RESERVE / 4
        if spent.error > reserve * min(1.0, self.budget.epsilon):
            raise BudgetExceeded(
                "the releases touch too many coordinates for the share set aside for the "
                "sampler's error; nothing was released"
            )
        if spent.tail > reserve * self.budget.delta:
            raise BudgetExceeded(
                f"delta = {self.budget.delta:g} is too small for the sampler's tail; use 1e-30"
            )
        return spent

    def _noised(
        self,
        sums: npt.NDArray[np.int64],
        position: int,
        query: BoundedQuery,
        event: GaussianRelease,
    ) -> npt.NDArray[np.float64]:
        table = _core.Ziggurat(math.ldexp(event.noise_scale, -query.exponent))
        rows, width = query.shape
        size = max(1, BLOCK // width)
        released = np.empty(query.shape, dtype=np.float64)

        def work(begin: int, end: int) -> None:
            noise = self._noise.integers(
                table, event=position, block=begin // size, count=(end - begin) * width
            )
            noise = noise.reshape(end - begin, width)
            noise += sums[begin:end]
            np.multiply(noise, query.step, out=released[begin:end])

        _parallel.for_ranges(work, rows, size=size, threads=self._threads)
        return released


@dataclass(frozen=True)
class _Spent:
    """A running total: μ² exactly, so that many small shares may add up to just 1."""

    square: Fraction = Fraction(0)
    error: float = 0.0
    tail: float = 0.0

    def plus(self, event: GaussianRelease) -> "_Spent":
        error, tail = event.sampler_charge()
        square = self.square + Fraction(event.mu) ** 2
        return _Spent(square=square, error=self.error + error, tail=self.tail + tail)
