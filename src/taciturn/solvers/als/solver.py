"""Configuration of `als`, the default solver."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, ClassVar

from taciturn._internal import validate
from taciturn._internal.spelling import option, parameter
from taciturn.accounting.budget import Budget
from taciturn.accounting.units import DEFAULT_UNIT, Unit, UnitName
from taciturn.errors import InvalidParameter
from taciturn.solvers.als.fold_in import RANGE_MAX, FoldInAlgorithm, UserPrior
from taciturn.solvers.als.layout import Layout
from taciturn.solvers.als.rating import RANKS, RANKS_FOLD_IN, RatingAlgorithm
from taciturn.solvers.als.size import bounds_whole_users, has_factors_by_size, interest_share
from taciturn.solvers.als.user import UserAlgorithm
from taciturn.solvers.als.value import ROUNDS, ValueAlgorithm
from taciturn.solvers.bias import BiasAlgorithm
from taciturn.solvers.contract import Algorithm, PublicFacts, State
from taciturn.solvers.entry import FOLD_IN
from taciturn.solvers.interest.algorithm import WithInterest
from taciturn.solvers.interest.part import InterestPart
from taciturn.solvers.interest.pattern import PatternInterest
from taciturn.solvers.interest.rating import RatingInterest
from taciturn.solvers.interest.user import UserInterest
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
    interest
        Whether to learn what users turn to, beside how they rate, for better lists. Under `value`
        it follows from the public rating pattern, and publishes functions of it; under other units
        it takes a part of the budget. Default: yes, unless `pattern_features` is false under
        `value`.
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
    interest: bool | None = None

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
        if self.interest is not None and not isinstance(self.interest, bool):
            raise InvalidParameter("interest must be true or false")
        if self.interest and not self._may_use_pattern:
            raise InvalidParameter(
                "under unit value interest is a function of the rating pattern, which "
                f"{option('pattern_features', False)} keeps out of the release; leave it out, or "
                "do not ask for interest"
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
        """Algorithm for the privacy unit, with interest if it is learnt."""
        budget = self.require_budget(budget)
        if self.uncertainty and facts.scale.range > RANGE_MAX:
            raise InvalidParameter(
                f"{option('uncertainty', True)} needs a scale no wider than {RANGE_MAX:,.0f}"
            )
        share = interest_share(Unit(self.unit), budget) if self.learns_interest else 0.0
        # What interest spends is missing for ratings.
        left = Budget.from_mu(budget.mu * math.sqrt(1 - share), budget.delta) if share else budget
        inner: Algorithm[Any]
        part: Callable[[], InterestPart[Any]]
        if self.unit is Unit.USER or self._bounds_whole_users(facts, left):
            inner = users = self._user_algorithm(facts, left, threads)
            part = partial(
                UserInterest,
                facts,
                budget,
                share,
                users.view,
                Unit(self.unit),
                may_move=not self.uncertainty,
            )
        elif self.unit is Unit.RATING:
            ratings = self._rating_algorithm(facts, left)
            inner = self._served(ratings, ratings.user_prior, facts, threads)
            part = partial(RatingInterest, facts, budget, share, ratings.view)
        else:
            values = self._value_algorithm(facts, left, threads)
            inner = self._served(values, values.user_prior, facts, threads)
            part = partial(PatternInterest, facts, threads)
        if not self.learns_interest:
            return inner
        return WithInterest(inner, part(), budget=budget, share=share, threads=threads)

    @property
    def learns_interest(self) -> bool:
        """Whether interest is learnt."""
        return self.interest is not False and self._may_use_pattern

    @property
    def _may_use_pattern(self) -> bool:
        """Whether what is learnt from the rating pattern may be released."""
        return self.unit is not Unit.VALUE or self.pattern_features is not False

    def _served(
        self,
        algorithm: Algorithm[State],
        user_prior: Callable[[State], UserPrior],
        facts: PublicFacts,
        threads: int | None,
    ) -> Algorithm[State]:
        """Algorithm whose users fold in, if they do."""
        if not self.folds_in:
            return algorithm
        return FoldInAlgorithm(algorithm, user_prior, facts, threads)

    def _user_algorithm(
        self, facts: PublicFacts, budget: Budget, threads: int | None
    ) -> UserAlgorithm:
        """Algorithm that bounds whole users."""
        return UserAlgorithm(
            facts,
            budget,
            self.factors,
            self.iterations,
            threads,
            has_variances=self.uncertainty,
            unit=Unit(self.unit),
        )

    def _bounds_whole_users(self, facts: PublicFacts, budget: Budget) -> bool:
        """Whether every user's whole contribution is bounded, although ratings are protected."""
        is_chosen = self.factors is not None or self.iterations is not None
        if self.unit is not Unit.RATING or not self.folds_in or is_chosen:
            return False
        return bounds_whole_users(facts, budget)

    def _rating_algorithm(self, facts: PublicFacts, budget: Budget) -> RatingAlgorithm:
        """Algorithm under unit `rating`, which releases profiles of both axes."""
        return RatingAlgorithm(
            facts,
            budget,
            self.factors,
            self.iterations,
            has_variances=self.uncertainty,
            ranks=RANKS_FOLD_IN if self.folds_in else RANKS,
        )

    def _value_algorithm(
        self, facts: PublicFacts, budget: Budget, threads: int | None
    ) -> BiasAlgorithm | ValueAlgorithm:
        """Algorithm under unit `value`."""
        if self._is_all_default and not has_factors_by_size(facts, budget):
            return BiasAlgorithm(facts, budget, threads=threads)
        return ValueAlgorithm(
            facts,
            budget,
            Layout(facts, self.factors, self.pattern_features is not False, threads),
            rounds=self.iterations or ROUNDS,
            has_variances=self.uncertainty,
            threads=threads,
        )
