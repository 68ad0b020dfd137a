"""Privacy budgets, stated as (ε, δ) or as μ."""

from dataclasses import dataclass

from taciturn.accounting import gaussian
from taciturn.accounting.calibration import calibrate
from taciturn.errors import InvalidParameter


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Maximum privacy cost of a run: μ, and the (ε, δ) it is stated as.

    Build one with `Budget.from_epsilon` or `Budget.from_mu`. A μ that exceeds ε at δ is refused.
    """

    epsilon: float
    delta: float
    mu: float

    def __post_init__(self) -> None:
        gaussian.check_epsilon(self.epsilon)
        gaussian.check_stated_delta(self.delta)
        if gaussian.epsilon_upper(self.delta, self.mu) > self.epsilon:
            raise InvalidParameter(
                f"mu {self.mu} spends more than epsilon {self.epsilon} at delta {self.delta}; "
                "use Budget.from_epsilon or Budget.from_mu"
            )

    @classmethod
    def from_epsilon(cls, epsilon: float, delta: float) -> "Budget":
        """Budget of overall (ε, δ); μ is calibrated and rounded towards privacy."""
        return cls(epsilon=epsilon, delta=delta, mu=calibrate(epsilon, delta))

    @classmethod
    def from_mu(cls, mu: float, delta: float) -> "Budget":
        """Budget of μ, stated at `delta` with ε rounded up."""
        return cls(epsilon=gaussian.epsilon_upper(delta, mu), delta=delta, mu=mu)
