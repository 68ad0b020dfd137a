"""Accuracy and ranking metrics on held-out ratings. Exact, so owner-only."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from taciturn._internal import parallel, validate
from taciturn._internal.ids import match_rows
from taciturn.data.ratings import Ratings, check_ratings
from taciturn.errors import InvalidParameter, UnknownIds
from taciturn.evaluate.matching import Matched, Model, match
from taciturn.model.top_k import ItemIndex

GROUPS = 5
"""Number of item groups by popularity, with about equally many training ratings each."""

RELEVANT = 0.75
"""Minimum relevant rating, as a fraction of the scale: 4 on a scale from 1 to 5."""

NDCG_AT, RECALL_AT = 10, 20


@dataclass(frozen=True, kw_only=True)
class HeldOutError:
    """Errors of predictions, clipped to the scale, on ratings. Exact: owner-only.

    Attributes
    ----------
    rmse, mae
        Root-mean-square error and mean absolute error.
    ratings
        Number of ratings.
    unknown_users, unknown_items
        Numbers of rated users and items that are not in the model. Their ratings are predicted
        from what is known: the mean, plus the bias of the item or user that is in the model.
    """

    rmse: float
    mae: float
    ratings: int
    unknown_users: int
    unknown_items: int


def held_out_error(model: Model, ratings: Ratings) -> HeldOutError:
    """Errors of a fit or a model on ratings, which are matched to it by id.

    A fit is evaluated with its private profiles, where it has any. Reads private data: owner-only,
    not covered by any guarantee.
    """
    matched = match(model, ratings)
    errors = matched.errors(ratings)
    return HeldOutError(
        rmse=_root_mean_square(errors),
        mae=float(np.mean(np.abs(errors))),
        ratings=len(ratings),
        unknown_users=matched.unknown_users,
        unknown_items=matched.unknown_items,
    )


def rmse(model: Model, ratings: Ratings) -> float:
    """Root-mean-square error of a fit or a model on ratings, which are matched to it by id.

    Users and items that are not in the model are predicted as in `held_out_error`, which also
    counts them; an `UnknownIds` warning says that there are some. Reads private data: owner-only,
    not covered by any guarantee.
    """
    found = held_out_error(model, ratings)
    if found.unknown_users or found.unknown_items:
        warnings.warn(
            "some users or items of the ratings are not in the model and are predicted from "
            "biases and the mean; held_out_error returns how many",
            UnknownIds,
            stacklevel=2,
        )
    return found.rmse


def coverage(model: Model, ratings: Ratings, shares: Sequence[float]) -> list[float]:
    """Empirical coverage of normal prediction intervals.

    `shares` are the nominal coverages. Intervals follow from the standard deviations of
    predictions, so all rated users and items must be in the model. Reads private data: owner-only.
    """
    hint = "such as [0.5, 0.9]"
    shares = [
        validate.probability("each of the shares", share, hint)
        for share in validate.several("shares", shares, hint)
    ]
    matched = match(model, ratings)
    if matched.unknown_users or matched.unknown_items:
        raise InvalidParameter(
            "predictions of users and items that are not in the model have no standard deviations; "
            "leave out their ratings"
        )
    rows = matched.users[ratings.rows()], matched.items[ratings.by_user.columns]
    errors = np.abs(matched.errors(ratings)) / matched.model.standard_deviation_rows(*rows)
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
        Means over users of NDCG@10 and recall@20 over all items of the model without a training
        rating by the user. Held-out ratings in the top quarter of the scale are relevant; users
        without relevant ratings are left out. None if no user is left, or no item.
    unknown_users, unknown_items
        Numbers of held-out users and items that are not in the model; see `HeldOutError`.
    """

    rmse: float
    mae: float
    rmse_by_popularity: tuple[float | None, ...]
    ndcg: float | None
    recall: float | None
    unknown_users: int
    unknown_items: int


def accuracy(model: Model, train: Ratings, test: Ratings, threads: int | None = None) -> Accuracy:
    """Accuracy of a fit or a model on held-out ratings. Reads private data: owner-only.

    Both sets of ratings are matched to the model by id. Items without training ratings are in the
    least popular group.
    """
    check_ratings(train, "train")
    matched = match(model, test)
    errors = matched.errors(test)
    groups = _popularity(train, test)[test.by_user.columns]
    by_group = [errors[groups == group] for group in range(GROUPS)]
    ndcg, recall = _ranking(matched, train, test, threads)
    return Accuracy(
        rmse=_root_mean_square(errors),
        mae=float(np.mean(np.abs(errors))),
        rmse_by_popularity=tuple(
            _root_mean_square(each) if each.size else None for each in by_group
        ),
        ndcg=ndcg,
        recall=recall,
        unknown_users=matched.unknown_users,
        unknown_items=matched.unknown_items,
    )


def _root_mean_square(errors: npt.NDArray[np.float64]) -> float:
    return math.sqrt(float(np.mean(errors**2)))


def _popularity(train: Ratings, test: Ratings) -> npt.NDArray[np.int64]:
    """Popularity group of each item of the test ratings; 0 is the least popular."""
    counts = np.diff(train.by_item.starts)
    order = np.argsort(counts, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    groups = np.zeros(counts.size + 1, dtype=np.int64)
    groups[order] = np.minimum(GROUPS - 1, before * GROUPS // max(1, int(counts.sum())))
    # An unknown item has row −1: the last entry, which is 0.
    return groups[match_rows(test.item_ids, train.item_ids)]


def _ranking(
    matched: Matched, train: Ratings, test: Ratings, threads: int | None
) -> tuple[float | None, float | None]:
    """NDCG and recall. Users are test users, items are rows of the model."""
    model = matched.model
    relevant = test.values() >= test.scale.low + RELEVANT * test.scale.range
    if matched.item_count == 0 or not relevant.any():
        return None, None
    wanted = test.select(relevant)
    relevant_counts = np.diff(wanted.by_user.starts)
    users = np.flatnonzero(relevant_counts)
    profiles = model.item_profiles.take(np.arange(matched.item_count))
    starts, columns = _training_items(matched, train, test, users)
    best, _ = ItemIndex(profiles.factors, profiles.biases).best(
        model.user_profiles.factors[matched.users[users]],
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
    recall = found.sum(axis=1) / np.minimum(counts, RECALL_AT)
    gains = 1 / np.log2(np.arange(2, NDCG_AT + 2))
    ideal = np.cumsum(gains)[np.minimum(counts, NDCG_AT) - 1]
    shown = found[:, :NDCG_AT]
    ndcg = (shown * gains[: shown.shape[1]]).sum(axis=1) / ideal
    return float(ndcg.mean()), float(recall.mean())


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
