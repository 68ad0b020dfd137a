"""`tacit demo`: a tour of what the installed version can do."""

import shlex
from typing import TYPE_CHECKING

from tacit.cli import budget
from tacit.cli.console import Json, emit_json, say

if TYPE_CHECKING:
    from tacit.privacy.certificate import Certificate

DELTA = 1e-5


def demo(json: Json = False) -> None:
    """Tour the budget calculator: the paper's account, the exact one, a certificate."""
    if json:
        emit_json(_certificate().to_dict())
        return
    say("Tacit demo: how much privacy does noise buy?")
    _step(
        "1. The paper spends epsilon_i = 0.4 on each of 300 iterations. Its accounting says one",
        "   thing, exact accounting of the very same noise another:",
        "tacit budget paper --epsilon-i 0.4 --delta-i 0.01 --iterations 300 --delta 1e-5",
    )
    budget.paper(epsilon_i=0.4, delta_i=0.01, iterations=300, delta=DELTA)
    _step(
        "2. Turned around: how much noise must 300 releases carry for epsilon = 1 overall?",
        "tacit budget calibrate --epsilon 1 --delta 1e-5 --count 300",
    )
    budget.calibrate(epsilon=1, delta=DELTA, count=300)
    _step(
        "3. A run that released 300 such gradients would have this certificate,",
        "   computed from its ledger:",
    )
    say(_certificate().to_text())


def _step(*lines: str) -> None:
    """Print the lines of a step; one that is a command gets a prompt."""
    say()
    for line in lines:
        say(f"$ {line}" if shlex.split(line)[0] == "tacit" else line)


def _certificate() -> "Certificate":
    """Return the certificate of a run that releases 300 gradients at an overall ε of 1."""
    from tacit.privacy.budget import Budget
    from tacit.privacy.calibration import noise_multiplier
    from tacit.privacy.certificate import Certificate
    from tacit.privacy.events import GaussianRelease, Noise, Rows
    from tacit.privacy.ledger import Ledger
    from tacit.privacy.units import Unit

    count, sensitivity = 300, 4.0
    multiplier = noise_multiplier(Budget.from_epsilon(1, DELTA).mu, count)
    ledger = Ledger()
    for step in range(count):
        ledger.append(
            GaussianRelease(
                purpose=f"gradient {step}",
                unit=Unit.VALUE,
                sensitivity=sensitivity,
                noise_scale=sensitivity * multiplier,
                rows=Rows.USERS,
                noise=Noise.SECURE,
                coordinates=20,
            )
        )
    return Certificate.from_ledger(ledger, DELTA)
