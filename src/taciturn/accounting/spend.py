"""Privacy cost of a run: that of ideal Gaussian noise, and that of the sampler's error.

Let the implemented noise have point masses within a factor 1 ± γ of the ideal ones, except for a
tail of probability κ, and let neighbouring datasets differ in n coordinates. With

    λ = −n ln(1 − γ),    κ_n = n κ,

an ideal guarantee (ε, δ) becomes (ε + 2λ, e^λ δ + κ_n); see docs/proofs/sampler.md. κ_n also
includes, once for each release, the advantage in telling the cipher's keystream from uniform words.
λ and κ_n are summed over releases. Nothing here reads private data.
"""

import math
from dataclasses import dataclass

from taciturn.accounting import gaussian
from taciturn.errors import InvalidParameter

_RAISE = 1 + 2.0**-45
"""Factor that exceeds the rounding error of the few operations it is applied to."""


@dataclass(frozen=True, kw_only=True)
class Spend:
    """Cost of a run, rounded up: μ of ideal noise, λ (`error`) and κ (`tail`) of the sampler.

    All are 0 if nothing that the unit protects was released.
    """

    mu: float
    error: float
    tail: float

    def epsilon_upper(self, delta: float) -> float:
        """Upper bound on ε at `delta`; infinite if the sampler's error has no proven bound."""
        delta = gaussian.check_delta(delta)
        if self.mu == 0:
            return 0.0
        if self.error == 0 and self.tail == 0:
            return gaussian.epsilon_upper(delta, self.mu)
        if math.isinf(self.error):
            return math.inf
        inner = (delta - self.tail * _RAISE) * math.exp(-self.error) / _RAISE
        if inner <= 0:
            raise InvalidParameter(
                f"delta must exceed {self.tail:.2g}, the cost of the cipher and the sampler's "
                f"tail, got {delta:g}; 1e-10 is small enough for any data"
            )
        return (gaussian.epsilon_upper(inner, self.mu) + 2 * self.error) * _RAISE

    def true_positive_rate_upper(self, false_positive_rate: float) -> float:
        """Upper bound on the true-positive rate of any attacker."""
        if self.mu == 0:
            return false_positive_rate
        if math.isinf(self.error):
            return 1.0
        rate = min(false_positive_rate * math.exp(self.error), 1 - 2.0**-53)
        best = gaussian.true_positive_rate(rate, self.mu) * math.exp(self.error) + self.tail
        return min(1.0, best * (1 + 1e-12))
