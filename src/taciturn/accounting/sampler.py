"""Proven bounds on the error of the integer Gaussian sampler, `taciturn._core.Ziggurat`.

docs/proofs/sampler.md derives the constants. The module is pure Python, so that a certificate can
be checked without the compiled sampler. A test checks that both have the same range of scales.
"""

from taciturn.errors import InvalidParameter

SIGMA_MIN, SIGMA_MAX = 2.0**20, 2.0**48
"""Range of noise scales, in grid steps, for which the sampler's bounds are proven."""

CORE, RANGE, RANGE_MAX = 14.0, 24.0, 150.0
"""Sampler ranges. Noise lies within CORE·σ except with probability `TAIL`. `relative_error` holds
up to RANGE·σ; beyond, the error grows with the square of the distance up to RANGE_MAX·σ."""

RATIO_MAX = RANGE - CORE
"""Largest sensitivity/noise_scale of an event: noise shifted by one change stays within RANGE·σ."""

TAIL = 2e-44
"""Bound on the probability of |k| > CORE·σ."""

NUMBERS_MAX = 2**34
"""Maximum number of draws under one key; they use fewer than 2^35 blocks of keystream."""

CIPHER = 2.0**-58
"""Bound on the advantage in telling a run's keystream from uniform words, charged to δ once for
each release. Half of it is because blocks of a cipher never repeat, half is an assumption about
AES-256."""


def check_scale(sigma: float) -> None:
    """Raise unless the sampler supports noise scale σ, in grid steps."""
    if not SIGMA_MIN <= sigma <= SIGMA_MAX:
        raise InvalidParameter(
            f"the noise scale must be between 2^20 and 2^48 grid steps, got {sigma:g}; "
            f"choose a {'finer' if sigma < SIGMA_MIN else 'coarser'} grid"
        )


def relative_error(sigma: float) -> float:
    """Bound γ on the relative error of every point mass with |k| ≤ RANGE·σ."""
    return 1e-12 + 25 / (sigma * sigma)


ERROR = relative_error(SIGMA_MIN)
"""Bound γ for every scale. Events record this one, because a scale may depend on earlier releases
but the cost of the sampler must be known before the first of them."""
