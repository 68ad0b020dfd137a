"""Requests of the commands: one user or item at a time, by id or by file."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from taciturn._internal.ids import Id, find_rows, parse_id
from taciturn._internal.spelling import option
from taciturn.errors import InvalidParameter
from taciturn.model.fold_in import FoldedIn
from taciturn.model.score import By, Score
from taciturn.model.similarity import compared_by
from taciturn.recommend.results import Recommendation
from taciturn.recommend.serve import Recommender
from taciturn.recommend.tables import of_one_user, own_ratings, read_items
from taciturn.release.read import load_release
from taciturn.release.sign import PublicKey
from taciturn.tables.columns import column_of
from taciturn.tables.names import ITEM, RATING, USER
from taciturn.tables.whole import id_column, read_table


@dataclass(frozen=True, kw_only=True)
class Recipient:
    """A user in a release, by id, or a user outside it, by a file of their own ratings."""

    user: str | None = None
    ratings: Path | None = None

    def __post_init__(self) -> None:
        if (self.user is None) == (self.ratings is None):
            raise InvalidParameter(
                f"pass either {option('user', 'ID')}, or {option('ratings', 'FILE')} for a user "
                "who is not in "
                "the release"
            )


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Predicted rating, clipped to the scale, with its standard deviation and title if available.

    `user_id` is None for a user outside the release. `probabilities` are those of the values of the
    scale, by their text; None without variances, or if the scale has no step or too many values.
    """

    user_id: Id | None
    item_id: Id
    rating: float
    deviation: float | None = None
    title: str | None = None
    probabilities: dict[str, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Ranked list, and the user or item it is for; None for a user outside the release.

    `by` is the order of the list, or the part of the profiles that similar items share. If
    `is_personalised` is false, every user gets the same list. `popularity_weight` is None for
    similar items, and for lists by rating.
    """

    id: Id | None
    by: By
    items: list[Recommendation]
    is_personalised: bool = True
    popularity_weight: float | None = None


class Service:
    """Service of a release folder, with its own item profiles or those in a file.

    Parameters
    ----------
    release
        Folder of the release.
    items, item_ids
        Files of item profiles to use instead of the release's; see `read_items`.
    note
        Called with remarks about a recipient's own ratings.
    public_key
        Key that must have signed the release; see `load_release`.
    titles
        Titles of the items; see `Recommender`.
    """

    def __init__(
        self,
        release: Path,
        items: Path | None = None,
        item_ids: Path | None = None,
        note: Callable[[str], None] = lambda sentence: None,
        public_key: PublicKey | None = None,
        titles: Path | None = None,
    ) -> None:
        loaded = load_release(release, public_key)
        width, users = loaded.model.factor_count, loaded.model.users
        own = read_items(items, width, item_ids) if items is not None else None
        self._recommender = Recommender(loaded, items=own, titles=titles)
        self._user_ids = users.ids if users is not None else None
        self._place = "in the release" if items is None else f"in {items}"
        self._note = note
        self._has_titles = titles is not None
        if titles is not None and self._recommender.title_count == 0:
            note(f"{titles} has no title of an item {self._place}")

    @property
    def has_titles(self) -> bool:
        """True if a table of titles was given."""
        return self._has_titles

    @property
    def item_ids(self) -> pl.Series:
        """Ids of the items that can be recommended."""
        return self._recommender.item_ids

    def recommend(
        self,
        recipient: Recipient,
        count: int = 10,
        exclude: Path | None = None,
        by: By | str | None = None,
        popularity_weight: float = 1.0,
    ) -> Listing:
        """Best items for a user, with the reason for each.

        `exclude` is a table of items not to recommend; with a user column, each row applies to its
        user only and is an item that the user knows. For a user outside the release, all its rows
        are of one user, and the items that the user rated are excluded too.
        """
        options: dict[str, Any] = {"by": by, "popularity_weight": popularity_weight}
        if recipient.ratings is not None:
            user, best = None, self._best_of_own(recipient.ratings, count, exclude, options)
        else:
            user = self._user(recipient)
            best = self._best_of_user(user, count, exclude, options)
        score = Score.of(self._recommender.model, by, popularity_weight)
        return Listing(
            id=user,
            by=score.by,
            items=best,
            is_personalised=score.is_personalised(self._recommender.model),
            popularity_weight=score.popularity_weight if score.by is By.INTEREST else None,
        )

    def _best_of_user(
        self, user: Id, count: int, exclude: Path | None, options: dict[str, Any]
    ) -> list[Recommendation]:
        """Best items for a user in the release."""
        known = None if exclude is None else _excluded(exclude)
        found = self._recommender.recommend([user], count, exclude=known, explain=True, **options)
        if exclude is not None and known is not None:
            self._note_unless_excluded(user, known, exclude)
        by = Score.of(self._recommender.model, **options).by
        columns = found.drop("user_id").iter_rows(named=True)
        return [
            Recommendation(**row | {"because": tuple(row["because"])}, by=by) for row in columns
        ]

    def _best_of_own(
        self, ratings: Path, count: int, exclude: Path | None, options: dict[str, Any]
    ) -> list[Recommendation]:
        """Best items for a user outside the release."""
        own, folded = self._folded(ratings)
        seen = pl.Series([], dtype=self.item_ids.dtype)
        if exclude is not None:
            frame = read_table(exclude)
            of_one_user(frame, exclude)
            seen = id_column(frame, ITEM, str(exclude))
            self._note_unless_listed(seen, exclude)
        return self._recommender.recommend_profile(
            folded.bias,
            folded.factors,
            count,
            interest=folded.interest,
            exclude=seen,
            ratings=own,
            explain=True,
            **options,
        )

    def similar(self, item: str, count: int = 10, by: By | str | None = None) -> Listing:
        """Items with the most similar profiles."""
        identifier = parse_id(item, self.item_ids)
        best = self._recommender.similar(identifier, count, by=by)
        return Listing(id=identifier, by=compared_by(self._recommender.model, by), items=best)

    def predict(self, recipient: Recipient, item: str) -> Prediction:
        """Predicted rating of an item by a user."""
        what = parse_id(item, self.item_ids)
        if recipient.ratings is not None:
            _, mine = self._folded(recipient.ratings)
            rating = self._recommender.predict_profile(mine.bias, mine.factors, what)
            found = self._recommender.distribution_profile(mine, what)
            user = None
        else:
            user = self._user(recipient)
            rating = float(self._recommender.predict([user], [what])[0])
            found = self._recommender.distribution(user, what)
        stars = None
        if found is not None and found.probabilities is not None:
            stars = {f"{value:g}": each for value, each in found.probabilities.items()}
        return Prediction(
            user_id=user,
            item_id=what,
            rating=rating,
            deviation=None if found is None else found.standard_deviation,
            title=self.title(what),
            probabilities=stars,
        )

    def title(self, item: Id) -> str | None:
        """Title of an item; None if it is not known."""
        return self._recommender.title(item)

    def _user(self, recipient: Recipient) -> Id:
        user = recipient.user or ""
        return parse_id(user, self._user_ids) if self._user_ids is not None else user

    def _folded(self, path: Path) -> tuple[dict[Id, float], FoldedIn]:
        """Ratings of a user outside the release, and the profile folded in from them."""
        own = own_ratings(path, self.item_ids)
        folded = self._recommender.fold_in(own)
        if folded.unknown_items:
            count = len(folded.unknown_items)
            self._note(f"{count} of {len(own)} items in {path} are not {self._place}")
        return own, folded

    def _note_unless_excluded(self, user: Id, known: pl.DataFrame | pl.Series, path: Path) -> None:
        """Note that a table excludes nothing for a user in the release."""
        if isinstance(known, pl.DataFrame):
            rows = find_rows(known["user_id"], pl.Series([user]), str(path))
            known = known["item_id"].filter(pl.Series(rows >= 0, dtype=pl.Boolean))
            if len(known) == 0:
                self._note(f"{path} has no row of user {user}, so it excludes nothing")
                return
        self._note_unless_listed(known, path)

    def _note_unless_listed(self, items: pl.Series, path: Path) -> None:
        """Note that a table excludes nothing, if none of its items can be recommended."""
        if (find_rows(items, self.item_ids, str(path)) < 0).all():
            reason = f"none of the items in {path} is {self._place}"
            if len(items) == 0:
                reason = f"{path} has no rows"
            self._note(f"{reason}, so it excludes nothing")


def _excluded(path: Path) -> pl.DataFrame | pl.Series:
    """Pairs not to recommend, with ratings if there are any; item ids without a user column."""
    frame = read_table(path)
    items, users, values = (
        id_column(frame, ITEM, str(path)),
        column_of(frame, USER),
        column_of(frame, RATING),
    )
    if users is None:
        return items
    columns = {"user_id": users, "item_id": items}
    return pl.DataFrame(columns if values is None else columns | {"rating": values})
