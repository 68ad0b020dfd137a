"""Basic and advanced composition, which use only the (ε, δ) of each step.

They predate Rényi and Gaussian accounting and are used only for comparison. A step of ratio r = Δ/σ
has its exact ε at its share of δ. Steps are (ratio, count) pairs. Nothing here reads private data.
"""

import math

from taciturn.accounting import gaussian


def epsilon_basic(delta: float, ratios: list[tuple[float, int]]) -> float:
    """ε of basic composition: Σ ε_t, with each of the J steps at δ/J."""
    steps = sum(count for _, count in ratios)
    return math.fsum(count * gaussian.epsilon(delta / steps, ratio) for ratio, count in ratios)


def epsilon_advanced(delta: float, ratios: list[tuple[float, int]]) -> float:
    """ε of advanced composition, with half of δ for the steps and half for the slack.

    Kairouz, Oh and Viswanath (2017, theorem 3.5) sharpen Dwork, Rothblum and Vadhan (2010) to
    Σ ε_t tanh(ε_t/2) + √(2 ln(1/δ̃) Σ ε_t²), with δ = δ̃ + Σ δ_t. Never above `epsilon_basic`.
    """
    steps = sum(count for _, count in ratios)
    each = [(gaussian.epsilon(delta / (2 * steps), ratio), count) for ratio, count in ratios]
    drift = math.fsum(count * eps * math.tanh(eps / 2) for eps, count in each)
    square = math.fsum(count * eps * eps for eps, count in each)
    advanced = drift + math.sqrt(2 * math.log(2 / delta) * square)
    return min(advanced, epsilon_basic(delta, ratios))
