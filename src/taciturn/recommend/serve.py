"""Recommendations, predictions and similar items from a release."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal import parallel, validate
from taciturn._internal.forks import check_fork
from taciturn._internal.ids import find_rows, id_series
from taciturn.errors import InvalidDocument, InvalidParameter, NotPersonalised
from taciturn.model.factor_model import NOT_PERSONALISED, FactorModel
from taciturn.model.fold_in import FoldedIn, Id
from taciturn.model.profiles import Profiles
from taciturn.model.top_k import ItemIndex
from taciturn.release.bundle import Release


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """One recommended item: its id, its score and its rank, starting at 1."""

    item_id: Id
    score: float
    rank: int


class Recommender:
    """Serves a release, with its own item profiles or third-party ones.

    Recommendations have the scores of `FactorModel`, which are not clipped to the scale. All of
    this is post-processing of a release and costs no privacy. Unknown users and items are refused
    by name; users and items without ratings are scored by their biases. A release without factors
    ranks items the same for every user: its first list comes with a `NotPersonalised` warning.

    Parameters
    ----------
    release
        Release to serve.
    items
        Item profiles to use instead of the release's; a release of `paper` has none of its own.
    threads
        Number of threads. Default: one for each processor.
    """

    def __init__(
        self, release: Release, *, items: Profiles | None = None, threads: int | None = None
    ) -> None:
        chosen = items if items is not None else release.model.items
        if chosen is None:
            raise InvalidParameter(
                "the release has no item profiles; pass your own with --items FILE"
            )
        width = release.model.factor_count
        if chosen.factors.shape[1] != width:
            raise InvalidDocument(
                f"the item profiles have {chosen.factors.shape[1]} factors and those of the "
                f"release have {width}; both must come from the same training"
            )
        self._items, self._model = chosen, replace(release.model, items=chosen)
        self._threads = parallel.thread_count(threads)
        self._index = ItemIndex(chosen.factors, chosen.biases)
        self._has_warned = False

    @property
    def item_ids(self) -> pl.Series:
        """Ids of the items that can be recommended."""
        return self._items.ids

    @property
    def is_personalised(self) -> bool:
        """True if the ranking of items depends on the user: profiles have factors."""
        return self._model.is_personalised

    def recommend(
        self,
        users: Sequence[Id] | pl.Series,
        count: int = 10,
        *,
        exclude: pl.DataFrame | None = None,
    ) -> pl.DataFrame:
        """Table of the best `count` items of each user: user_id, item_id, score, rank.

        `exclude` has the columns user_id and item_id: pairs not to recommend, such as items that
        users have seen. A release does not contain these pairs, so the caller provides them.
        """
        table = self._user_profiles()
        self._warn_if_not_personalised()
        # A user may be listed twice; exclusions apply to both.
        rows, places = np.unique(self._model.rows_of_users(users), return_inverse=True)
        excluded = self._excluded(table.ids.gather(rows), exclude)
        items, scores = self._best(self._model, rows, count, *excluded)
        rows, items, scores = rows[places], items[places], scores[places]
        found = pl.DataFrame(
            {
                "user_id": table.ids.gather(np.repeat(rows, items.shape[1])),
                "item_id": self._items.ids.gather(np.maximum(items, 0).ravel()),
                "score": pl.Series(scores.ravel()),
                "rank": pl.Series(np.tile(np.arange(1, items.shape[1] + 1), len(rows))),
            },
            schema_overrides={"rank": pl.Int32},
        )
        is_found = items.ravel() >= 0
        return found if is_found.all() else found.filter(pl.Series(is_found))

    def recommend_profile(
        self,
        bias: float,
        factors: npt.NDArray[np.float32],
        count: int = 10,
        *,
        exclude: Sequence[Id] = (),
    ) -> list[Recommendation]:
        """Best items for a profile that is not in the release, such as one from `fold_in`."""
        self._warn_if_not_personalised()
        model = self._model.with_user(bias, factors)
        known = find_rows(id_series(exclude), self._items.ids, "this list")
        columns = np.unique(known[known >= 0]).astype(np.int32)
        starts = np.array([0, len(columns)], dtype=np.int64)
        items, scores = self._best(model, np.zeros(1, dtype=np.int64), count, starts, columns)
        return [
            Recommendation(item_id=self._items.ids[int(item)], score=float(score), rank=rank)
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

    def predict(
        self, users: Sequence[Id] | pl.Series, items: Sequence[Id] | pl.Series
    ) -> npt.NDArray[np.float32]:
        """Predicted ratings of (user, item) pairs of ids, clipped to the scale."""
        self._user_profiles()
        return self._model.predict(users, items)

    def standard_deviations(
        self, users: Sequence[Id] | pl.Series, items: Sequence[Id] | pl.Series
    ) -> npt.NDArray[np.float32]:
        """Predictive standard deviations of (user, item) pairs, before clipping.

        Raises if the user or item profiles have no variances.
        """
        self._user_profiles()
        return self._model.standard_deviation_rows(*self._model.rows_of_pairs(users, items))

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
            Recommendation(
                item_id=self._items.ids[int(other)], score=float(cosines[other]), rank=rank
            )
            for rank, other in enumerate(order, start=1)
        ]

    def _best(
        self,
        model: FactorModel,
        rows: npt.NDArray[np.int64],
        count: int,
        starts: npt.NDArray[np.int64],
        columns: npt.NDArray[np.int32],
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """Item rows and scores of the best items of some user rows; see `ItemIndex.best`."""
        items, scores = self._index.best(
            model.user_profiles.factors[rows],
            count,
            starts=starts,
            columns=columns,
            threads=self._threads,
        )
        scores += model.offsets_rows(rows)[:, None]
        return items, scores

    def _warn_if_not_personalised(self) -> None:
        if self.is_personalised or self._has_warned:
            return
        self._has_warned = True
        warnings.warn(NOT_PERSONALISED, NotPersonalised, stacklevel=3)

    def _user_profiles(self) -> Profiles:
        if self._model.users is None:
            raise InvalidParameter(
                "the release has no user profiles; fold a user in from their own ratings with "
                "--ratings FILE or Recommender.fold_in"
            )
        return self._model.users

    def _excluded(
        self, users: pl.Series, exclude: pl.DataFrame | None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Excluded item rows of each user, as starts and columns."""
        if exclude is None:
            return np.zeros(len(users) + 1, dtype=np.int64), np.empty(0, dtype=np.int32)
        for name in ("user_id", "item_id"):
            if name not in exclude.columns:
                raise InvalidParameter("exclude must have the columns user_id and item_id")
        pairs = pl.DataFrame(
            {
                "user": find_rows(exclude["user_id"], users, "this list"),
                "item": find_rows(exclude["item_id"], self._items.ids, "this list"),
            }
        )
        pairs = (
            pairs.filter((pl.col("user") >= 0) & (pl.col("item") >= 0))
            .unique()
            .sort("user", "item")
        )
        counts = np.bincount(pairs["user"].to_numpy(), minlength=len(users))
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return starts, pairs["item"].to_numpy().astype(np.int32)
