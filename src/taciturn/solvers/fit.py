"""Result of a training."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, overload

import polars as pl

from taciturn._internal import parallel
from taciturn._internal.ids import Id, Ids
from taciturn._internal.interchange import Pandas
from taciturn.accounting.ledger import Ledger
from taciturn.data.ratings import Ratings
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Floats, Profiles
from taciturn.model.ranking import Ranking, warn_if_not_personalised
from taciturn.model.score import By, Score


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Fit:
    """Result of a training.

    Attributes
    ----------
    solver, settings
        Name and public settings of the solver.
    model
        Model that may be released under the ledger's guarantee. Its `items` is None if the solver
        never adds noise to them; its `users` is None if users fold in.
    private_users, private_items
        Profiles computed without noise: private and owner-only.
    ledger
        Record of all releases of the training.
    ids_from_ratings
        Id lists (`users`, `items`) that count as public under the privacy unit and were taken from
        the ratings.
    owner_only_facts
        Exact facts about the private data, such as training errors: owner-only.
    """

    solver: str
    settings: Mapping[str, Any]
    model: FactorModel
    private_users: Profiles | None = None
    private_items: Profiles | None = None
    ledger: Ledger
    ids_from_ratings: tuple[str, ...] = ()
    owner_only_facts: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        # Fields are long, and some are private.
        return f"Fit(solver={self.solver!r}, status={self.ledger.status.value!r})"

    @overload
    def predict(self, users: Id, items: Id) -> float: ...  # type: ignore[overload-overlap]

    @overload
    def predict(self, users: Ids, items: Ids) -> Floats: ...

    def predict(self, users: Any, items: Any) -> Any:
        """Predicted ratings of (user, item) pairs of ids, by `owner_model`: for the owner only.

        A number for one user and one item; an array for as many users as items.
        """
        return self.owner_model.predict(users, items)

    @overload
    def recommend(
        self,
        users: Pandas,
        count: int = 10,
        *,
        exclude: Any = None,
        by: By | str | None = None,
        popularity_weight: float = 1.0,
        explain: bool = False,
    ) -> Any: ...

    @overload
    def recommend(
        self,
        users: Id | Ids,
        count: int = 10,
        *,
        exclude: Pandas,
        by: By | str | None = None,
        popularity_weight: float = 1.0,
        explain: bool = False,
    ) -> Any: ...

    @overload
    def recommend(
        self,
        users: Id | Ids,
        count: int = 10,
        *,
        exclude: Ratings | pl.DataFrame | pl.Series | None = None,
        by: By | str | None = None,
        popularity_weight: float = 1.0,
        explain: bool = False,
    ) -> pl.DataFrame: ...

    def recommend(
        self,
        users: Any,
        count: int = 10,
        *,
        exclude: Any = None,
        by: By | str | None = None,
        popularity_weight: float = 1.0,
        explain: bool = False,
    ) -> Any:
        """Table of the best items of each user, by `owner_model`: for the owner only.

        With the ratings as `exclude`, items that a user rated are left out of that user's list. A
        fit does not hold the ratings. `Recommender.recommend` describes the parameters and the
        table; `Recommender(fit)` serves only what may be released.
        """
        ranking = self._owner_ranking
        score = Score.of(ranking.model, by, popularity_weight)
        warn_if_not_personalised(ranking.model, score)
        return ranking.table(users, count, score, exclude=exclude, explain=explain)

    @cached_property
    def _owner_ranking(self) -> Ranking:
        """Lists by `owner_model`, with its indexes: owner-only."""
        return Ranking(model=self.owner_model, threads=parallel.thread_count(None))

    @property
    def owner_model(self) -> FactorModel:
        """Model with the private profiles in place of those that cannot be released: owner-only."""
        users, items = self.model.users, self.model.items
        return replace(
            self.model,
            users=self.private_users if users is None else users,
            items=self.private_items if items is None else items,
        )
