"""A training of ratings and of interest, in one schedule and within one budget."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from taciturn.accounting.budget import Budget
from taciturn.data.ratings import Ratings
from taciturn.mechanisms.query import Released
from taciturn.model.factor_model import FactorModel
from taciturn.model.interest import Interest, InterestItems
from taciturn.model.profiles import Profiles
from taciturn.queries.executor import RatingQuery
from taciturn.solvers.contract import Algorithm, OwnerOnly, QueryStep, Seeds, Step
from taciturn.solvers.interest.fold_in import folded_interests
from taciturn.solvers.interest.part import InterestPart


@dataclass(frozen=True, eq=False, kw_only=True)
class CombinedState:
    """State of the training of ratings, and of that of interest."""

    ratings: Any
    interest: Any


class WithInterest(Algorithm[CombinedState]):
    """An algorithm for ratings, and interest beside it.

    The first step is that of the algorithm for ratings, whose released counts interest starts from.
    The queries of interest come next, and the remaining steps for ratings last; these do not depend
    on interest.

    Parameters
    ----------
    inner
        Algorithm for ratings, built for its part of the budget.
    part
        Queries of interest, built for the rest.
    budget
        Budget of both together.
    share
        Budget share of interest; 0 if it needs none.
    threads
        Number of threads for the owner-only vectors of users.
    """

    def __init__(
        self,
        inner: Algorithm[Any],
        part: InterestPart[Any],
        *,
        budget: Budget | None,
        share: float,
        threads: int | None = None,
    ) -> None:
        self.unit, self.budget = inner.unit, budget
        self.published_patterns = inner.published_patterns + part.published_patterns
        self.served_exactly = inner.served_exactly
        self._inner, self._part, self._threads = inner, part, threads
        self._left = 1 - share
        first, *rest = inner.schedule
        # Whether each step is one of interest, and its number in its own schedule.
        self._order: list[tuple[bool, int]] = [
            (False, 0),
            *((True, number) for number in range(len(part.steps))),
            *((False, 1 + number) for number in range(len(rest))),
        ]
        remaining = [self._scaled(step) for step in rest]
        self.schedule = self._scaled(first), *part.steps, *remaining
        shares = [step.shares for step in remaining if isinstance(step, QueryStep)]
        self._rest = sum(map(sum, shares))

    def _scaled(self, step: Step) -> Step:
        """Step of the inner algorithm, with shares of the whole budget."""
        if not isinstance(step, QueryStep):
            return step
        return replace(step, shares=tuple(share * self._left for share in step.shares))

    def initial_state(self, seeds: Seeds) -> CombinedState:
        """State before the first step."""
        return CombinedState(
            ratings=self._inner.initial_state(seeds), interest=self._part.initial_state(seeds)
        )

    def shares(self, step: int, state: CombinedState) -> tuple[float, ...]:
        """Budget shares of a step; released numbers may move some to interest."""
        is_interest, number = self._order[step]
        if is_interest:
            return self._part.shares(number, state.interest)
        left = 1.0
        if step > 0:
            left -= self._part.moved(state.interest) / self._rest
        return tuple(share * left for share in super().shares(step, state))

    def query(self, step: int, state: CombinedState) -> RatingQuery:
        """Query of either part."""
        is_interest, number = self._order[step]
        if is_interest:
            return self._part.query(number, state.interest, state.ratings)
        return self._inner.query(number, state.ratings)

    def update(self, step: int, state: CombinedState, released: Released) -> CombinedState:
        """State of the part that a step belongs to."""
        is_interest, number = self._order[step]
        if is_interest:
            return replace(
                state,
                interest=self._part.update(number, state.interest, state.ratings, released),
            )
        ratings = self._inner.update(number, state.ratings, released)
        interest = state.interest
        if step == 0:
            interest = self._part.begun(interest, ratings, released)
        return replace(state, ratings=ratings, interest=interest)

    def model(self, state: CombinedState) -> FactorModel:
        """Model of ratings with interest vectors of its profiles."""
        model = self._inner.model(state.ratings)
        vectors = self._part.item_vectors(state.interest).astype(np.float32)
        coefficients = self._part.user_coefficients(state.interest)
        items, users = replace(model.item_profiles, interests=vectors), model.users
        if users is not None and coefficients is not None:
            scaled = InterestItems.of(vectors).scaled(coefficients)
            users = replace(users, interests=scaled)
        interest: Interest = self._part.interest(model.scale, state.interest)
        return replace(model, items=items, users=users, interest=interest)

    def owner_only(self, state: CombinedState, ratings: Ratings) -> OwnerOnly:
        """Exact profiles of the algorithm for ratings, with exact interest vectors of users."""
        found = self._inner.owner_only(state.ratings, ratings)
        model = self.model(state)
        users: Profiles | None = found.users
        if users is not None and model.interest_items is not None and model.interest is not None:
            vectors = folded_interests(
                ratings.pattern.by_user, model.interest_items, model.interest, self._threads
            )
            users = replace(users, interests=vectors)
        items = found.items
        if items is not None:
            items = replace(items, interests=model.item_profiles.interests)
        return replace(found, users=users, items=items)
