"""Noise on every rating, then ordinary least squares: the simplest private recommender.

One release: all ratings, each with Gaussian noise. Everything else is post-processing. The noise on
a rating does not shrink however many there are, which is why noisy sums are so much better.
"""

from dataclasses import dataclass
from typing import ClassVar

from taciturn.solvers.least_squares import LeastSquaresSettings
from taciturn.solvers.solver import Solver


@dataclass(frozen=True, kw_only=True)
class InputPerturbationSolver(LeastSquaresSettings, Solver):
    """Gaussian noise on each rating, then alternating least squares. Unit `value`, `proven`.

    Minimises the objective of `non-private` on noisy ratings, with a regularization that knows the
    noise. See `LeastSquaresSettings` for its parameters.
    """

    name: ClassVar[str] = "input-perturbation"
