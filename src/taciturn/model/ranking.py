"""Table of the best items of some users of a model."""

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal import validate
from taciturn._internal.ids import Id, Ids, IdTable, is_one_id
from taciturn._internal.interchange import is_pandas, to_pandas
from taciturn.errors import InvalidParameter, NotPersonalised
from taciturn.model.factor_model import NOT_PERSONALISED, FactorModel
from taciturn.model.known_items import KnownItems
from taciturn.model.profiles import Rows
from taciturn.model.reasons import Reasons
from taciturn.model.score import By, Score
from taciturn.model.top_k import ItemIndex
from taciturn.tables.frames import is_path, to_frame
from taciturn.tables.names import ITEM, RATING, USER


class RatedPairs(Protocol):
    """Ratings, as far as ranking needs to know them: which items some users rated, and how."""

    def pairs_of(self, users: pl.Series) -> pl.DataFrame:
        """Ratings of these users, with the columns user_id, item_id and rating."""
        ...


_OPTIONAL_RATING = replace(RATING, is_required=False)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Order:
    """Index of the items for one order, and the mean of their profiles; see `Score.average`."""

    index: ItemIndex
    average: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Ranking:
    """Lists by a model that has item profiles, with an index of the items for each order.

    Attributes
    ----------
    titles
        Title of each item; None without titles.
    """

    model: FactorModel
    threads: int
    titles: pl.Series | None = None
    _orders: dict[By, _Order] = field(default_factory=dict, init=False)

    def _order(self, score: Score) -> _Order:
        """Items in the order of a score, built once. The weight of popularity is the users'."""
        if score.by not in self._orders:
            items = self.model.item_profiles
            self._orders[score.by] = _Order(
                index=ItemIndex.of(score, self.model, items),
                average=score.average(self.model, items),
            )
        return self._orders[score.by]

    def reasons(self, score: Score) -> Reasons:
        """Reasons for the items of lists by a score."""
        average = self._order(score).average
        return Reasons(model=self.model, score=score, average=average, titles=self.titles)

    def table(
        self,
        users: Id | Ids,
        count: int,
        score: Score,
        *,
        exclude: Any = None,
        explain: bool = False,
    ) -> Any:
        """Best items of each user: user_id, item_id, score, rank. See `Recommender.recommend`."""
        explain = validate.flag("explain", explain)
        ids, item_ids = self.model.user_profiles.ids, self.model.item_profiles.ids
        rows = self.model.rows_of_users(users)
        places = np.zeros(len(rows), dtype=np.int64)
        if len(rows) != 1:  # a user may be listed twice; exclusions apply to both
            rows, places = np.unique(rows, return_inverse=True)
        known = self._known(rows, exclude, has_values=explain)
        items, scores = self.best(self.model, rows, count, score, known)
        listed, scores = items[places], scores[places]
        found = _table(ids, item_ids, rows[places], listed, scores)
        if self.titles is not None:
            found = found.with_columns(title=self.titles[np.maximum(listed, 0).ravel()])
        if explain:
            own = score.users(self.model, rows)
            lists = list(zip(places.tolist(), np.maximum(listed, 0), strict=True))
            reasons = self.reasons(score).of_lists(own, lists, known)
            found = found.with_columns(
                pl.Series(
                    "because",
                    [list(each.because) for each in reasons],
                    dtype=pl.List(item_ids.dtype),
                ),
                pl.Series("reason", [each.text for each in reasons], dtype=pl.String),
            )
        is_found = listed.ravel() >= 0
        if not is_found.all():
            found = found.filter(pl.Series(is_found))
        is_asked_by_pandas = is_pandas(users, "Series", "Index") or is_pandas(exclude, "DataFrame")
        return to_pandas(found) if is_asked_by_pandas else found

    def best(
        self,
        model: FactorModel,
        rows: npt.NDArray[np.int64],
        count: int,
        score: Score,
        known: KnownItems,
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """Item rows and scores of the best items of some user rows; see `ItemIndex.best`.

        `model` has the items of this ranking, and may have other users. Scores by rating are
        predicted ratings, not clipped. Scores by interest are those above an average item's:
        interest has no unit and no zero.
        """
        order, users = self._order(score), score.users(model, rows)
        items, scores = order.index.best(
            users,
            count,
            starts=known.starts,
            columns=known.columns,
            threads=self.threads,
        )
        if score.by is By.RATING:
            offsets = score.offsets(model, rows)
        else:
            offsets = -(order.average[0] + users.astype(np.float64) @ order.average[1:])
        scores += offsets[:, None]
        return items, scores

    def _known(self, rows: Rows, exclude: Any, *, has_values: bool) -> KnownItems:
        """Items to leave out of the lists of some users."""
        if exclude is None:
            return KnownItems.none(len(rows))
        users, items = self.model.user_profiles.ids[rows], self.model.item_profiles.id_table
        if isinstance(exclude, pl.Series):
            return KnownItems.of_everyone(items.find(exclude, "exclude"), len(users))
        if hasattr(exclude, "pairs_of"):
            exclude = exclude.pairs_of(users)
        is_list = isinstance(exclude, list | tuple | set) and all(map(is_one_id, exclude))
        if is_list or is_one_id(exclude) or is_path(exclude):
            raise InvalidParameter(
                "exclude must be a table with a user and an item column, Ratings, or a polars "
                "series of item ids for all users, such as pl.Series([28, 3]), got "
                f"{validate.shown(exclude)}"
            )
        # The rating is read only where it matters: any column may look like one.
        seen = to_frame(exclude, (USER, ITEM, _OPTIONAL_RATING) if has_values else (USER, ITEM))
        values = seen[RATING.name] if RATING.name in seen.columns else None
        is_number = values is not None and (values.dtype.is_numeric() or values.dtype == pl.String)
        return KnownItems.of_pairs(
            IdTable(users).find(seen[USER.name], "exclude"),
            items.find(seen[ITEM.name], "exclude"),
            len(users),
            values if is_number else None,
        )


def _table(
    user_ids: pl.Series,
    item_ids: pl.Series,
    users: Rows,
    items: npt.NDArray[np.int32],
    scores: npt.NDArray[np.float32],
) -> pl.DataFrame:
    """Lists of some users as a table; any item in place of missing ones.

    For one user, most of the time outside the kernel is spent here. Indexing a series is quicker
    than its method `gather`, which starts a query, and repeating one id is quicker still.
    """
    count = items.shape[1]
    repeated = (
        user_ids.new_from_index(int(users[0]), count)
        if len(users) == 1
        else user_ids[np.repeat(users, count)]
    )
    ranks = np.tile(np.arange(1, count + 1, dtype=np.int32), len(users))
    return pl.DataFrame(
        [
            repeated.alias("user_id"),
            item_ids[np.maximum(items, 0).ravel()].alias("item_id"),
            pl.Series("score", scores.ravel()),
            pl.Series("rank", ranks),
        ]
    )


def warn_if_not_personalised(model: FactorModel, score: Score) -> None:
    """Warn the caller of a public method that every user gets the same ranking."""
    if not score.is_personalised(model):
        warnings.warn(NOT_PERSONALISED, NotPersonalised, stacklevel=3)
