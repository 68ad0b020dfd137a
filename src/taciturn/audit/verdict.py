"""Claims that audits test, and the verdicts that they reach."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.ledger import Ledger
from taciturn.errors import InvalidParameter
from taciturn.solvers.solver import Solver

OWNER = (
    "Given real ratings, an audit reads private data and prints exact facts about it. Its output "
    "is owner-only and must not be published."
)


class Verdict(StrEnum):
    """Verdict of an audit: evidence against the claim, or none. An audit never confirms a claim."""

    NO_EVIDENCE = "no-evidence"
    VIOLATED = "violated"

    @property
    def words(self) -> str:
        """Verdict as a phrase."""
        if self is Verdict.VIOLATED:
            return "the claim is violated"
        return "no evidence against the claim"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Claim of a certificate: ε at δ, and the μ whose trade-off curve bounds every attacker."""

    epsilon: float
    delta: float
    mu: float
    status: str


def claim_of(ledger: Ledger, solver: Solver, budget: Budget | None) -> Claim:
    """Claim that follows from the ledger of a run; the `paper` solver states its own ε."""
    delta = solver.stated_delta(budget)
    certificate = Certificate.from_ledger(ledger, delta)
    if certificate.epsilon is None or certificate.mu is None:
        raise InvalidParameter(
            f"{solver.name} makes no privacy claim, so there is no claim to audit"
        )
    return Claim(
        epsilon=solver.claimed_epsilon(certificate.epsilon, budget),
        delta=delta,
        mu=certificate.mu,
        status=certificate.status.value,
    )


def claim_to_dict(claim: Claim) -> dict[str, Any]:
    """Claim as JSON types, marked as owner-only because an audit reads private data."""
    return {
        "view": "owner",
        "claimed_epsilon": claim.epsilon,
        "delta": claim.delta,
        "claimed_mu": claim.mu,
        "status": claim.status,
    }


def exceeded(lower: float, claimed: float) -> list[str]:
    """Messages for a lower bound above the claimed μ; empty if it is not."""
    if lower <= claimed:
        return []
    return [f"mu is at least {lower:.4f}, above the claimed {claimed:.4f}"]
