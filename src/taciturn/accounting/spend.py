"""What a run cost: ideal Gaussian noise, and the error of the sampler that stood in for it.

Let the implemented noise have point masses within a factor 1 ± γ of the ideal ones, but for a tail
of probability κ, and let one neighbouring change touch n coordinates. With

    λ = −n ln(1 − γ),    κ_n = n κ,

an ideal guarantee (ε, δ) becomes (ε + 2λ, e^λ δ + κ_n); see docs/proofs/sampler.md. κ_n also holds
the advantage in telling the cipher's keystream from uniform words, once for each release. λ and κ_n
add up over releases. Nothing here reads private data.
"""

import math
from dataclasses import dataclass

from taciturn.accounting import gaussian
from taciturn.errors import InvalidParameter

_RAISE = 1 + 2.0**-45
"""More than the rounding error of the few operations it is applied to."""


@dataclass(frozen=True, kw_only=True)
class Spend:
    """The cost of a run: μ of the ideal noise, λ and κ of the sampler; all rounded up."""

    mu: float
    error: float
    tail: float

    def epsilon_upper(self, delta: float) -> float:
        """Return an ε at `delta` that is never too small; infinite if nothing is proven."""
        delta = gaussian.check_delta(delta)
        if self.error == 0 and self.tail == 0:
            return gaussian.epsilon_upper(delta, self.mu)
        if math.isinf(self.error):
            return math.inf
        inner = (delta - self.tail * _RAISE) * math.exp(-self.error) / _RAISE
        if inner <= 0:
            raise InvalidParameter(
                f"delta must exceed {self.tail:.2g}, which the cipher and the sampler's tail cost, "
                f"got {delta:g}; 1e-10 is small enough for any data"
            )
        return (gaussian.epsilon_upper(inner, self.mu) + 2 * self.error) * _RAISE

    def true_positive_rate_upper(self, false_positive_rate: float) -> float:
        """Return a bound on any attacker's true-positive rate that is never too small."""
        if math.isinf(self.error):
            return 1.0
        rate = min(false_positive_rate * math.exp(self.error), 1 - 2.0**-53)
        best = gaussian.true_positive_rate(rate, self.mu) * math.exp(self.error) + self.tail
        return min(1.0, best * (1 + 1e-12))
