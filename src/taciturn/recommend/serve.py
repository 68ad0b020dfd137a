"""Recommendations, predictions and similar items from a release."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal import parallel, validate
from taciturn._internal.forks import check_fork
from taciturn._internal.ids import Id, Ids, id_series, like_ids
from taciturn._internal.interchange import Pandas
from taciturn._internal.spelling import either, option
from taciturn.errors import InvalidDocument, InvalidParameter, NotPersonalised
from taciturn.model.factor_model import (
    NOT_PERSONALISED,
    FactorModel,
    HasModel,
    check_predicts,
    model_of,
)
from taciturn.model.fold_in import FoldedIn, known_ratings
from taciturn.model.known_items import KnownItems
from taciturn.model.profiles import Floats, Profiles
from taciturn.model.ranking import Ranking, RatedPairs
from taciturn.model.reasons import Reason
from taciturn.model.score import By, Score
from taciturn.model.similarity import Similarity, compared_by
from taciturn.recommend.results import Distribution, Recommendation
from taciturn.recommend.tables import Titles, item_titles


class Recommender:
    """Serves a release, with its own item profiles or third-party ones.

    Lists are in the order of interest and predicted rating together, or of the predicted rating
    alone if the model has no interest. Scores by interest have no unit, and an average item has 0;
    scores by rating are predicted ratings that are not clipped to the scale. All of this is
    post-processing of a release and costs no privacy. Unknown users and items are refused by name;
    users and items without ratings are scored by their biases. A release without factors ranks
    items the same for every user: its first list comes with a `NotPersonalised` warning.

    Parameters
    ----------
    release
        Release to serve, a `FactorModel`, or a fit, of which only the part that may be released is
        used. `Fit.recommend` uses the private profiles too.
    items
        Item profiles to use instead of the release's; a release of `paper` has none of its own.
        Without interest vectors, items are served by rating.
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
        if chosen.interests is None:
            model = replace(model, items=None).without_interest()
        self._items, self._model = chosen, replace(model, items=chosen)
        self._titles = None if titles is None else item_titles(titles, chosen.ids)
        self._ranking = Ranking(
            model=self._model, threads=parallel.thread_count(threads), titles=self._titles
        )
        self._similarities: dict[By, Similarity] = {}
        self._lacks_interest = chosen.interests is None and model_of(release).interest is not None
        self._has_warned = False

    @property
    def model(self) -> FactorModel:
        """Model that is served: the release's, with the item profiles in use."""
        return self._model

    @property
    def item_ids(self) -> pl.Series:
        """Ids of the items that can be recommended."""
        return self._items.ids

    @property
    def title_count(self) -> int:
        """Number of items with a title."""
        return 0 if self._titles is None else len(self._titles) - self._titles.null_count()

    @property
    def is_personalised(self) -> bool:
        """True if the ranking of items depends on the user: profiles have factors."""
        return self._model.is_personalised

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
        exclude: pl.DataFrame | RatedPairs | pl.Series | None = None,
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
            provides them. A polars series of item ids is left out of every list.
        by
            `interest`, for interest and predicted rating together, or `rating`, for the predicted
            rating alone. Default: by interest if the model has it.
        popularity_weight
            Weight of popularity in the order by interest, 0 to 1: below 1, lists have fewer popular
            items.
        explain
            If true, the table has the columns because and reason: up to two similar items that the
            user liked, and a text. A user likes the pairs in `exclude`; if it has a column of
            ratings, those rated above the middle of the scale and at least at the median of the
            user's own ratings. Without a near item, the reason is the largest part of the score,
            compared with an average item.
        """
        self._user_profiles()
        score = self._score(by, popularity_weight)
        self._warn_once(score)
        return self._ranking.table(users, count, score, exclude=exclude, explain=explain)

    def recommend_profile(
        self,
        bias: float,
        factors: npt.NDArray[np.float32],
        count: int = 10,
        *,
        interest: npt.NDArray[np.float32] | None = None,
        exclude: Id | Ids = (),
        ratings: Mapping[Id, float] | None = None,
        by: By | str | None = None,
        popularity_weight: float = 1.0,
        explain: bool = False,
    ) -> list[Recommendation]:
        """Best items for a profile that is not in the release, such as one from `fold_in`.

        `Recommender.recommend` describes the other parameters.

        Parameters
        ----------
        bias, factors, interest
            The profile. Without an interest vector, items are listed by rating.
        exclude
            Items not to recommend.
        ratings
            The user's own ratings, as for `fold_in`. They are not recommended either, and with
            `explain` they are the items that the user liked.
        """
        score = self._score(by, popularity_weight)
        if interest is None and score.by is By.INTEREST:
            is_chosen = by is not None or score.popularity_weight != 1
            if is_chosen or not self._model.predicts_ratings:
                raise InvalidParameter(
                    "a profile without an interest vector has lists by rating only; pass interest, "
                    "which fold_in returns"
                )
            score = self._score(By.RATING, 1.0)
        self._warn_once(score)
        model = self._model.with_user(bias, factors, interest=interest)
        own = self._own_items(ratings)
        known = own.with_excluded(self._items.id_table.find(id_series(exclude), "this list"))
        row = np.zeros(1, dtype=np.int64)
        (items,), (scores,) = self._ranking.best(model, row, count, score, known)
        items, scores = items[items >= 0], scores[items >= 0]
        reasons: list[Reason | None] = [None] * len(items)
        if validate.flag("explain", explain):
            user = score.users(model, row)
            reasons = [*self._ranking.reasons(score).of_lists(user, [(0, items)], own)]
        return [
            self._listed(int(item), float(each), rank, score.by, reason)
            for rank, (item, each, reason) in enumerate(
                zip(items, scores, reasons, strict=True), start=1
            )
        ]

    def _own_items(self, ratings: Mapping[Id, float] | None) -> KnownItems:
        """Items that one user rated."""
        if ratings is None:
            return KnownItems.none(1)
        known = known_ratings(ratings, self._items, self._model.scale)
        users = np.zeros(len(known.rows), dtype=np.int64)
        return KnownItems.of_pairs(users, known.rows, 1, pl.Series(known.values))

    def _score(self, by: By | str | None, popularity_weight: float) -> Score:
        """Checked score of a list."""
        is_weighted = isinstance(popularity_weight, int | float) and popularity_weight != 1
        if self._lacks_interest and (is_weighted or (isinstance(by, str) and by == By.INTEREST)):
            raise InvalidParameter(
                "your own item profiles have no interest vectors, so lists are by rating; leave "
                f"{option('by')} and {option('popularity_weight')} out"
            )
        return Score.of(self._model, by, popularity_weight)

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
        check_predicts(self._model)
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
        return Distribution.of(self._model, users, items) if self.has_variances else None

    def distribution_profile(self, folded: FoldedIn, item: Id) -> Distribution | None:
        """Predicted distribution of a rating by a user from `fold_in`; None without variances.

        As private as the profile.
        """
        validate.instance("folded", folded, FoldedIn, "a profile from fold_in")
        place = self._model.rows_of_items([item])
        if folded.variances is None or not self._model.has_item_variances:
            return None
        model = self._model.with_user(folded.bias, folded.factors, folded.variances)
        return Distribution.of(model, np.zeros(1, dtype=np.int64), place)

    @property
    def has_variances(self) -> bool:
        """True if users and items have the variances that `standard_deviations` needs."""
        return self._model.has_variances

    def similar(
        self, item: Id, count: int = 10, *, by: By | str | None = None
    ) -> list[Recommendation]:
        """Items with the most similar profiles; scores are cosine similarities.

        `by` compares `interest` factors, or `rating` factors. Default: interest factors if the
        model has any. `Recommendation.by` is what was compared.
        """
        (place,) = self._model.rows_of_items([item])
        by = compared_by(self._model, by)
        if by not in self._similarities:
            self._similarities[by] = Similarity(model=self._model, by=by)
        count = validate.positive_integer("count", count, "10 is usual")
        rows, cosines = self._similarities[by].nearest(int(place), count)
        return [
            self._listed(int(other), float(cosine), rank, by)
            for rank, (other, cosine) in enumerate(zip(rows, cosines, strict=True), start=1)
        ]

    def title(self, item: Id) -> str | None:
        """Title of an item; None if it is not known."""
        (place,) = self._model.rows_of_items([item])
        return None if self._titles is None else self._titles[int(place)]

    def _listed(
        self, item: int, score: float, rank: int, by: By, reason: Reason | None = None
    ) -> Recommendation:
        """Item of a list, by its row."""
        return Recommendation(
            item_id=self._items.ids[item],
            score=score,
            rank=rank,
            by=by,
            title=None if self._titles is None else self._titles[item],
            because=() if reason is None else reason.because,
            reason=None if reason is None else reason.text,
        )

    def _warn_once(self, score: Score) -> None:
        if score.is_personalised(self._model) or self._has_warned:
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
