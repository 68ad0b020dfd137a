"""Neighbouring worlds under unit `value`: one rating of an item replaced. Holds private data."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from tacit.data.ratings import Csr, Ratings
from tacit.errors import InvalidParameter


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

    Of those it is that of the user who rated most: the more a profile is determined by ratings and
    not by noise, the more of a change it passes on. If all ratings are the lowest already, one
    becomes the highest.
    """
    side, scale = ratings.by_item, ratings.scale
    entries = slice(side.starts[item], side.starts[item + 1])
    raters, codes = side.columns[entries], side.codes[entries]
    if not raters.size:
        raise InvalidParameter("nobody rated the item; choose another")
    values = scale.decode(codes)
    activity = np.diff(ratings.by_user.starts)[raters]
    place = int(np.lexsort((activity, values))[-1])
    after = scale.low if values[place] > scale.low else scale.high
    changed = codes.copy()
    changed[place] = scale.encode(np.array([after]))[0][0]
    return Neighbour(
        item=item,
        raters=raters,
        before=float(values[place]),
        after=after,
        ratings=_with_code(ratings, int(raters[place]), item, changed[place]),
        parts=(_alone(ratings, codes), _alone(ratings, changed)),
    )


def popular_items(ratings: Ratings) -> list[int]:
    """Return the most-rated item and those at the third and second quartile of popularity."""
    counts = np.diff(ratings.by_item.starts)
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    places = dict.fromkeys((0, order.size // 4, order.size // 2))
    return [int(order[place]) for place in places]


def item_index(ratings: Ratings, item_id: str) -> int:
    """Return the index of an item by its id as text."""
    found = np.flatnonzero((ratings.item_ids.cast(pl.String) == item_id).to_numpy())
    if found.size != 1:
        raise InvalidParameter(f"there is no item {item_id!r} in the data")
    return int(found[0])


def _alone(ratings: Ratings, codes: npt.NDArray[np.generic]) -> Ratings:
    count = codes.size
    return Ratings(
        user_ids=pl.Series(np.arange(count)),
        item_ids=pl.Series([0]),
        scale=ratings.scale,
        by_user=Csr(np.arange(count + 1), np.zeros(count, dtype=np.int32), codes),
    )


def _with_code(ratings: Ratings, user: int, item: int, code: np.generic) -> Ratings:
    side = ratings.by_user
    begin, end = side.starts[user], side.starts[user + 1]
    codes = side.codes.copy()
    codes[begin + np.searchsorted(side.columns[begin:end], item)] = code
    return Ratings(
        user_ids=ratings.user_ids,
        item_ids=ratings.item_ids,
        scale=ratings.scale,
        by_user=Csr(side.starts, side.columns, codes),
        timestamps=ratings.timestamps,
    )
