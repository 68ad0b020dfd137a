"""Extent of a run: the maximum size of its releases, and what that leaves of its budget.

The sampler is not ideal, and the words it draws from come from a cipher. What both cost depends on
how many numbers one neighbouring change can touch, and has to be known before the first release
(docs/proofs/sampler.md). Nothing here reads private data.
"""

import math
from collections.abc import Iterable
from dataclasses import astuple, dataclass

from taciturn.accounting import sampler
from taciturn.accounting.budget import Budget
from taciturn.accounting.calibration import calibrate
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.query import BoundedQuery

_ROOM = 1e-9
"""Share of ε left for rounding in the certificate of a ledger that spends all of the rest."""


@dataclass(frozen=True, kw_only=True)
class Extent:
    """Maximum size of all releases of a run together, fixed before the first of them.

    The cost of the sampler's error follows from it (docs/proofs/sampler.md).

    Attributes
    ----------
    coordinates
        Numbers that one neighbouring change can touch.
    releases
        Tables.
    numbers
        Numbers in these tables.
    """

    coordinates: int
    releases: int
    numbers: int

    @classmethod
    def of(cls, queries: Iterable[BoundedQuery]) -> "Extent":
        """Extent of releasing each of these queries once."""
        queries = list(queries)
        return cls(
            coordinates=sum(query.coordinates for query in queries),
            releases=len(queries),
            numbers=sum(math.prod(query.shape) for query in queries),
        )

    def plus(self, other: "Extent") -> "Extent":
        """Extent of both together."""
        return Extent(
            coordinates=self.coordinates + other.coordinates,
            releases=self.releases + other.releases,
            numbers=self.numbers + other.numbers,
        )

    def covers(self, other: "Extent") -> bool:
        """Whether nothing of the other is larger."""
        return all(own >= each for own, each in zip(astuple(self), astuple(other), strict=True))

    @property
    def error(self) -> float:
        """λ of all coordinates."""
        return -self.coordinates * math.log1p(-sampler.ERROR)

    @property
    def tail(self) -> float:
        """κ of all coordinates and releases."""
        return self.coordinates * sampler.TAIL + self.releases * sampler.CIPHER


SMALL = Extent(coordinates=4096, releases=1024, numbers=2**28)
"""Extent of a run whose releases were not planned."""


def ideal_mu(budget: Budget, extent: Extent) -> float:
    """Largest μ of ideal noise for which the certificate stays within the budget."""
    if extent.numbers > sampler.NUMBERS_MAX:
        raise InvalidParameter(
            f"a run may draw at most {sampler.NUMBERS_MAX:,} numbers, this one {extent.numbers:,}; "
            "use fewer iterations or factors"
        )
    epsilon = (budget.epsilon - 2 * extent.error) * (1 - _ROOM)
    delta = (budget.delta - extent.tail) * math.exp(-extent.error) * (1 - _ROOM)
    if epsilon < budget.epsilon / 2:
        raise InvalidParameter(
            f"epsilon = {budget.epsilon:g} is too small: the sampler's error on "
            f"{extent.coordinates:,} coordinates would cost {2 * extent.error:.2g} of it; use a "
            "larger epsilon, or fewer items, factors or iterations"
        )
    if delta < budget.delta / 2:
        raise InvalidParameter(
            f"delta = {budget.delta:g} is too small: the cipher and the sampler's tail would cost "
            f"{extent.tail:.2g} of it; 1e-10 is small enough for any data"
        )
    return calibrate(epsilon, delta)
