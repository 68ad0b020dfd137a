"""Accuracy and ranking metrics on held-out ratings. Exact, so owner-only."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from taciturn._internal import validate
from taciturn.data.ratings import Ratings, check_ratings
from taciturn.errors import InvalidParameter, UnknownIds
from taciturn.evaluate.bands import (
    BANDS,
    BandMetric,
    item_bands,
    mean_in_bands,
    rmse_in_bands,
    share_in_bands,
    user_bands,
)
from taciturn.evaluate.matching import Model, match
from taciturn.evaluate.ranking import rank
from taciturn.model.stars import interval_credits


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
    """Empirical coverage of prediction intervals.

    `shares` are the nominal coverages. An interval is the middle part of the predicted distribution
    of a rating, of this probability. On a scale with a step, a rating stands for all numbers that
    are closer to it than to other values, and counts in part if the interval contains a part of
    them. All rated users and items must be in the model. Reads private data: owner-only.
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
    model = matched.model
    scores = model.predict_rows(*rows) if model.scale.step is None else model.score_rows(*rows)
    inside = interval_credits(
        model.scale,
        scores.astype(np.float64),
        model.standard_deviation_rows(*rows).astype(np.float64),
        ratings.values().astype(np.float64),
        shares,
    )
    return [float(each.mean()) for each in inside]


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """Accuracy of predictions and rankings on held-out ratings. Exact: owner-only.

    Attributes
    ----------
    rmse, mae
        Errors of predictions clipped to the scale. None for a solver that only ranks, as are these
        errors by band.
    ndcg, recall
        Means over users of NDCG@10 and recall@20 over all items of the model without a training
        rating by the user. Held-out ratings in the top quarter of the scale are relevant; users
        without relevant ratings are left out. None if no user is left, or no item.
    item_coverage
        Fraction of the items of the model that are among the first 10 of at least one of these
        users.
    novelty
        Mean over the first 10 items of these lists of −log₂ of the fraction of training users who
        rated the item, in bits. An item without training ratings counts as rated by one user.
    rmse_by_activity, ndcg_by_activity, recall_by_activity
        The same metrics by band of users: from the fewest training ratings to the most, with about
        equally many training ratings in each band. None for a band without held-out ratings, or
        without relevant ones.
    rmse_by_popularity
        RMSE by band of items: from the least to the most popular, with about equally many training
        ratings in each band.
    recall_by_popularity
        Fraction of the relevant held-out ratings of each band of items whose item is among the
        first 20 of the user's list.
    unknown_users, unknown_items
        Numbers of held-out users and items that are not in the model; see `HeldOutError`.
    """

    rmse: float | None
    mae: float | None
    ndcg: float | None
    recall: float | None
    item_coverage: float | None
    novelty: float | None
    rmse_by_activity: BandMetric
    ndcg_by_activity: BandMetric
    recall_by_activity: BandMetric
    rmse_by_popularity: BandMetric
    recall_by_popularity: BandMetric
    unknown_users: int
    unknown_items: int


def accuracy(
    model: Model,
    train: Ratings,
    test: Ratings,
    threads: int | None = None,
    *,
    predicts_ratings: bool = True,
) -> Accuracy:
    """Accuracy of a fit or a model on held-out ratings. Reads private data: owner-only.

    Both sets of ratings are matched to the model by id. Users and items without training ratings
    are in the first band. Errors of predictions are left out unless the solver `predicts_ratings`.
    """
    check_ratings(train, "train")
    validate.instance("predicts_ratings", predicts_ratings, bool, "True or False")
    matched = match(model, test)
    by_activity, by_popularity = user_bands(train, test), item_bands(train, test)
    ranking = rank(matched, train, test, threads)
    ranked_bands = by_activity[ranking.users]
    errors: dict[str, Any] = dict.fromkeys(("rmse", "mae"))
    errors |= dict.fromkeys(("rmse_by_activity", "rmse_by_popularity"), (None,) * BANDS)
    if predicts_ratings:
        found = matched.errors(test)
        errors = {
            "rmse": _root_mean_square(found),
            "mae": float(np.mean(np.abs(found))),
            "rmse_by_activity": rmse_in_bands(found, by_activity[test.rows()]),
            "rmse_by_popularity": rmse_in_bands(found, by_popularity[test.by_user.columns]),
        }
    return Accuracy(
        ndcg=_mean(ranking.ndcg),
        recall=_mean(ranking.recall),
        item_coverage=ranking.item_coverage,
        novelty=ranking.novelty,
        ndcg_by_activity=mean_in_bands(ranking.ndcg, ranked_bands),
        recall_by_activity=mean_in_bands(ranking.recall, ranked_bands),
        recall_by_popularity=share_in_bands(
            by_popularity[ranking.hits], by_popularity[ranking.relevant]
        ),
        unknown_users=matched.unknown_users,
        unknown_items=matched.unknown_items,
        **errors,
    )


def _root_mean_square(errors: npt.NDArray[np.float64]) -> float:
    return math.sqrt(float(np.mean(errors**2)))


def _mean(values: npt.NDArray[np.float64]) -> float | None:
    return float(values.mean()) if values.size else None
