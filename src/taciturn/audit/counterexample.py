"""The four-user counterexample to the paper's theorem, solved exactly.

One item, four users, one-dimensional profiles and two iterations. As in the paper, only the final Θ
is released. It is Gaussian with the same covariance on both neighbouring datasets, so its privacy
has a closed form: the smallest μ for which it is μ-GDP is the distance between the two means in
standard deviations (docs/proofs/paper-gap.md).
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from taciturn.accounting import gaussian
from taciturn.accounting.renyi import mu_at_zcdp

Vector = npt.NDArray[np.float64]

ITEM_START = 1.0
USER_STARTS = np.array([1.0, 1.0, -1.0, -1.0])
STEP_SIZE = math.sqrt(0.5)
NORM_BOUND, TAU, ITERATIONS = 1.0, 4.0, 2
RATINGS = np.array([5.0, 5.0, 5.0, 5.0])
NEIGHBOUR = np.array([5.0, 5.0, 5.0, 1.0])


@dataclass(frozen=True, kw_only=True)
class Counterexample:
    """Claimed and true privacy of the final Θ.

    `claimed_mu` and `true_mu` are the Gaussian-DP parameters of the two ε at `delta`.
    """

    claimed_epsilon: float
    true_epsilon: float
    delta: float
    claimed_mu: float
    true_mu: float
    noise_scale: float


def counterexample(claimed_epsilon: float, delta: float) -> Counterexample:
    """Counterexample with the noise that the theorem requires for ε_opt = `claimed_epsilon`."""
    claimed_mu = mu_at_zcdp(claimed_epsilon, delta)
    # The theorem composes J steps of sensitivity τC.
    noise_scale = TAU * NORM_BOUND * math.sqrt(ITERATIONS) / claimed_mu
    true_mu = separation() / noise_scale
    return Counterexample(
        claimed_epsilon=claimed_epsilon,
        true_epsilon=gaussian.epsilon(delta, true_mu),
        delta=delta,
        claimed_mu=claimed_mu,
        true_mu=true_mu,
        noise_scale=noise_scale,
    )


def separation() -> float:
    """Distance between the mean final Θ of both datasets, in standard deviations of unit noise."""
    (mean, standard_deviation), (other_mean, other_standard_deviation) = map(
        final_users, (RATINGS, NEIGHBOUR)
    )
    if not math.isclose(standard_deviation, other_standard_deviation, rel_tol=1e-12):
        raise RuntimeError("the counterexample needs the same covariance on both datasets")
    return float(np.linalg.norm(mean - other_mean)) / standard_deviation


def final_users(ratings: Vector) -> tuple[Vector, float]:
    """Mean and standard deviation of the final Θ under noise of standard deviation 1.

    The item profile gets no noise and its first step uses Θ₀, so x₁ is deterministic. After that, Θ
    is an affine function of the noise. The coordinates of Θ are independent.
    """
    item = ITEM_START
    errors = item * USER_STARTS - ratings
    users = USER_STARTS - STEP_SIZE * errors * _clip(item)
    item -= STEP_SIZE * float(errors @ _clip(USER_STARTS))
    # Θ₁ = users − step·η₁, and Θ₂ = Θ₁ − step·((x₁Θ₁ − v)·clip(x₁) + η₂).
    factor = 1 - STEP_SIZE * item * float(_clip(item))
    mean = factor * users + STEP_SIZE * ratings * _clip(item)
    return mean, STEP_SIZE * math.hypot(factor, 1.0)


def _clip(profiles: Vector | float) -> Vector:
    """One-dimensional profiles, clipped to the norm bound."""
    return np.clip(profiles, -NORM_BOUND, NORM_BOUND)
