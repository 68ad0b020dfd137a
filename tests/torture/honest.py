"""Independent check of certificates: nothing that is accepted understates its cost.

The cost is computed from the JSON of the ledger with other code than the library's: composition
of Gaussian mechanisms in arithmetic of 50 digits, without rounding and without the sampler.
"""

from typing import Any

import mpmath

from taciturn.accounting.certificate import Certificate
from taciturn.accounting.ledger import Ledger, Status
from tests.torture.target import require

Document = dict[str, Any]


def squared_mu(events: list[Document]) -> Any:
    """Sum of the squared ratios of sensitivity to noise, exactly."""
    with mpmath.workdps(50):
        noisy = [event for event in events if event["mechanism"] == "gaussian"]
        return mpmath.fsum(
            (mpmath.mpf(event["sensitivity"]) / mpmath.mpf(event["noise_scale"])) ** 2
            for event in noisy
        )


def best_status(events: list[Document]) -> Status:
    """Best status that a ledger of these events may have."""
    for event in events:
        is_pattern = event["mechanism"] == "pattern" and event["unit"] != "value"
        if event["mechanism"] == "exact" or is_pattern:
            return Status.NONE
    if any(event.get("noise") == "test" for event in events):
        return Status.VOID
    return Status.CLAIMED if any("flaw" in event for event in events) else Status.PROVEN


def smallest_delta(epsilon: float, mu_squared: Any) -> Any:
    """Smallest δ at which a μ-GDP release is (ε, δ)-private."""
    with mpmath.workdps(50):
        mu, epsilon = mpmath.sqrt(mu_squared), mpmath.mpf(epsilon)
        upper = mpmath.ncdf(-epsilon / mu + mu / 2)
        return upper - mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / mu - mu / 2)


def check_ledger(events: list[Document], ledger: Ledger) -> None:
    """Raise a finding if a ledger has lost an event of its document, or its cost."""
    require(len(ledger.events) == len(events), "an event of the ledger was ignored")
    if best_status(events) is Status.NONE:
        require(not events or ledger.status is Status.NONE, "an exact release was ignored")
    elif any(event["mechanism"] == "gaussian" for event in events):
        found = mpmath.mpf(ledger.spend().mu) ** 2
        require(found >= squared_mu(events) * (1 - mpmath.mpf("1e-30")), "mu is understated")


def check_certificate(document: Document, certificate: Certificate) -> None:
    """Raise a finding if an accepted certificate is better than its ledger allows."""
    events = document["ledger"]["events"]
    check_ledger(events, certificate.ledger)
    require(certificate.status is best_status(events), "the status is not that of the events")
    if certificate.status is Status.NONE:
        require(certificate.epsilon is None, "an exact release has an epsilon")
        return
    epsilon, stated = certificate.epsilon, document["statement"]
    require(epsilon is not None and stated["delta"] == certificate.delta, "no epsilon, or delta")
    if epsilon is not None and epsilon < 1e4:  # beyond, δ is below the smallest float anyway
        honest = smallest_delta(epsilon, squared_mu(events))
        require(honest <= certificate.delta * (1 + 1e-12), "epsilon is understated")
    require(stated["epsilon"] >= (epsilon or 0) * (1 - 2e-9), "the stated epsilon is too small")
