"""Configuration of `als`, the default solver."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from taciturn._internal import validate
from taciturn._internal.spelling import option, parameter
from taciturn.accounting.budget import Budget
from taciturn.accounting.units import DEFAULT_UNIT, Unit, UnitName
from taciturn.errors import InvalidParameter
from taciturn.solvers.als.fold_in import RANGE_MAX, FoldInAlgorithm
from taciturn.solvers.als.layout import Layout
from taciturn.solvers.als.rating import RANKS, RANKS_FOLD_IN, RatingAlgorithm
from taciturn.solvers.als.size import bounds_whole_users, has_factors_by_size
from taciturn.solvers.als.user import UserAlgorithm
from taciturn.solvers.als.value import ROUNDS, ValueAlgorithm
from taciturn.solvers.bias import BiasAlgorithm
from taciturn.solvers.contract import Algorithm, PublicFacts
from taciturn.solvers.entry import FOLD_IN
from taciturn.solvers.solver import Solver

FACTORS_MAX = 128

ITERATIONS_MAX = {Unit.VALUE: 64, Unit.RATING: 1024, Unit.USER: 1024}
"""Maximum number of iterations; smaller under `value`, where each takes far longer."""


class Serve(StrEnum):
    """Form in which users are served: released profiles, or folded in."""

    PROFILES = "profiles"
    FOLD_IN = FOLD_IN


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
        Whether to publish posterior variances, for predictive standard deviations and probabilities
        of stars. Where users fold in, only items have published variances.
    serve
        How users are served. `profiles`: user profiles are released, with noise. `fold-in`: none
        is; each user's profile is solved exactly from the released items and their own ratings, and
        shown to that user only. Predictions are more accurate at the same budget. Default:
        `profiles` under `value` and `rating`; `fold-in` under `user`, where nothing else is
        possible.
    """

    name: ClassVar[str] = "als"
    units: ClassVar[frozenset[Unit]] = frozenset(Unit)
    clips_residuals: ClassVar[bool] = True
    uses_item_features: ClassVar[bool] = True
    uses_public_ratings: ClassVar[bool] = True

    unit: UnitName = DEFAULT_UNIT
    factors: int | None = None
    iterations: int | None = None
    pattern_features: bool | None = None
    uncertainty: bool = False
    serve: Serve | str | None = None

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
        self._check_serve()

    def _check_serve(self) -> None:
        """Raise unless users can be served as chosen."""
        if self.serve is None:
            return
        object.__setattr__(self, "serve", validate.choice("serve", self.serve, Serve))
        if self.unit is Unit.USER and self.serve is Serve.PROFILES:
            raise InvalidParameter(
                f"unit user protects whole users, so no user profile can be released; leave out "
                f"{option('serve', 'profiles')}, or use unit value or rating"
            )

    @property
    def folds_in(self) -> bool:
        """Whether users fold in, so that a release has no user profiles."""
        return self.unit is Unit.USER or self.serve is Serve.FOLD_IN

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
        if self.uncertainty and facts.scale.range > RANGE_MAX:
            raise InvalidParameter(
                f"{option('uncertainty', True)} needs a scale no wider than {RANGE_MAX:,.0f}"
            )
        if self.unit is Unit.USER or self._bounds_whole_users(facts, budget):
            return UserAlgorithm(
                facts,
                budget,
                self.factors,
                self.iterations,
                threads,
                has_variances=self.uncertainty,
                unit=Unit(self.unit),
            )
        algorithm = self._two_axis_algorithm(facts, budget, threads)
        if not self.folds_in:
            return algorithm
        return FoldInAlgorithm(algorithm, algorithm.user_prior, facts, threads)

    def _bounds_whole_users(self, facts: PublicFacts, budget: Budget) -> bool:
        """Whether every user's whole contribution is bounded, although ratings are protected."""
        is_chosen = self.factors is not None or self.iterations is not None
        if self.unit is not Unit.RATING or not self.folds_in or is_chosen:
            return False
        return bounds_whole_users(facts, budget)

    def _two_axis_algorithm(
        self, facts: PublicFacts, budget: Budget, threads: int | None
    ) -> RatingAlgorithm | BiasAlgorithm | ValueAlgorithm:
        """Algorithm under `value` or `rating`, which releases profiles of both axes."""
        if self.unit is Unit.RATING:
            return RatingAlgorithm(
                facts,
                budget,
                self.factors,
                self.iterations,
                has_variances=self.uncertainty,
                ranks=RANKS_FOLD_IN if self.folds_in else RANKS,
            )
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
