"""What an audit says: a claim, what was found against it, and a verdict in plain words."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.ledger import Ledger
from taciturn.errors import InvalidParameter
from taciturn.solvers.solver import Solver

OWNER = (
    "An audit reads private data and shows exact facts about it if it is given real ratings: the "
    "owner's own view."
)


class Verdict(StrEnum):
    """Whether something speaks against a claim; nothing ever speaks for one."""

    NO_EVIDENCE = "no-evidence"
    VIOLATED = "violated"

    @property
    def words(self) -> str:
        """The verdict for people."""
        if self is Verdict.VIOLATED:
            return "the claim is violated"
        return "no evidence against the claim"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a certificate claims: ε at δ, and the μ whose trade-off curve no attacker gets below."""

    epsilon: float
    delta: float
    mu: float
    status: str


def claim_of(ledger: Ledger, solver: Solver, budget: Budget | None) -> Claim:
    """Claim of a run; that of the published algorithm has its own ε."""
    delta = solver.stated_delta(budget)
    certificate = Certificate.from_ledger(ledger, delta)
    if certificate.epsilon is None or certificate.mu is None:
        raise InvalidParameter(f"{solver.name} claims nothing: there is no claim to audit")
    return Claim(
        epsilon=solver.claimed_epsilon(certificate.epsilon, budget),
        delta=delta,
        mu=certificate.mu,
        status=certificate.status.value,
    )


def claim_to_dict(claim: Claim) -> dict[str, Any]:
    """Return a claim as JSON types, marked as owner-only: an audit reads private data."""
    return {
        "view": "owner",
        "claimed_epsilon": claim.epsilon,
        "delta": claim.delta,
        "claimed_mu": claim.mu,
        "status": claim.status,
    }


def exceeded(lower: float, claimed: float) -> list[str]:
    """Return that a lower bound exceeds what is claimed, or nothing."""
    if lower <= claimed:
        return []
    return [f"mu is at least {lower:.4f}, and {claimed:.4f} is claimed"]
