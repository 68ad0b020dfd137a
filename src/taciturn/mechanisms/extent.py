"""Extent of a run: the maximum size of its releases, and the μ that it leaves for ideal noise.

The sampler is not ideal, and its random words come from a cipher. The cost of both depends on how
many numbers differ between neighbouring datasets, and must be known before the first release
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
"""Fraction of ε and δ reserved for rounding errors in the certificate of a fully spent budget."""


@dataclass(frozen=True, kw_only=True)
class Extent:
    """Maximum size of all releases of a run together, fixed before the first of them.

    It determines the cost of the sampler's error (docs/proofs/sampler.md).

    Attributes
    ----------
    coordinates
        Maximum number of entries that differ between neighbouring datasets.
    releases
        Number of tables.
    numbers
        Number of entries in these tables.
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
        """Sum of two extents."""
        return Extent(
            coordinates=self.coordinates + other.coordinates,
            releases=self.releases + other.releases,
            numbers=self.numbers + other.numbers,
        )

    def covers(self, other: "Extent") -> bool:
        """True if no count of the other extent is larger."""
        return all(own >= each for own, each in zip(astuple(self), astuple(other), strict=True))

    @property
    def error(self) -> float:
        """Cost λ of the sampler's error on all coordinates."""
        return -self.coordinates * math.log1p(-sampler.ERROR)

    @property
    def tail(self) -> float:
        """Cost κ of the sampler's tail on all coordinates and of the cipher in all releases."""
        return self.coordinates * sampler.TAIL + self.releases * sampler.CIPHER


SMALL = Extent(coordinates=4096, releases=1024, numbers=2**28)
"""Default extent, for a run without a plan."""


def ideal_mu(budget: Budget, extent: Extent) -> float:
    """Largest μ of ideal noise with which the certificate stays within the budget."""
    if extent.numbers > sampler.NUMBERS_MAX:
        raise InvalidParameter(
            f"a run may release at most {sampler.NUMBERS_MAX:,} noisy numbers, this one would "
            f"release {extent.numbers:,}; use fewer iterations or factors"
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
