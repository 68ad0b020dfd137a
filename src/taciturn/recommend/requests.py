"""Requests by id and by file, one user or item at a time: as the commands make them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.model.fold_in import FoldedIn, Id
from taciturn.recommend.serve import Recommendation, Recommender
from taciturn.recommend.tables import own_ratings, read_items
from taciturn.release.read import load_release
from taciturn.tables.columns import column_of
from taciturn.tables.ids import parse_id
from taciturn.tables.names import ITEM, USER
from taciturn.tables.whole import id_column, read_table


@dataclass(frozen=True, kw_only=True)
class Recipient:
    """User of a release by id, or a user outside it by a file of their own ratings."""

    user: str | None = None
    ratings: Path | None = None

    def __post_init__(self) -> None:
        if (self.user is None) == (self.ratings is None):
            raise InvalidParameter(
                "pass either --user ID, or --ratings FILE for a user who is not in the release"
            )


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Predicted rating, clipped to the scale, with its standard deviation if that is known.

    `user_id` is None for a user outside the release.
    """

    user_id: Id | None
    item_id: Id
    rating: float
    deviation: float | None = None


class Service:
    """A release in a folder, with its own item profiles or those of a file.

    Parameters
    ----------
    release
        The folder.
    items, item_ids
        Item profiles to use instead of the release's, as in `read_items`.
    note
        Called with remarks on a recipient's own ratings.
    """

    def __init__(
        self,
        release: Path,
        items: Path | None = None,
        item_ids: Path | None = None,
        note: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        loaded = load_release(release)
        width, users = loaded.model.factor_count, loaded.model.users
        own = read_items(items, width, item_ids) if items is not None else None
        self._recommender = Recommender(loaded, items=own)
        self._user_ids = users.ids if users is not None else None
        self._note = note

    @property
    def item_ids(self) -> pl.Series:
        """Ids of the items that can be recommended."""
        return self._recommender.item_ids

    def recommend(
        self, recipient: Recipient, count: int = 10, exclude: Path | None = None
    ) -> tuple[Id | None, list[Recommendation]]:
        """Id of a user, and the best items for them; None for a user outside the release.

        `exclude` is a table of items not to recommend, perhaps with a column of users whom they are
        meant for. What a user outside the release rated is excluded too.
        """
        if recipient.ratings is not None:
            own, folded = self._folded(recipient.ratings)
            seen = list(own)
            if exclude is not None:
                seen += id_column(read_table(exclude), ITEM, str(exclude)).to_list()
            best = self._recommender.recommend_profile(
                folded.bias, folded.factors, count, exclude=seen
            )
            return None, best
        user = self._user(recipient)
        pairs = _excluded(exclude, user) if exclude is not None else None
        found = self._recommender.recommend([user], count, exclude=pairs)
        columns = found.select("item_id", "score", "rank").iter_rows(named=True)
        return user, [Recommendation(**row) for row in columns]

    def similar(self, item: str, count: int = 10) -> tuple[Id, list[Recommendation]]:
        """Id of an item, and the items whose profiles are most like its own."""
        identifier = parse_id(item, self.item_ids)
        return identifier, self._recommender.similar(identifier, count)

    def predict(self, recipient: Recipient, item: str) -> Prediction:
        """Rating that a user would give an item."""
        what = parse_id(item, self.item_ids)
        if recipient.ratings is not None:
            _, mine = self._folded(recipient.ratings)
            rating = self._recommender.predict_profile(mine.bias, mine.factors, what)
            return Prediction(user_id=None, item_id=what, rating=rating)
        user = self._user(recipient)
        rating = float(self._recommender.predict([user], [what])[0])
        deviation = None
        if self._recommender.has_deviations:
            deviation = float(self._recommender.deviations([user], [what])[0])
        return Prediction(user_id=user, item_id=what, rating=rating, deviation=deviation)

    def _user(self, recipient: Recipient) -> Id:
        user = recipient.user or ""
        return parse_id(user, self._user_ids) if self._user_ids is not None else user

    def _folded(self, path: Path) -> tuple[dict[Id, float], FoldedIn]:
        """Ratings of a user outside the release, and the profile that follows from them."""
        own = own_ratings(path, self.item_ids)
        known = set(self.item_ids.to_list()) & own.keys()
        if not known:
            raise InvalidDocument(f"the release has none of the items in {path}")
        if len(known) < len(own):
            left = len(own) - len(known)
            self._note(f"{left} of {len(own)} items in {path} are not in the release")
        return own, self._recommender.fold_in(own)


def _excluded(path: Path, user: Id) -> pl.DataFrame:
    """Pairs not to recommend; items without a column of users are meant for `user`."""
    frame = read_table(path)
    owner = column_of(frame, USER)
    if owner is None:
        owner = pl.Series([user] * len(frame))
    return pl.DataFrame({"user_id": owner, "item_id": id_column(frame, ITEM, str(path))})
