"""The four-user counterexample to the paper's theorem, solved exactly.

One item, four users, profiles of length 1, two iterations, and the final Θ alone, which is what the
paper releases. Everything is Gaussian with the same covariance in both worlds, so the privacy of
the release has a closed form: it is μ-GDP with μ the distance of the two means in units of the
noise, and no less (docs/proofs/paper-gap.md).
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
    """What the theorem claims for the final Θ, and what is true.

    `claimed_mu` and `true_mu` are the Gaussian-DP parameters behind the two ε at `delta`.
    """

    claimed_epsilon: float
    true_epsilon: float
    delta: float
    claimed_mu: float
    true_mu: float
    noise_scale: float


def counterexample(claimed_epsilon: float, delta: float) -> Counterexample:
    """Return the counterexample for noise that the theorem says gives ε_opt = `claimed_epsilon`."""
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
    """Return the distance of the final Θ of both worlds, in units of a unit noise's deviation."""
    (mean, spread), (other_mean, other_spread) = map(final_users, (RATINGS, NEIGHBOUR))
    if not math.isclose(spread, other_spread, rel_tol=1e-12):
        raise RuntimeError("the counterexample needs the same covariance in both worlds")
    return float(np.linalg.norm(mean - other_mean)) / spread


def final_users(ratings: Vector) -> tuple[Vector, float]:
    """Return mean and standard deviation of the final Θ under noise of deviation 1.

    The item profile is never noised and its first step uses Θ₀, so x₁ is one number; from there on
    Θ is an affine function of the noise. Coordinates of Θ are independent.
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
    """Return profiles of length 1, cut to the norm bound."""
    return np.clip(profiles, -NORM_BOUND, NORM_BOUND)
