"""Lists of users and items that are public, whoever rated what.

Under a unit that hides whether a rating exists, which users and items there are must not follow
from the ratings: lists come from elsewhere, or those of the ratings are declared public.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from tacit.data.ratings import Csr, Ratings
from tacit.errors import InvalidDocument

Ids = Sequence[int] | Sequence[str] | pl.Series


def with_universe(
    ratings: Ratings, *, users: Ids | None = None, items: Ids | None = None
) -> Ratings:
    """Return the same ratings among all of some users and items, rated or not.

    Raises, naming none, if an id of the ratings is missing from a list: which ones is private.
    """
    user_ids, rows = _placed(ratings.user_ids, users, "user")
    item_ids, columns = _placed(ratings.item_ids, items, "item")
    side = ratings.by_user
    counts = np.zeros(len(user_ids), dtype=np.int64)
    counts[rows] = np.diff(side.starts)
    by_user = Csr(np.concatenate([[0], np.cumsum(counts)]), columns[side.columns], side.codes)
    return Ratings(
        user_ids=user_ids,
        item_ids=item_ids,
        scale=ratings.scale,
        by_user=by_user,
        timestamps=ratings.timestamps,
    )


def _placed(
    own: pl.Series, given: Ids | None, role: str
) -> tuple[pl.Series, npt.NDArray[np.int32]]:
    """Return all ids, rising, and where the ratings' own are among them."""
    if given is None:
        return own, np.arange(len(own), dtype=np.int32)
    try:
        ids = pl.Series(given)
        listed = ids.cast(own.dtype) if ids.dtype != own.dtype else ids
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        raise InvalidDocument(
            f"the {role} ids listed must be of the same kind as those of the ratings"
        ) from None
    if listed.has_nulls() or listed.n_unique() != len(listed):
        raise InvalidDocument(f"the {role} ids listed must be there, and each only once")
    listed = listed.sort()
    places = listed.search_sorted(own).to_numpy().astype(np.int64)
    inside = np.minimum(places, max(0, len(listed) - 1))
    if len(listed) == 0 or not (listed.gather(inside) == own).all():
        raise InvalidDocument(
            f"the ratings have {role}s that are not listed; list all {role}s there are"
        )
    return listed, places.astype(np.int32)
