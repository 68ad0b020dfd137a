"""Alternating least squares with biases, not private: the baseline of comparisons."""

from dataclasses import dataclass
from typing import ClassVar

from taciturn.accounting.ledger import Status
from taciturn.solvers.least_squares import LeastSquaresSettings
from taciturn.solvers.solver import Solver


@dataclass(frozen=True, kw_only=True)
class NonPrivateSolver(LeastSquaresSettings, Solver):
    """Regularized alternating least squares with biases. Not private.

    Minimises Σ (v_ij − m − b_i − c_j − ⟨x_i, θ_j⟩)² + 4 (Σ b_i² + Σ c_j²) +
    λ (Σ (n_i + 200)‖x_i‖² + Σ (n_j + 200)‖θ_j‖²), where m is the mean rating and n the number of
    ratings of a row. Each axis is solved exactly given the other. See `LeastSquaresSettings`
    for its parameters.
    """

    name: ClassVar[str] = "non-private"
    status: ClassVar[Status] = Status.NONE
