"""Privacy budgets, stated as (ε, δ) or as μ."""

from dataclasses import dataclass

from taciturn._internal.html import summary
from taciturn.accounting import gaussian, text
from taciturn.accounting.calibration import calibrate
from taciturn.accounting.certificate import rounded_up
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

    def _repr_html_(self) -> str:
        rate = rounded_up(100 * gaussian.true_positive_rate(0.01, self.mu), 2)
        facts = [
            ("ε", f"{self.epsilon:g}"),
            ("δ", f"{self.delta:g}"),
            ("μ", rounded_up(self.mu, 6)),
            ("attacker", text.ATTACKER_LINE.format(false="1", true=rate)),
        ]
        note = "What a budget protects depends on the privacy unit, which the solver states."
        return summary("Privacy budget", facts, [note])

    @classmethod
    def from_epsilon(cls, epsilon: float, delta: float) -> "Budget":
        """Budget of overall (ε, δ); μ is calibrated and rounded towards privacy."""
        return cls(epsilon=epsilon, delta=delta, mu=calibrate(epsilon, delta))

    @classmethod
    def from_mu(cls, mu: float, delta: float) -> "Budget":
        """Budget of μ, stated at `delta` with ε rounded up."""
        return cls(epsilon=gaussian.epsilon_upper(delta, mu), delta=delta, mu=mu)
