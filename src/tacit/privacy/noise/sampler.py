"""What is proven of the sampler of integer Gaussian noise, `tacit._core.Ziggurat`.

The constants are those of docs/proofs/sampler.md. Nothing here reads private data.
"""

from tacit import _core
from tacit.errors import InvalidParameter

SIGMA_MIN, SIGMA_MAX = _core.SIGMA_MIN, _core.SIGMA_MAX
"""Range of noise scales, in grid steps, that the sampler is proven for."""

CORE, REACH, REACH_MAX = 14.0, 24.0, 150.0
"""All but `TAIL` of the noise is within CORE·σ. `relative_error` holds to REACH·σ, and grows with
the square of the distance up to REACH_MAX·σ."""

RATIO_MAX = REACH - CORE
"""Largest sensitivity/noise scale of an event: what one change shifts stays within REACH·σ."""

TAIL = 2e-44
"""Bound on the probability of |k| > CORE·σ."""


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
