"""Cost of the same Gaussian steps under every accountant."""

from dataclasses import dataclass

from taciturn._internal import validate
from taciturn._internal.spelling import parameter
from taciturn.accounting import composition, gaussian, renyi
from taciturn.errors import InvalidParameter

ACCOUNTANTS = {
    "epsilon_exact": "exact (Gaussian DP)",
    "epsilon_rdp": "Rényi, best conversion",
    "epsilon_zcdp": "zCDP (the paper's bound)",
    "epsilon_advanced": "advanced composition",
    "epsilon_basic": "basic composition",
}
"""Fields of `Accounts` that hold an ε, with their labels."""


@dataclass(frozen=True, kw_only=True)
class Accounts:
    """ε of the same steps at one δ by each accountant; `epsilon_exact` is always the smallest."""

    delta: float
    mu: float
    epsilon_exact: float
    epsilon_rdp: float
    epsilon_zcdp: float
    epsilon_advanced: float
    epsilon_basic: float


def steps_of(noise_multiplier: float, count: int) -> tuple[float, int]:
    """Pair (ratio, count) of `count` steps with noise scale σ = multiplier · Δ."""
    multiplier = validate.positive(
        "noise_multiplier", noise_multiplier, "it is the noise scale divided by the sensitivity"
    )
    count = validate.positive_integer("count", count, "it is the number of releases")
    if not 1 / gaussian.MU_MAX <= multiplier <= 1 / gaussian.MU_MIN:
        raise InvalidParameter(
            f"{parameter('noise_multiplier')} must be between {1 / gaussian.MU_MAX:g} and "
            f"{1 / gaussian.MU_MIN:g}, got {noise_multiplier}; use one between 0.1 and 100"
        )
    return 1 / multiplier, count


def account(ratios: list[tuple[float, int]], delta: float) -> Accounts:
    """Total cost of (ratio, count) steps at `delta` by each accountant, rounded to nearest."""
    hint = "pass pairs of a ratio and a count, such as [(0.1, 20)]"
    for pair in validate.several("ratios", ratios, hint):
        if len(validate.several("each of the ratios", pair, hint)) != 2:
            raise InvalidParameter(f"each of the ratios must have a count; {hint}")
        validate.positive_integer("count", pair[1], "it is the number of releases")
    delta, mu = gaussian.check_delta(delta), gaussian.compose(ratios)
    return Accounts(
        delta=delta,
        mu=mu,
        epsilon_exact=gaussian.epsilon(delta, mu),
        epsilon_rdp=renyi.epsilon_rdp(delta, mu),
        epsilon_zcdp=renyi.epsilon_zcdp(delta, mu),
        epsilon_advanced=composition.epsilon_advanced(delta, ratios),
        epsilon_basic=composition.epsilon_basic(delta, ratios),
    )
