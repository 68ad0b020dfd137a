"""Privacy formulas of the paper: from (ε_i, δ_i) per iteration to an overall ε_opt.

Mugdho and Imtiaz calibrate each step's noise by the classical Gaussian mechanism,
σ = Δ/ε_i · √(2 ln(1.25/δ_i)), and compose J steps by Rényi accounting:

    ε_opt = a + 2√(a ln(1/δ)),    a = J ε_i² / (4 ln(1.25/δ_i)).

Here a = μ²/2, so ε_opt is the zCDP bound of the exact μ. The formulas are correct for a mechanism
whose sensitivity is Δ at every step. The paper's algorithm is not such a mechanism
(docs/reference/notation.md).
"""

import math
from dataclasses import dataclass

from taciturn._internal import validate
from taciturn.accounting import gaussian, renyi


@dataclass(frozen=True, kw_only=True)
class PaperAccount:
    """Guarantee that the paper claims for J iterations, and the exact μ of the same noise."""

    epsilon_paper: float
    alpha: float
    mu: float
    noise_multiplier: float
    warnings: tuple[str, ...]


def paper_account(
    *, epsilon_i: float, delta_i: float, iterations: int, delta: float
) -> PaperAccount:
    """The paper's ε_opt and optimal order α* at overall `delta`, and the exact μ."""
    epsilon_i = gaussian.check_epsilon(epsilon_i, "epsilon_i", "the paper uses 0.15 to 0.9")
    delta_i = gaussian.check_delta(delta_i, "delta_i", "the paper uses 0.01")
    iterations = validate.positive_integer("iterations", iterations, "the paper runs hundreds")
    delta = gaussian.check_delta(delta)
    multiplier = math.sqrt(2 * math.log(1.25 / delta_i)) / epsilon_i
    mu = gaussian.compose([(1 / multiplier, iterations)])
    warnings = []
    if epsilon_i >= 1:
        warnings.append(
            f"epsilon_i = {epsilon_i:g} is outside (0, 1), so neither the classical Gaussian "
            "mechanism nor the paper's theorem covers it; epsilon_exact holds all the same"
        )
    return PaperAccount(
        epsilon_paper=renyi.epsilon_zcdp(delta, mu),
        alpha=renyi.best_order(delta, mu),
        mu=mu,
        noise_multiplier=multiplier,
        warnings=tuple(warnings),
    )
