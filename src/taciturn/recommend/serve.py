"""Recommendations, predictions and similar items from a release."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal import parallel, validate
from taciturn._internal.forks import check_fork
from taciturn._internal.ids import Id, Ids, find_rows, id_series, like_ids
from taciturn._internal.interchange import Pandas
from taciturn._internal.spelling import either, option
from taciturn.errors import InvalidDocument, InvalidParameter, NotPersonalised
from taciturn.model.factor_model import NOT_PERSONALISED, FactorModel, HasModel, model_of
from taciturn.model.fold_in import FoldedIn
from taciturn.model.profiles import Floats, Profiles, Rows
from taciturn.model.ranking import Ranking, RatedPairs
from taciturn.recommend.tables import Titles, item_titles

_STEPS_MAX = 100.5
"""Maximum number of steps of a scale whose values get probabilities: 0 to 100."""


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """One recommended item: its id, its score, its rank, starting at 1, and its title if known."""

    item_id: Id
    score: float
    rank: int
    title: str | None = None


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Predicted distribution of one rating.

    `standard_deviation` is that of a normal distribution about the score. `probabilities` are those
    of the values of a scale with a step, by value; None if it has no step, or more than 101 values.
    """

    standard_deviation: float
    probabilities: dict[float, float] | None


class Recommender:
    """Serves a release, with its own item profiles or third-party ones.

    Recommendations have the scores of `FactorModel`, which are not clipped to the scale. All of
    this is post-processing of a release and costs no privacy. Unknown users and items are refused
    by name; users and items without ratings are scored by their biases. A release without factors
    ranks items the same for every user: its first list comes with a `NotPersonalised` warning.

    Parameters
    ----------
    release
        Release to serve, a `FactorModel`, or a fit, of which only the part that may be released is
        used. `Fit.recommend` uses the private profiles too.
    items
        Item profiles to use instead of the release's; a release of `paper` has none of its own.
    threads
        Number of threads. Default: one for each processor.
    titles
        Titles to show in lists: a dictionary by item id, or a table or its file with an id and a
        title column. Default: ids only.
    """

    def __init__(
        self,
        release: HasModel | FactorModel,
        *,
        items: Profiles | None = None,
        threads: int | None = None,
        titles: Titles | None = None,
    ) -> None:
        model = model_of(release)
        if items is not None:
            validate.instance("items", items, Profiles, "or leave it out")
        chosen = items if items is not None else model.items
        if chosen is None:
            raise InvalidParameter(
                f"the release has no item profiles; pass your own with {option('items', 'FILE')}"
            )
        width = model.factor_count
        if chosen.factors.shape[1] != width:
            raise InvalidDocument(
                f"the item profiles have {chosen.factors.shape[1]} factors and those of the "
                f"release have {width}; both must come from the same training"
            )
        self._items, self._model = chosen, replace(model, items=chosen)
        self._titles = None if titles is None else item_titles(titles, chosen.ids)
        self._ranking = Ranking.of(self._model, parallel.thread_count(threads), self._titles)
        self._has_warned = False

    @property
    def item_ids(self) -> pl.Series:
        """Ids of the items that can be recommended."""
        return self._items.ids

    @property
    def is_personalised(self) -> bool:
        """True if the ranking of items depends on the user: profiles have factors."""
        return self._model.is_personalised

    @overload
    def recommend(self, users: Pandas, count: int = 10, *, exclude: Any = None) -> Any: ...

    @overload
    def recommend(self, users: Id | Ids, count: int = 10, *, exclude: Pandas) -> Any: ...

    @overload
    def recommend(
        self,
        users: Id | Ids,
        count: int = 10,
        *,
        exclude: pl.DataFrame | RatedPairs | None = None,
    ) -> pl.DataFrame: ...

    def recommend(self, users: Any, count: int = 10, *, exclude: Any = None) -> Any:
        """Table of the best `count` items of each user: user_id, item_id, score, rank.

        With titles, the table has the column title too. It is a polars table; a pandas table if
        `users` or `exclude` comes from pandas.

        Parameters
        ----------
        users
            One user id or several.
        count
            Number of items for each user.
        exclude
            Pairs not to recommend, such as items that users have seen: a table with a user and an
            item column, or `Ratings`. A release does not contain these pairs, so the caller
            provides them.
        """
        self._user_profiles()
        self._warn_once()
        return self._ranking.table(users, count, exclude)

    def recommend_profile(
        self,
        bias: float,
        factors: npt.NDArray[np.float32],
        count: int = 10,
        *,
        exclude: Id | Ids = (),
    ) -> list[Recommendation]:
        """Best items for a profile that is not in the release, such as one from `fold_in`."""
        self._warn_once()
        model = self._model.with_user(bias, factors)
        known = find_rows(id_series(exclude), self._items.ids, "this list")
        columns = np.unique(known[known >= 0]).astype(np.int32)
        starts = np.array([0, len(columns)], dtype=np.int64)
        row = np.zeros(1, dtype=np.int64)
        items, scores = self._ranking.best(model, row, count, starts, columns)
        return [
            self._listed(int(item), float(score), rank)
            for rank, (item, score) in enumerate(zip(items[0], scores[0], strict=True), start=1)
            if item >= 0
        ]

    def fold_in(self, ratings: Mapping[Id, float]) -> FoldedIn:
        """Profile of a user who is not in the release, from ratings by item id.

        Ids are converted to the type of the release's ids: the keys of a JSON object may be passed
        as they are. Items that are not in the release are listed in `unknown_items` of the result;
        raises if no item is.

        Reads that user's ratings without noise, so run it on a trusted server or on the user's own
        device. The result is private to that user.
        """
        check_fork()
        return self._model.fold_in(ratings)

    def predict_profile(self, bias: float, factors: npt.NDArray[np.float32], item: Id) -> float:
        """Predicted rating of an item for a profile from `fold_in`, clipped to the scale."""
        place = self._model.rows_of_items([item])
        model = self._model.with_user(bias, factors)
        return float(model.predict_rows(np.zeros(1, dtype=np.int64), place)[0])

    @overload
    def predict(self, users: Id, items: Id) -> float: ...  # type: ignore[overload-overlap]

    @overload
    def predict(self, users: Ids, items: Ids) -> Floats: ...

    def predict(self, users: Any, items: Any) -> Any:
        """Predicted ratings of (user, item) pairs of ids, clipped to the scale.

        A number for one user and one item; an array for as many users as items.
        """
        self._user_profiles()
        return self._model.predict(users, items)

    @overload
    def standard_deviations(self, users: Id, items: Id) -> float: ...  # type: ignore[overload-overlap]

    @overload
    def standard_deviations(self, users: Ids, items: Ids) -> Floats: ...

    def standard_deviations(self, users: Any, items: Any) -> Any:
        """Predictive standard deviations of (user, item) pairs, before clipping.

        Raises if the user or item profiles have no variances.
        """
        self._user_profiles()
        rows = self._model.rows_of_pairs(users, items)
        return like_ids(self._model.standard_deviation_rows(*rows), users)

    def distribution(self, user: Id, item: Id) -> Distribution | None:
        """Predicted distribution of a rating; None if the release has no variances."""
        self._user_profiles()
        users, items = self._model.rows_of_pairs([user], [item])
        return _distribution(self._model, users, items) if self.has_variances else None

    def distribution_profile(self, folded: FoldedIn, item: Id) -> Distribution | None:
        """Predicted distribution of a rating by a user from `fold_in`; None without variances.

        As private as the profile.
        """
        validate.instance("folded", folded, FoldedIn, "a profile from fold_in")
        place = self._model.rows_of_items([item])
        if folded.variances is None or not self._model.has_item_variances:
            return None
        model = self._model.with_user(folded.bias, folded.factors, folded.variances)
        return _distribution(model, np.zeros(1, dtype=np.int64), place)

    @property
    def has_variances(self) -> bool:
        """True if users and items have the variances that `standard_deviations` needs."""
        return self._model.has_variances

    def similar(self, item: Id, count: int = 10) -> list[Recommendation]:
        """Items with the most similar profiles; scores are cosine similarities."""
        if self._items.factors.shape[1] == 0:
            raise InvalidParameter(
                "the profiles in this release have no factors, so items cannot be compared"
            )
        (place,) = self._model.rows_of_items([item])
        norms = np.linalg.norm(self._items.factors, axis=1)
        unit = self._items.factors / np.where(norms > 0, norms, 1)[:, None]
        cosines = unit @ unit[place]
        cosines[place] = -np.inf
        count = min(validate.positive_integer("count", count, "10 is usual"), len(unit) - 1)
        # Ties go to the earlier item.
        order = np.lexsort((np.arange(len(unit)), -cosines))[:count]
        return [
            self._listed(int(other), float(cosines[other]), rank)
            for rank, other in enumerate(order, start=1)
        ]

    def title(self, item: Id) -> str | None:
        """Title of an item; None if it is not known."""
        (place,) = self._model.rows_of_items([item])
        return None if self._titles is None else self._titles[int(place)]

    def _listed(self, item: int, score: float, rank: int) -> Recommendation:
        """Item of a list, by its row."""
        title = None if self._titles is None else self._titles[item]
        return Recommendation(item_id=self._items.ids[item], score=score, rank=rank, title=title)

    def _warn_once(self) -> None:
        if self.is_personalised or self._has_warned:
            return
        self._has_warned = True
        warnings.warn(NOT_PERSONALISED, NotPersonalised, stacklevel=3)

    def _user_profiles(self) -> Profiles:
        if self._model.users is None:
            raise InvalidParameter(
                "the release has no user profiles; fold a user in from their own ratings with "
                f"{either('--ratings FILE', 'fold_in')}"
            )
        return self._model.users


def _distribution(model: FactorModel, users: Rows, items: Rows) -> Distribution:
    """Predicted distribution of one pair of rows."""
    step, probabilities = model.scale.step, None
    if step is not None and model.scale.range / step <= _STEPS_MAX:
        found = model.star_probability_rows(users, items)[0]
        probabilities = dict(zip(model.scale.levels.tolist(), found.tolist(), strict=True))
    deviation = float(model.standard_deviation_rows(users, items)[0])
    return Distribution(standard_deviation=deviation, probabilities=probabilities)
