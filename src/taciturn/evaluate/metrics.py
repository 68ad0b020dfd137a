"""Accuracy and ranking metrics on held-out ratings. Exact, so owner-only."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from taciturn._internal import parallel
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.model.top_k import ItemIndex
from taciturn.solvers.contract import Fit

_PIECE = 2**18

GROUPS = 5
"""Number of item groups by popularity, with about equally many training ratings each."""

RELEVANT = 0.75
"""Minimum relevant rating, as a fraction of the scale: 4 on a scale from 1 to 5."""

NDCG_AT, RECALL_AT = 10, 20


def rmse(fit: Fit, ratings: Ratings) -> float:
    """Root-mean-square error of a fit on ratings with the same users and items.

    Reads private data: owner-only, not covered by any guarantee.
    """
    return math.sqrt(float(np.mean(_errors(fit, ratings) ** 2)))


def coverage(fit: Fit, ratings: Ratings, shares: Sequence[float]) -> list[float]:
    """Empirical coverage of normal prediction intervals.

    `shares` are the nominal coverages. Intervals follow from the standard deviations of the fit's
    predictions. Reads private data: owner-only.
    """
    users, items = ratings.rows(), ratings.by_user.columns
    errors = np.abs(_errors(fit, ratings)) / fit.model.standard_deviation_rows(users, items)
    return [float(np.mean(errors < NormalDist().inv_cdf((1 + share) / 2))) for share in shares]


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """Accuracy of predictions and rankings on held-out ratings. Exact: owner-only.

    Attributes
    ----------
    rmse, mae
        Errors of predictions clipped to the scale.
    rmse_by_popularity
        RMSE by groups of items, least popular first, with about equally many training ratings each.
        None for a group without held-out ratings.
    ndcg, recall
        Means over users of NDCG@10 and recall@20 over all items without a training rating by the
        user. Held-out ratings in the top quarter of the scale are relevant; users without relevant
        ratings are left out. None if no user is left.
    """

    rmse: float
    mae: float
    rmse_by_popularity: tuple[float | None, ...]
    ndcg: float | None
    recall: float | None


def accuracy(fit: Fit, train: Ratings, test: Ratings, threads: int | None = None) -> Accuracy:
    """Accuracy of a fit on held-out ratings. Reads private data: owner-only."""
    errors = _errors(fit, test)
    groups = _popularity(train)[test.by_user.columns]
    by_group = [errors[groups == group] for group in range(GROUPS)]
    ndcg, recall = _ranking(fit, train, test, threads)
    return Accuracy(
        rmse=math.sqrt(float(np.mean(errors**2))),
        mae=float(np.mean(np.abs(errors))),
        rmse_by_popularity=tuple(
            math.sqrt(float(np.mean(each**2))) if each.size else None for each in by_group
        ),
        ndcg=ndcg,
        recall=recall,
    )


def _errors(fit: Fit, ratings: Ratings) -> npt.NDArray[np.float64]:
    """Prediction errors v̂ − v, in the order of `by_user`."""
    model = fit.owner_model
    if len(ratings) == 0 or ratings.shape[0] != len(model.user_profiles):
        raise InvalidParameter(
            "test ratings must have the same users and items as the fit, and must not be empty"
        )
    users, items, values = ratings.rows(), ratings.by_user.columns, ratings.values()
    errors = np.empty(len(ratings))
    for begin in range(0, len(ratings), _PIECE):
        part = slice(begin, begin + _PIECE)
        errors[part] = model.predict_rows(users[part], items[part]) - values[part]
    return errors


def _popularity(train: Ratings) -> npt.NDArray[np.int64]:
    """Popularity group of each item; 0 is the least popular."""
    counts = np.diff(train.by_item.starts)
    order = np.argsort(counts, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    groups = np.empty(counts.size, dtype=np.int64)
    groups[order] = np.minimum(GROUPS - 1, before * GROUPS // max(1, int(counts.sum())))
    return groups


def _ranking(
    fit: Fit, train: Ratings, test: Ratings, threads: int | None
) -> tuple[float | None, float | None]:
    model = fit.owner_model
    profiles = model.item_profiles
    relevant = test.values() >= test.scale.low + RELEVANT * test.scale.range
    wanted = test.select(relevant) if relevant.any() else None
    if wanted is None:
        return None, None
    relevant_counts = np.diff(wanted.by_user.starts)
    users = np.flatnonzero(relevant_counts)
    starts, columns = _rows_of(train, users)
    best, _ = ItemIndex(profiles.factors, profiles.biases).best(
        model.user_profiles.factors[users],
        RECALL_AT,
        starts=starts,
        columns=columns,
        threads=parallel.thread_count(threads),
    )
    # Encode each (user, item) pair as one number; the relevant pairs are already sorted.
    items = train.shape[1]
    keys = wanted.rows().astype(np.int64) * items + wanted.by_user.columns
    asked = users[:, None].astype(np.int64) * items + best
    place = np.minimum(np.searchsorted(keys, asked), keys.size - 1)
    found = (keys[place] == asked) & (best >= 0)
    counts = relevant_counts[users]
    recall = found.sum(axis=1) / np.minimum(counts, RECALL_AT)
    gains = 1 / np.log2(np.arange(2, NDCG_AT + 2))
    ideal = np.cumsum(gains)[np.minimum(counts, NDCG_AT) - 1]
    shown = found[:, :NDCG_AT]
    ndcg = (shown * gains[: shown.shape[1]]).sum(axis=1) / ideal
    return float(ndcg.mean()), float(recall.mean())


def _rows_of(
    ratings: Ratings, users: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Items of the given users in compressed rows."""
    keep = np.zeros(ratings.shape[0], dtype=np.bool_)
    keep[users] = True
    counts = np.diff(ratings.by_user.starts)
    starts = np.concatenate([[0], np.cumsum(counts[users])]).astype(np.int64)
    return starts, ratings.by_user.columns[np.repeat(keep, counts)]
