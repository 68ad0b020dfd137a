"""Configuration of `als`, the default solver."""

from dataclasses import dataclass
from typing import Any, ClassVar

from taciturn._internal import validate
from taciturn._internal.spelling import option, parameter
from taciturn.accounting.budget import Budget
from taciturn.accounting.units import DEFAULT_UNIT, Unit, UnitName
from taciturn.errors import InvalidParameter
from taciturn.solvers.als.layout import Layout
from taciturn.solvers.als.rating import RatingAlgorithm
from taciturn.solvers.als.size import has_factors_by_size
from taciturn.solvers.als.user import UserAlgorithm
from taciturn.solvers.als.value import ROUNDS, ValueAlgorithm
from taciturn.solvers.bias import BiasAlgorithm
from taciturn.solvers.contract import Algorithm, PublicFacts
from taciturn.solvers.solver import Solver

FACTORS_MAX = 128

ITERATIONS_MAX = {Unit.VALUE: 64, Unit.RATING: 1024, Unit.USER: 1024}
"""Maximum number of iterations; smaller under `value`, where each takes far longer."""


@dataclass(frozen=True, kw_only=True)
class AlsSolver(Solver):
    """The default solver, under every unit. Status `proven`.

    Under `value`, alternating least squares on noisy sums. Under `rating` and `user`, which protect
    the rating pattern, the same model is fitted by descent (`als/rating.py`, `als/user.py`). With
    default settings, data too small for factors are trained as by `bias` (`als/size.py`).

    Parameters
    ----------
    unit
        Privacy unit: `value`, `rating` (the default) or `user`.
    factors
        Number of factors learnt from ratings. Default: chosen from the numbers of users, items and
        ratings, as far as they are public or released. Under `value`, profiles are longer, because
        they also hold features of the rating pattern.
    iterations
        Number of rounds of queries, among which the budget is divided. Default: 8 under `value`,
        a few dozen under other units.
    pattern_features
        Whether to use features of the rating pattern, which are then published in the profiles.
        Only under `value`, where it is the default.
    uncertainty
        Whether to publish posterior variances, for predictive standard deviations; only under
        `value`.
    """

    name: ClassVar[str] = "als"
    units: ClassVar[frozenset[Unit]] = frozenset(Unit)
    clips_residuals: ClassVar[bool] = True

    unit: UnitName = DEFAULT_UNIT
    factors: int | None = None
    iterations: int | None = None
    pattern_features: bool | None = None
    uncertainty: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", validate.choice("unit", self.unit, Unit))
        rounds = ITERATIONS_MAX[Unit(self.unit)]
        for name, most in (("factors", FACTORS_MAX), ("iterations", rounds)):
            value = getattr(self, name)
            if value is None:
                continue
            if validate.positive_integer(name, value, "the default suits most") > most:
                raise InvalidParameter(f"{parameter(name)} must be at most {most}, got {value:,}")
        if self.pattern_features is not None and not isinstance(self.pattern_features, bool):
            raise InvalidParameter("pattern_features must be true or false")
        if not isinstance(self.uncertainty, bool):
            raise InvalidParameter("uncertainty must be true or false")
        if self.unit is not Unit.VALUE and self.pattern_features:
            raise InvalidParameter(
                f"unit {self.unit} protects the rating pattern, which pattern_features would "
                "publish; leave it out, or use unit value"
            )
        if self.unit is not Unit.VALUE and self.uncertainty:
            raise InvalidParameter(
                f"{option('uncertainty', True)} is supported under {option('unit', 'value')} only"
            )

    @property
    def _is_all_default(self) -> bool:
        """Whether nothing was chosen that training biases alone would ignore."""
        chosen = self.factors, self.iterations, self.pattern_features
        return all(each is None for each in chosen) and not self.uncertainty

    def algorithm(
        self, facts: PublicFacts, budget: Budget | None, threads: int | None = None
    ) -> Algorithm[Any]:
        """Algorithm for the privacy unit."""
        budget = self.require_budget(budget)
        if self.unit is Unit.RATING:
            return RatingAlgorithm(facts, budget, self.factors, self.iterations)
        if self.unit is Unit.USER:
            return UserAlgorithm(facts, budget, self.factors, self.iterations, threads)
        if self._is_all_default and not has_factors_by_size(facts, budget):
            return BiasAlgorithm(facts, budget)
        return ValueAlgorithm(
            facts,
            budget,
            Layout(facts, self.factors, self.pattern_features is not False),
            rounds=self.iterations or ROUNDS,
            has_variances=self.uncertainty,
            threads=threads,
        )
