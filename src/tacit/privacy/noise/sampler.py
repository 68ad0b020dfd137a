"""What is proven of the sampler of integer Gaussian noise, `tacit._core.Ziggurat`.

The constants are those of docs/proofs/sampler.md. Nothing here reads private data.
"""

from tacit.errors import InvalidParameter

SIGMA_MIN, SIGMA_MAX = 2.0**20, 2.0**48
"""Range of noise scales, in grid steps, that the sampler is proven for."""

RATIO_MAX = 10.0
"""Largest sensitivity/noise scale: the error bound reaches to (14 + RATIO_MAX) σ."""

TAIL = 2e-44
"""Bound on the probability of |k| > 14σ."""


def check_scale(sigma: float) -> None:
    """Raise unless the sampler can draw noise of scale σ, in grid steps."""
    if not SIGMA_MIN <= sigma <= SIGMA_MAX:
        raise InvalidParameter(
            f"the noise scale must be between 2^20 and 2^48 grid steps, got {sigma:g}; "
            f"choose a {'finer' if sigma < SIGMA_MIN else 'coarser'} grid"
        )


def relative_error(sigma: float) -> float:
    """Return the bound γ on the relative error of every point mass with |k| ≤ 24σ."""
    return 1e-12 + 25 / (sigma * sigma)
