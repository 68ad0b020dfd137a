"""Proven bounds on the error of the integer Gaussian sampler, `taciturn._core.Ziggurat`.

The constants are those of docs/proofs/sampler.md. Pure Python, so that a certificate can be checked
without the compiled sampler; a test compares the range of scales with the compiled one's.
"""

from taciturn.errors import InvalidParameter

SIGMA_MIN, SIGMA_MAX = 2.0**20, 2.0**48
"""Range of noise scales, in grid steps, that the sampler is proven for."""

CORE, REACH, REACH_MAX = 14.0, 24.0, 150.0
"""All but `TAIL` of the noise is within CORE·σ. `relative_error` holds to REACH·σ, and grows with
the square of the distance up to REACH_MAX·σ."""

RATIO_MAX = REACH - CORE
"""Largest sensitivity/noise scale of an event: what one change shifts stays within REACH·σ."""

TAIL = 2e-44
"""Bound on the probability of |k| > CORE·σ."""

NUMBERS_MAX = 2**34
"""Maximum count of numbers drawn under one key: fewer than 2^35 blocks of keystream."""

CIPHER = 2.0**-58
"""Bound on the advantage in telling a run's keystream from uniform words, charged to δ once for
each release. Half of it is that blocks of a cipher never repeat, half an assumption on AES-256."""


def check_scale(sigma: float) -> None:
    """Raise unless the sampler can draw noise of scale σ, in grid steps."""
    if not SIGMA_MIN <= sigma <= SIGMA_MAX:
        raise InvalidParameter(
            f"the noise scale must be between 2^20 and 2^48 grid steps, got {sigma:g}; "
            f"choose a {'finer' if sigma < SIGMA_MIN else 'coarser'} grid"
        )


def relative_error(sigma: float) -> float:
    """Bound γ on the relative error of every point mass with |k| ≤ 24σ."""
    return 1e-12 + 25 / (sigma * sigma)


ERROR = relative_error(SIGMA_MIN)
"""Bound γ for every scale. It is what events record: a scale may depend on earlier releases, and
the cost of the sampler must be known before the first of them."""
