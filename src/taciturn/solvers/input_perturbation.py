"""Noise on every rating, then ordinary least squares: the simplest private recommender.

A single release holds all ratings, each with Gaussian noise; everything else is post-processing.
The noise of a rating does not decrease with the number of ratings, so noisy sums are far more
accurate.
"""

from dataclasses import dataclass
from typing import ClassVar

from taciturn.solvers.least_squares import LeastSquaresSettings
from taciturn.solvers.solver import Solver


@dataclass(frozen=True, kw_only=True)
class InputPerturbationSolver(LeastSquaresSettings, Solver):
    """Gaussian noise on each rating, then alternating least squares. Unit `value`, `proven`.

    Minimises Σ (v_ij − m − b_i − c_j − ⟨x_i, θ_j⟩)² + 4 (Σ b_i² + Σ c_j²) +
    λ (Σ (n_i + 200)‖x_i‖² + Σ (n_j + 200)‖θ_j‖²) on noisy ratings v, where m is their mean and n
    the number of ratings of a row, with more regularization the more noise there is. Each axis is
    solved exactly given the other. See `LeastSquaresSettings` for its parameters.
    """

    name: ClassVar[str] = "input-perturbation"
