"""Ranked lists of items, checked against held-out ratings. Exact, so owner-only."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from taciturn._internal import parallel
from taciturn._internal.ids import match_rows
from taciturn.data.ratings import Ratings
from taciturn.evaluate.matching import Matched
from taciturn.model.score import Score
from taciturn.model.top_k import ItemIndex

RELEVANT = 0.75
"""Minimum relevant rating, as a fraction of the scale: 4 on a scale from 1 to 5."""

NDCG_AT, RECALL_AT = 10, 20
"""Lengths of lists. NDCG discounts the item at rank r by log₂(r + 1). Recall is divided by the
number of relevant items, or by 20 if there are more."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranking:
    """Lists of the test users with relevant held-out ratings: their quality, and their items.

    All rows are those of the test ratings. Everything is empty if there is nothing to rank.

    Attributes
    ----------
    users
        Row of each user with relevant ratings.
    ndcg, recall
        NDCG@10 and recall@20 of these users.
    relevant
        Row of the item of each relevant rating.
    hits
        Row of the item of each relevant rating whose item is among the first 20 of its user.
    item_coverage
        Fraction of the items of the model that are among the first 10 of one of these users; None
        without lists.
    novelty
        Mean over the first 10 items of all lists of −log₂ of the fraction of training users who
        rated the item. An item without training ratings counts as rated by one. None without lists.
    """

    users: npt.NDArray[np.int64]
    ndcg: npt.NDArray[np.float64]
    recall: npt.NDArray[np.float64]
    relevant: npt.NDArray[np.int64]
    hits: npt.NDArray[np.int64]
    item_coverage: float | None = None
    novelty: float | None = None

    @classmethod
    def empty(cls) -> "Ranking":
        """Ranking of no user."""
        rows, values = np.empty(0, dtype=np.int64), np.empty(0)
        return cls(users=rows, ndcg=values, recall=values, relevant=rows, hits=rows)


def rank(matched: Matched, train: Ratings, test: Ratings, threads: int | None) -> Ranking:
    """Ranking of all items of the model without a training rating by the user.

    Empty if the model has no items, or if no test rating is relevant.
    """
    model = matched.model
    relevant = test.values() >= test.scale.low + RELEVANT * test.scale.range
    if matched.item_count == 0 or not relevant.any():
        return Ranking.empty()
    wanted = test.select(relevant)
    relevant_counts = np.diff(wanted.by_user.starts)
    users = np.flatnonzero(relevant_counts)
    profiles = model.item_profiles.take(np.arange(matched.item_count))
    starts, columns = _training_items(matched, train, test, users)
    score = Score.of(model)
    best, _ = ItemIndex.of(score, model, profiles).best(
        score.users(model, matched.users[users]),
        RECALL_AT,
        starts=starts,
        columns=columns,
        threads=parallel.thread_count(threads),
    )
    # Encode each (user, item) pair as one number. Unknown items have the row after the last one.
    items = 1 + matched.item_count
    keys = wanted.rows().astype(np.int64) * items + matched.items[wanted.by_user.columns]
    keys.sort(kind="stable")
    asked = users[:, None].astype(np.int64) * items + best
    place = np.minimum(np.searchsorted(keys, asked), keys.size - 1)
    found = (keys[place] == asked) & (best >= 0)
    counts = relevant_counts[users]
    gains = 1 / np.log2(np.arange(2, NDCG_AT + 2))
    ideal = np.cumsum(gains)[np.minimum(counts, NDCG_AT) - 1]
    shown = found[:, :NDCG_AT]
    listed = best[:, :NDCG_AT]
    listed = listed[listed >= 0]
    return Ranking(
        users=users,
        ndcg=(shown * gains[: shown.shape[1]]).sum(axis=1) / ideal,
        recall=found.sum(axis=1) / np.minimum(counts, RECALL_AT),
        relevant=wanted.by_user.columns.astype(np.int64),
        hits=_test_rows(matched)[best[found]],
        item_coverage=np.unique(listed).size / matched.item_count,
        novelty=float(_novelty(matched, train)[listed].mean()) if listed.size else None,
    )


def _novelty(matched: Matched, train: Ratings) -> npt.NDArray[np.float64]:
    """−log₂ of the fraction of training users who rated each item of the model, at least one."""
    rows = match_rows(matched.item_ids, train.item_ids)
    counts = np.append(np.diff(train.by_item.starts), 0)[rows]
    users = np.count_nonzero(np.diff(train.by_user.starts))
    found: npt.NDArray[np.float64] = np.log2(max(1, users) / np.maximum(counts, 1))
    return found


def _test_rows(matched: Matched) -> npt.NDArray[np.int64]:
    """Row in the test ratings of each item of the model, −1 for an item without one."""
    rows = np.full(1 + matched.item_count, -1, dtype=np.int64)
    rows[matched.items] = np.arange(matched.items.size)
    return rows


def _training_items(
    matched: Matched, train: Ratings, test: Ratings, users: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Rows of the items that some test users rated in training, as starts and columns."""
    # Place in `users` of each training user, and row in the model of each training item.
    places = match_rows(train.user_ids, test.user_ids.gather(users))
    items = match_rows(train.item_ids, matched.item_ids)
    counts, is_known = np.diff(train.by_user.starts), places >= 0
    places, sizes = places[is_known], counts[is_known]
    columns = train.by_user.columns[np.repeat(is_known, counts)]
    if np.array_equal(items, np.arange(len(items))) and (np.diff(places) > 0).all():
        by_place = np.zeros(len(users), dtype=np.int64)
        by_place[places] = sizes
        return np.concatenate([[0], np.cumsum(by_place)]), columns
    rated = items[columns]
    pairs = (np.repeat(places, sizes) * matched.item_count + rated)[rated >= 0]
    pairs.sort()
    rows, rated = np.divmod(pairs, matched.item_count)
    return np.searchsorted(rows, np.arange(len(users) + 1)), rated.astype(np.int32)
