"""Public id lists: all users and all items, independent of the ratings; and item features.

Under a unit that protects the existence of ratings, the set of users and items must not depend on
the ratings. The lists come from another source, or the ids in the ratings are declared public.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal import validate
from taciturn._internal.forks import check_fork
from taciturn._internal.ids import Ids, id_series
from taciturn.data.item_features import ItemFeatures
from taciturn.data.ratings import Preparation, Ratings, check_ratings, compress_sorted
from taciturn.errors import InvalidDocument
from taciturn.tables.names import ITEM, USER
from taciturn.tables.whole import id_column, read_table

Places = npt.NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class IdLists:
    """Files with public id lists of users and items. None keeps the ids in the ratings."""

    users: Path | None = None
    items: Path | None = None

    def extend(self, ratings: Ratings) -> Ratings:
        """The ratings, extended to all listed users and items, including those without ratings.

        User ids in a text file are text, in ratings and in lists alike. The type of the item ids
        in a list applies to the ratings too.
        """
        if self.users is None and self.items is None:
            return ratings
        users, items = None, None
        if self.users is not None:
            users = id_column(read_table(self.users, is_typed=False), USER, str(self.users))
        if self.items is not None:
            items = id_column(read_table(self.items), ITEM, str(self.items))
        return with_id_lists(ratings, users=users, items=items)


def with_id_lists(
    ratings: Ratings, *, users: Ids | None = None, items: Ids | None = None
) -> Ratings:
    """The ratings, extended to all listed users and items, including those without ratings.

    Ids have the type of the lists and are sorted. Raises if an id of the ratings is missing from a
    list; the message does not name the id, which is private. Items of the ratings' features are
    listed too.
    """
    check_fork()
    check_ratings(ratings)
    features = ratings.item_features
    if items is not None and features is not None:
        items = _joined(_checked_list(items, "item"), features)
    return _extended(
        ratings,
        _placed(ratings.user_ids, users, "user"),
        _placed(ratings.item_ids, items, "item"),
        preparation=replace(
            ratings.preparation,
            has_user_list=ratings.preparation.has_user_list or users is not None,
            has_item_list=ratings.preparation.has_item_list or items is not None,
        ),
        features=features,
    )


def with_item_features(ratings: Ratings, features: ItemFeatures) -> Ratings:
    """The ratings with public item features, extended to the items of the features.

    The features are public, so adding their items reveals nothing. Items of the ratings that have
    no features stay, so the list of items still depends on the ratings unless an id list is given.
    Ids of the features are converted to the type of the item ids in the ratings. Features that the
    ratings had before are replaced.
    """
    check_fork()
    check_ratings(ratings)
    hint = "build one with taciturn.load_item_features"
    validate.instance("features", features, ItemFeatures, hint)
    own = ratings.item_ids
    if len(own) and not own.is_in(_converted(features, own).implode()).any():
        raise InvalidDocument(f"no item of the ratings is in {features.source}; check its item ids")
    users = _placed(ratings.user_ids, None, "user")
    items = _placed(own, _joined(own, features), "item")
    return _extended(ratings, users, items, preparation=ratings.preparation, features=features)


def _joined(ids: pl.Series, features: ItemFeatures) -> pl.Series:
    """Ids and those of the features, each once."""
    return pl.concat([ids, _converted(features, ids)]).unique()


def _converted(features: ItemFeatures, ids: pl.Series) -> pl.Series:
    """Ids of the features in the type of `ids`; raises if one cannot be converted."""
    found = features.ids.cast(ids.dtype, strict=False)
    if found.cast(features.ids.dtype, strict=False).ne_missing(features.ids).any():
        raise InvalidDocument(
            f"the item ids in {features.source} must be whole numbers, as in the ratings"
        )
    return found.alias(ids.name)


def _extended(
    ratings: Ratings,
    users: tuple[pl.Series, Places],
    items: tuple[pl.Series, Places],
    *,
    preparation: Preparation,
    features: ItemFeatures | None,
) -> Ratings:
    """The ratings with longer lists of users and items, given the positions of their own ids."""
    (user_ids, user_places), (item_ids, item_places) = users, items
    rows, columns = user_places[ratings.rows()], item_places[ratings.by_user.columns]
    codes, times = ratings.by_user.codes, ratings.timestamps
    if not (_is_ascending(user_places) and _is_ascending(item_places)):
        order = np.lexsort((columns, rows))
        rows, columns, codes = rows[order], columns[order], codes[order]
        times = None if times is None else times[order]
    return Ratings(
        user_ids=user_ids,
        item_ids=item_ids,
        scale=ratings.scale,
        by_user=compress_sorted(rows, columns, codes, len(user_ids)),
        timestamps=times,
        preparation=preparation,
        item_features=features,
        public_ratings=ratings.public_ratings,
    )


def _is_ascending(places: Places) -> bool:
    return bool((np.diff(places) > 0).all())


def _checked_list(given: Ids, role: str) -> pl.Series:
    """A list of ids as 64-bit integers or text; raises if one is missing or repeated."""
    listed = id_series(given)
    if not (listed.dtype.is_integer() or listed.dtype == pl.String) or len(listed) == 0:
        raise InvalidDocument(f"the {role} list must contain ids, all whole numbers or all text")
    # A number that does not fit into 64 bits becomes null.
    listed = listed.cast(pl.Int64 if listed.dtype.is_integer() else pl.String, strict=False)
    if listed.has_nulls() or listed.n_unique() != len(listed):
        raise InvalidDocument(
            f"the {role} list contains missing or duplicate ids; list each id once"
        )
    return listed


def _placed(own: pl.Series, given: Ids | None, role: str) -> tuple[pl.Series, Places]:
    """All ids, sorted, and the positions of the ratings' own ids among them."""
    if given is None:
        return own, np.arange(len(own), dtype=np.int32)
    listed = _checked_list(given, role).sort()
    # An id that cannot be converted to the type of the list is not in it; 007 does not match 7.
    wanted = own.cast(listed.dtype, strict=False)
    if own.dtype == pl.String:
        wanted = wanted.set(wanted.cast(pl.String).ne_missing(own), None)
    table = pl.DataFrame({"id": listed, "place": np.arange(len(listed), dtype=np.int32)})
    found = wanted.alias("id").to_frame().join(table, on="id", how="left", maintain_order="left")
    places = found["place"]
    if places.has_nulls() or places.n_unique() != len(places):
        raise InvalidDocument(
            f"the ratings contain {role}s that are not listed; list all {role} ids, with the same "
            "type as in the ratings: whole numbers or text"
        )
    return listed, places.to_numpy().astype(np.int32)
