"""Lists of users and items that are public, whoever rated what.

Under a unit that hides whether a rating exists, which users and items there are must not follow
from the ratings: lists come from elsewhere, or those of the ratings are declared public.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn.data.ratings import Ratings, filed
from taciturn.errors import InvalidDocument
from taciturn.tables.names import ITEM, USER
from taciturn.tables.whole import id_column, read_table

Ids = Sequence[int] | Sequence[str] | pl.Series
Places = npt.NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class IdLists:
    """Files with public lists of all users and of all items; None leaves those that are rated."""

    users: Path | None = None
    items: Path | None = None

    def among(self, ratings: Ratings) -> Ratings:
        """Ratings among the users and items listed, rated or not.

        User ids from a text file are text, so those of a text list are too. A list of items decides
        whether their ids are numbers.
        """
        if self.users is None and self.items is None:
            return ratings
        users, items = None, None
        if self.users is not None:
            users = id_column(read_table(self.users, is_typed=False), USER, str(self.users))
        if self.items is not None:
            items = id_column(read_table(self.items), ITEM, str(self.items))
        return with_universe(ratings, users=users, items=items)


def with_universe(
    ratings: Ratings, *, users: Ids | None = None, items: Ids | None = None
) -> Ratings:
    """Return the same ratings among all of some users and items, rated or not.

    Ids, their type and their order are those of the lists. Raises, naming none, if an id of the
    ratings is missing from a list: which ones is private.
    """
    user_ids, user_places = _placed(ratings.user_ids, users, "user")
    item_ids, item_places = _placed(ratings.item_ids, items, "item")
    rows, columns = user_places[ratings.rows()], item_places[ratings.by_user.columns]
    codes, times = ratings.by_user.codes, ratings.timestamps
    if not (_rises(user_places) and _rises(item_places)):
        order = np.lexsort((columns, rows))
        rows, columns, codes = rows[order], columns[order], codes[order]
        times = None if times is None else times[order]
    return Ratings(
        user_ids=user_ids,
        item_ids=item_ids,
        scale=ratings.scale,
        by_user=filed(rows, columns, codes, len(user_ids)),
        timestamps=times,
        preparation=ratings.preparation,
    )


def _rises(places: Places) -> bool:
    return bool((np.diff(places) > 0).all())


def _placed(own: pl.Series, given: Ids | None, role: str) -> tuple[pl.Series, Places]:
    """Return all ids, rising, and where the ratings' own are among them."""
    if given is None:
        return own, np.arange(len(own), dtype=np.int32)
    try:
        listed = pl.Series(given)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        raise InvalidDocument(f"the {role} ids listed must be whole numbers or text") from None
    if not (listed.dtype.is_integer() or listed.dtype == pl.String) or len(listed) == 0:
        raise InvalidDocument(f"the {role} ids listed must be whole numbers or text, some at least")
    if listed.has_nulls() or listed.n_unique() != len(listed):
        raise InvalidDocument(f"the {role} ids listed must be there, and each only once")
    listed = listed.cast(pl.Int64 if listed.dtype.is_integer() else pl.String).sort()
    # An id that has no form like those listed is not among them; 007 is no way to write 7.
    wanted = own.cast(listed.dtype, strict=False)
    if own.dtype == pl.String:
        wanted = wanted.set(wanted.cast(pl.String).ne_missing(own), None)
    table = pl.DataFrame({"id": listed, "place": np.arange(len(listed), dtype=np.int32)})
    found = wanted.alias("id").to_frame().join(table, on="id", how="left", maintain_order="left")
    places = found["place"]
    if places.has_nulls() or places.n_unique() != len(places):
        raise InvalidDocument(
            f"the ratings have {role}s that are not listed; list all {role}s there are, with ids "
            "of the same kind, numbers or text"
        )
    return listed, places.to_numpy().astype(np.int32)
