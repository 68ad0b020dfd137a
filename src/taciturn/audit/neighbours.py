"""Neighbouring worlds under unit `value`: one rating of an item replaced. Holds private data."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn.data.ratings import Csr, Ratings
from taciturn.errors import InvalidParameter


@dataclass(frozen=True, eq=False, kw_only=True)
class Neighbour:
    """A world that differs by one rating, and what tells the two apart.

    Attributes
    ----------
    item, raters
        The item, and the users who rated it, by their indices.
    before, after
        The rating in the two worlds.
    ratings
        The ratings of the other world.
    parts
        The ratings of the item alone in both worlds, with its raters as users 0, 1, …: whatever
        differs between the worlds is computed from them.
    """

    item: int
    raters: npt.NDArray[np.int32]
    before: float
    after: float
    ratings: Ratings
    parts: tuple[Ratings, Ratings]


def neighbour(ratings: Ratings, item: int) -> Neighbour:
    """Return the world in which one of an item's highest ratings is the lowest of the scale.

    It is that of `telling_rater`. If all ratings are the lowest already, one becomes the highest.
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
    """Return the user who rated most of those who rated an item highest.

    The more a profile is determined by ratings and not by noise, the more of a change it passes on.
    """
    side = ratings.by_item
    entries = slice(side.starts[item], side.starts[item + 1])
    raters, codes = side.columns[entries], side.codes[entries]
    if not raters.size:
        raise InvalidParameter("nobody rated the item; choose another")
    activity = np.diff(ratings.by_user.starts)[raters]
    return int(raters[np.lexsort((activity, codes))[-1]])


def popular_items(ratings: Ratings) -> list[int]:
    """Return the most-rated item and those at the third and second quartile of popularity."""
    counts = np.diff(ratings.by_item.starts)
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    places = dict.fromkeys((0, order.size // 4, order.size // 2))
    return [int(order[place]) for place in places]


def id_index(ids: pl.Series, what: str, wanted: str) -> int:
    """Return the index of a user or an item by its id as text."""
    found = np.flatnonzero((ids.cast(pl.String) == wanted).to_numpy())
    if found.size != 1:
        raise InvalidParameter(f"there is no {what} {wanted!r} in the data")
    return int(found[0])


def _alone(ratings: Ratings, codes: npt.NDArray[np.generic]) -> Ratings:
    count = codes.size
    return Ratings(
        user_ids=pl.Series(np.arange(count)),
        item_ids=pl.Series([0]),
        scale=ratings.scale,
        by_user=Csr(np.arange(count + 1), np.zeros(count, dtype=np.int32), codes),
    )
