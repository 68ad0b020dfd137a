"""Neighbouring datasets under unit `value`: one rating of an item is replaced. Private."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn.data.ratings import Csr, Ratings
from taciturn.errors import InvalidParameter


@dataclass(frozen=True, eq=False, kw_only=True)
class Neighbour:
    """Neighbouring dataset that differs by one rating of an item.

    Attributes
    ----------
    item, raters
        Indices of the item and of the users who rated it.
    before, after
        The rating in the original and in the neighbouring dataset.
    ratings
        The ratings of the neighbouring dataset.
    parts
        The ratings of this item in both datasets, with its raters as users 0, 1, …. All
        differences between the datasets follow from them.
    """

    item: int
    raters: npt.NDArray[np.int32]
    before: float
    after: float
    ratings: Ratings
    parts: tuple[Ratings, Ratings]


def neighbour(ratings: Ratings, item: int) -> Neighbour:
    """Neighbouring dataset in which one of an item's highest ratings becomes the lowest value.

    The rating is the one by `telling_rater`. If it is the lowest value already, it becomes the
    highest.
    """
    side, scale = ratings.by_item, ratings.scale
    place = ratings.place(telling_rater(ratings, item), item)
    before = float(ratings.values()[place])
    after = scale.low if before > scale.low else scale.high
    other = ratings.replaced(np.array([place]), np.array([after]))
    entries = slice(side.starts[item], side.starts[item + 1])
    return Neighbour(
        item=item,
        raters=side.columns[entries],
        before=before,
        after=after,
        ratings=other,
        parts=(
            _alone(ratings, side.codes[entries]),
            _alone(ratings, other.by_item.codes[entries]),
        ),
    )


def telling_rater(ratings: Ratings, item: int) -> int:
    """Among the users who rated an item highest, the one with most ratings.

    Their profile is determined by ratings more than by noise, so a change shows most in it.
    """
    side = ratings.by_item
    entries = slice(side.starts[item], side.starts[item + 1])
    raters, codes = side.columns[entries], side.codes[entries]
    if not raters.size:
        raise InvalidParameter("no user rated this item; choose another")
    activity = np.diff(ratings.by_user.starts)[raters]
    return int(raters[np.lexsort((activity, codes))[-1]])


def popular_items(ratings: Ratings) -> list[int]:
    """The most-rated item, and the items at the upper quartile and the median of popularity."""
    counts = np.diff(ratings.by_item.starts)
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    places = dict.fromkeys((0, order.size // 4, order.size // 2))
    return [int(order[place]) for place in places]


def id_index(ids: pl.Series, what: str, wanted: str) -> int:
    """Index of the user or item with the given id, compared as text."""
    found = np.flatnonzero((ids.cast(pl.String) == wanted).to_numpy())
    if found.size != 1:
        raise InvalidParameter(f"there is no {what} {wanted!r} in the ratings")
    return int(found[0])


def _alone(ratings: Ratings, codes: npt.NDArray[np.generic]) -> Ratings:
    count = codes.size
    return Ratings(
        user_ids=pl.Series(np.arange(count)),
        item_ids=pl.Series([0]),
        scale=ratings.scale,
        by_user=Csr(np.arange(count + 1), np.zeros(count, dtype=np.int32), codes),
    )
