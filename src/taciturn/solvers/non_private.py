"""The reference of comparisons: the model of `als` on exact ratings, not private."""

from dataclasses import dataclass
from typing import Any, ClassVar

from taciturn.accounting.budget import Budget
from taciturn.accounting.ledger import Status
from taciturn.solvers.contract import Algorithm, PublicFacts
from taciturn.solvers.interest.algorithm import WithInterest
from taciturn.solvers.interest.pattern import PatternInterest
from taciturn.solvers.solver import Solver, check_factors, check_iterations
from taciturn.solvers.variational import VariationalAlgorithm

FACTORS_MAX = 256


@dataclass(frozen=True, kw_only=True)
class NonPrivateSolver(Solver):
    """Alternating least squares without noise, on all that `als` may use. Not private.

    Fits the model of `als` under unit `value`, with features of the rating pattern and public item
    features, and interest in the same way. Users are solved exactly, as those who fold in. The
    regularization is learnt from the ratings, so it grows with the number of factors
    (`variational.py`).

    Parameters
    ----------
    factors
        Number of factors learnt from ratings. Profiles are longer, because they also hold features
        of the rating pattern.
    iterations
        Number of times that both axes are solved.
    """

    name: ClassVar[str] = "non-private"
    status: ClassVar[Status] = Status.NONE
    uses_item_features: ClassVar[bool] = True

    factors: int = 20
    iterations: int = 12

    def __post_init__(self) -> None:
        check_factors(self.factors, FACTORS_MAX)
        check_iterations(self.iterations)

    def algorithm(
        self, facts: PublicFacts, budget: Budget | None, threads: int | None = None
    ) -> Algorithm[Any]:
        """Algorithm on exact ratings, with interest from the exact rating pattern."""
        inner = VariationalAlgorithm(
            facts,
            factors=self.factors,
            iterations=self.iterations,
            threads=threads,
        )
        part = PatternInterest(facts, threads)
        return WithInterest(inner, part, budget=None, share=0.0, threads=threads)
