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

    Minimises the objective of `non-private` on noisy ratings, with a regularization that depends on
    the noise. See `LeastSquaresSettings` for its parameters.
    """

    name: ClassVar[str] = "input-perturbation"
