"""Rényi and concentrated differential privacy of Gaussian mechanisms.

A μ-GDP Gaussian release satisfies Rényi differential privacy of every order α > 1 with parameter
αμ²/2, which is ρ-zCDP with ρ = μ²/2. Both are upper bounds on the exact curve of
`taciturn.accounting.gaussian` and are used only for comparison. Nothing here reads private data.
"""

import math

from taciturn.accounting.gaussian import check_delta, check_epsilon, check_mu


def epsilon_zcdp(delta: float, mu: float) -> float:
    """ε of zCDP: ρ + 2√(ρ ln 1/δ) with ρ = μ²/2 (Bun and Steinke 2016).

    This is also the minimum over α of αμ²/2 + ln(1/δ)/(α − 1), the conversion that the paper uses
    (Mironov 2017), attained at `best_order`.
    """
    log_inverse = -math.log(check_delta(delta))
    rho = check_mu(mu) ** 2 / 2
    return rho + 2 * math.sqrt(rho * log_inverse)


def mu_at_zcdp(epsilon: float, delta: float) -> float:
    """Inverse of `epsilon_zcdp` at `delta`; not rounded towards privacy, so not a guarantee."""
    log_inverse = -math.log(check_delta(delta))
    epsilon = check_epsilon(epsilon)
    # ε = ρ + 2√(ρ ln 1/δ), solved for √ρ without cancellation.
    root = epsilon / (math.sqrt(log_inverse + epsilon) + math.sqrt(log_inverse))
    return math.sqrt(2) * root


def best_order(delta: float, mu: float) -> float:
    """Order α* = 1 + √(2 ln(1/δ))/μ that minimises the paper's conversion."""
    return 1 + math.sqrt(-2 * math.log(check_delta(delta))) / check_mu(mu)


def epsilon_rdp(delta: float, mu: float) -> float:
    """Smallest ε that follows from the Rényi parameters of all orders.

    The conversion of Canonne, Kamath and Steinke (2020, proposition 12), minimised over α > 1:
    αμ²/2 + ln(1 − 1/α) − (ln δ + ln α)/(α − 1).
    """
    log_target = math.log(check_delta(delta))
    half_square = check_mu(mu) ** 2 / 2
    start = math.log(math.sqrt(-2 * log_target) / mu)  # ln(α* − 1) of the plain conversion

    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)  # α − 1
        log_order = math.log1p(excess)
        conversion = (log_excess - log_order) - (log_target + log_order) / excess
        return (1 + excess) * half_square + conversion

    from scipy.optimize import minimize_scalar  # slow to import and rarely needed

    found = minimize_scalar(
        bound, bounds=(start - 12, start + 6), method="bounded", options={"xatol": 1e-10}
    )
    return max(0.0, min(float(found.fun), epsilon_zcdp(delta, mu)))
