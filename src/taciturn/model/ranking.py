"""Table of the best items of some users of a model."""

import warnings
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal.ids import Id, Ids, find_rows
from taciturn._internal.interchange import is_pandas, to_pandas
from taciturn.errors import NotPersonalised
from taciturn.model.factor_model import NOT_PERSONALISED, FactorModel
from taciturn.model.score import By, Score
from taciturn.model.top_k import ItemIndex
from taciturn.tables.frames import to_frame
from taciturn.tables.names import ITEM, USER


class RatedPairs(Protocol):
    """Ratings, as far as ranking needs to know them: which items some users rated."""

    def pairs_of(self, users: pl.Series) -> pl.DataFrame:
        """Pairs of these users, with the columns user_id and item_id."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Ranking:
    """Model with its score, an index of its items, the number of threads, and titles of items."""

    model: FactorModel
    score: Score
    index: ItemIndex
    threads: int
    titles: pl.Series | None = None

    @classmethod
    def of(
        cls,
        model: FactorModel,
        threads: int,
        titles: pl.Series | None = None,
        *,
        by: By | str | None = None,
        popularity_weight: float = 1.0,
    ) -> "Ranking":
        """Ranking by a model that has item profiles; `titles` has one for each of them."""
        score = Score.of(model, by, popularity_weight)
        index = ItemIndex(*score.items(model, model.item_profiles))
        return cls(model=model, score=score, index=index, threads=threads, titles=titles)

    def table(self, users: Id | Ids, count: int, exclude: Any) -> Any:
        """Best items of each user: user_id, item_id, score, rank. See `Recommender.recommend`."""
        ids, item_ids = self.model.user_profiles.ids, self.model.item_profiles.ids
        # A user may be listed twice; exclusions apply to both.
        rows, places = np.unique(self.model.rows_of_users(users), return_inverse=True)
        excluded = self._excluded(ids.gather(rows), exclude)
        items, scores = self.best(self.model, rows, count, *excluded)
        rows, items, scores = rows[places], items[places], scores[places]
        found = pl.DataFrame(
            {
                "user_id": ids.gather(np.repeat(rows, items.shape[1])),
                "item_id": item_ids.gather(np.maximum(items, 0).ravel()),
                "score": pl.Series(scores.ravel()),
                "rank": pl.Series(np.tile(np.arange(1, items.shape[1] + 1), len(rows))),
            },
            schema_overrides={"rank": pl.Int32},
        )
        if self.titles is not None:
            found = found.with_columns(title=self.titles.gather(np.maximum(items, 0).ravel()))
        is_found = items.ravel() >= 0
        found = found if is_found.all() else found.filter(pl.Series(is_found))
        is_asked_by_pandas = is_pandas(users, "Series", "Index") or is_pandas(exclude, "DataFrame")
        return to_pandas(found) if is_asked_by_pandas else found

    def best(
        self,
        model: FactorModel,
        rows: npt.NDArray[np.int64],
        count: int,
        starts: npt.NDArray[np.int64],
        columns: npt.NDArray[np.int32],
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """Item rows and scores of the best items of some user rows; see `ItemIndex.best`."""
        items, scores = self.index.best(
            self.score.users(model, rows),
            count,
            starts=starts,
            columns=columns,
            threads=self.threads,
        )
        scores += self.score.offsets(model, rows)[:, None]
        return items, scores

    def _excluded(
        self, users: pl.Series, exclude: Any
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Excluded item rows of each user, as starts and columns."""
        if exclude is None:
            return np.zeros(len(users) + 1, dtype=np.int64), np.empty(0, dtype=np.int32)
        if hasattr(exclude, "pairs_of"):
            seen = exclude.pairs_of(users).rename({"user_id": USER.name, "item_id": ITEM.name})
        else:
            seen = to_frame(exclude, (USER, ITEM))
        pairs = pl.DataFrame(
            {
                "user": find_rows(seen[USER.name], users, "exclude"),
                "item": find_rows(seen[ITEM.name], self.model.item_profiles.ids, "exclude"),
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


def warn_if_not_personalised(model: FactorModel) -> None:
    """Warn the caller of a public method that every user gets the same ranking."""
    if not model.is_personalised:
        warnings.warn(NOT_PERSONALISED, NotPersonalised, stacklevel=3)
