"""Recommendations, predictions and similar items from a release."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal import parallel, validate
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.model.deviations import deviations
from taciturn.model.fold_in import FoldedIn, fold_in
from taciturn.recommend.tables import same_type
from taciturn.recommend.top import Catalogue
from taciturn.release.bundle import Release, Table

Id = int | str


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """One item for somebody: its id, its predicted rating and its rank, from 1."""

    item_id: Id
    score: float
    rank: int


class Recommender:
    """Serves a release, with its own item profiles or somebody else's.

    A score is mean + item bias + user bias + ⟨item profile, user profile⟩, not cut to the scale, so
    that it ranks. Post-processes a release: nothing here costs privacy. Items and users that the
    release does not have are refused by name; those it has without ratings score by their biases.

    Parameters
    ----------
    release
        What was published.
    items
        Item profiles to use instead of the release's; a release of `paper` has none of its own.
    threads
        How many threads to use; all processors when omitted.
    """

    def __init__(
        self, release: Release, *, items: Table | None = None, threads: int | None = None
    ) -> None:
        chosen = items if items is not None else release.items
        if chosen is None:
            raise InvalidParameter(
                "the release has no item profiles; bring your own (--items FILE)"
            )
        if chosen.factors.shape[1] != release.facts.factors:
            raise InvalidDocument(
                f"item profiles have length {chosen.factors.shape[1]}, those of the release "
                f"{release.facts.factors}; both must come from the same factors"
            )
        self._items, self._users = chosen, release.users
        self._mean, self._scale = release.facts.mean, release.facts.scale
        self._residual_variance = release.facts.residual_variance
        self._prior = release.facts.prior
        self._threads = parallel.thread_count(threads)
        self._catalogue = Catalogue(chosen.factors, chosen.biases)

    @property
    def item_ids(self) -> pl.Series:
        """The ids of the items that can be recommended."""
        return self._items.ids

    def recommend(
        self,
        users: Sequence[Id] | pl.Series,
        count: int = 10,
        *,
        exclude: pl.DataFrame | None = None,
    ) -> pl.DataFrame:
        """Return the best `count` items of each user: user_id, item_id, score, rank.

        `exclude` has the columns user_id and item_id: pairs not to recommend, such as what users
        have seen. A release holds no history, so this comes from whoever calls.
        """
        table = self._user_table()
        # A user may come twice: what is excluded for one is excluded for all of them.
        rows, places = np.unique(_rows(_series(users), table.ids, "user"), return_inverse=True)
        starts, columns = self._excluded(table.ids.gather(rows), exclude)
        items, scores = self._catalogue.best(
            table.factors[rows], count, starts=starts, columns=columns, threads=self._threads
        )
        rows, items, scores = rows[places], items[places], scores[places]
        scores += (np.float32(self._mean) + table.biases[rows])[:, None]
        found = pl.DataFrame(
            {
                "user_id": table.ids.gather(np.repeat(rows, items.shape[1])),
                "item_id": self._items.ids.gather(np.maximum(items, 0).ravel()),
                "score": pl.Series(scores.ravel()),
                "rank": pl.Series(np.tile(np.arange(1, items.shape[1] + 1), len(rows))),
            },
            schema_overrides={"rank": pl.Int32},
        )
        there = items.ravel() >= 0
        return found if there.all() else found.filter(pl.Series(there))

    def recommend_profile(
        self,
        bias: float,
        factors: npt.NDArray[np.float32],
        count: int = 10,
        *,
        exclude: Sequence[Id] = (),
    ) -> list[Recommendation]:
        """Return the best items for a profile that is not in the release, from `fold_in` say."""
        factors = np.asarray(factors, dtype=np.float32)
        width = self._items.factors.shape[1]
        bias = validate.finite("bias", bias, "it is a number")
        if factors.shape != (width,) or not np.isfinite(factors).all():
            raise InvalidParameter(f"a profile has {width} finite numbers here")
        known = _places(_series(exclude), self._items.ids)
        columns = np.unique(known[known >= 0]).astype(np.int32)
        starts = np.array([0, len(columns)], dtype=np.int64)
        items, scores = self._catalogue.best(
            factors[None], count, starts=starts, columns=columns, threads=self._threads
        )
        return [
            Recommendation(
                item_id=self._items.ids[int(item)],
                score=float(score) + self._mean + float(bias),
                rank=rank,
            )
            for rank, (item, score) in enumerate(zip(items[0], scores[0], strict=True), start=1)
            if item >= 0
        ]

    def fold_in(self, ratings: Mapping[Id, float]) -> FoldedIn:
        """Return the profile of somebody who is not in the release, from ratings by item id.

        Reads that person's ratings without noise: on the trusted side, or on their own device. The
        result is theirs alone.
        """
        return fold_in(ratings, self._items, mean=self._mean, scale=self._scale, prior=self._prior)

    def predict_profile(self, bias: float, factors: npt.NDArray[np.float32], item: Id) -> float:
        """Return the predicted rating of an item for a profile from `fold_in`, cut to the scale."""
        (place,) = _rows(_series([item]), self._items.ids, "item")
        score = self._mean + bias + float(self._items.biases[place])
        score += float(self._items.factors[place] @ np.asarray(factors, dtype=np.float32))
        return min(max(score, self._scale.low), self._scale.high)

    def predict(
        self, users: Sequence[Id] | pl.Series, items: Sequence[Id] | pl.Series
    ) -> npt.NDArray[np.float32]:
        """Return the predicted ratings of pairs, cut to the scale."""
        table, rows, columns = self._pairs(users, items)
        scores = np.einsum("nk,nk->n", table.factors[rows], self._items.factors[columns])
        scores += table.biases[rows] + self._items.biases[columns] + np.float32(self._mean)
        cut: npt.NDArray[np.float32] = np.clip(scores, self._scale.low, self._scale.high)
        return cut

    def deviations(
        self, users: Sequence[Id] | pl.Series, items: Sequence[Id] | pl.Series
    ) -> npt.NDArray[np.float32]:
        """Return the standard deviations of ratings about their predictions, before the cut.

        Raises if the release, or the item profiles brought along, do not tell how sure they are.
        """
        table, rows, columns = self._pairs(users, items)
        return deviations(self._residual_variance, table, self._items, rows, columns)

    @property
    def has_deviations(self) -> bool:
        """Whether `deviations` can tell any."""
        return self._residual_variance is not None and self._items.variances is not None

    def _pairs(
        self, users: Sequence[Id] | pl.Series, items: Sequence[Id] | pl.Series
    ) -> tuple[Table, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the table of users, and the rows of pairs in it and among the items."""
        table = self._user_table()
        if len(users) != len(items):
            raise InvalidParameter("give one item for each user")
        rows = _rows(_series(users), table.ids, "user")
        return table, rows, _rows(_series(items), self._items.ids, "item")

    def similar(self, item: Id, count: int = 10) -> list[Recommendation]:
        """Return the items whose profiles point most nearly the same way; scores are cosines."""
        if self._items.factors.shape[1] == 0:
            raise InvalidParameter("profiles are empty here: nothing tells which items are alike")
        (place,) = _rows(_series([item]), self._items.ids, "item")
        norms = np.linalg.norm(self._items.factors, axis=1)
        unit = self._items.factors / np.where(norms > 0, norms, 1)[:, None]
        cosines = unit @ unit[place]
        cosines[place] = -np.inf
        count = min(validate.positive_integer("count", count, "ten are usual"), len(unit) - 1)
        # Ties go to the earlier item.
        order = np.lexsort((np.arange(len(unit)), -cosines))[:count]
        return [
            Recommendation(
                item_id=self._items.ids[int(other)], score=float(cosines[other]), rank=rank
            )
            for rank, other in enumerate(order, start=1)
        ]

    def _user_table(self) -> Table:
        if self._users is None:
            raise InvalidParameter(
                "the release has no user profiles; fold somebody in from their own ratings "
                "(--ratings FILE, or Recommender.fold_in)"
            )
        return self._users

    def _excluded(
        self, users: pl.Series, exclude: pl.DataFrame | None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Return the items that each user is not to get, by row."""
        if exclude is None:
            return np.zeros(len(users) + 1, dtype=np.int64), np.empty(0, dtype=np.int32)
        for name in ("user_id", "item_id"):
            if name not in exclude.columns:
                raise InvalidParameter("what to exclude must have the columns user_id and item_id")
        pairs = pl.DataFrame(
            {
                "user": _places(exclude["user_id"], users),
                "item": _places(exclude["item_id"], self._items.ids),
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


def _series(ids: Sequence[Id] | pl.Series) -> pl.Series:
    if isinstance(ids, str):
        raise InvalidParameter("give ids in a list, even a single one")
    try:
        return ids if isinstance(ids, pl.Series) else pl.Series(list(ids))
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        raise InvalidParameter("ids must be all whole numbers or all text") from None


def _places(ids: pl.Series, table: pl.Series) -> npt.NDArray[np.int64]:
    """Return the place of each id in a table, −1 where it is not there."""
    if len(ids) == 0:
        return np.empty(0, dtype=np.int64)
    known = table.to_frame("id").with_columns(place=pl.Series(np.arange(len(table))))
    wanted = same_type(ids, table, "this list").alias("id")
    found = wanted.to_frame().join(
        known.unique("id", keep="first"), on="id", how="left", maintain_order="left"
    )
    return found["place"].fill_null(-1).to_numpy()


def _rows(ids: pl.Series, table: pl.Series, role: str) -> npt.NDArray[np.int64]:
    """Return the place of each id, or raise naming the first that is not there."""
    places = _places(ids, table)
    missing = np.flatnonzero(places < 0)
    if missing.size:
        hint = (
            "; for somebody new, fold in ratings of their own (--ratings FILE, or "
            "Recommender.fold_in)"
            if role == "user"
            else "; it has no profile to score"
        )
        raise InvalidParameter(
            f"there is no {role} {validate.shown(ids[int(missing[0])])} in the release{hint}"
        )
    return places
