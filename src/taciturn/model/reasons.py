"""Reasons for the items of a list: similar items that the user liked, or a part of the score.

Everything is computed from the model and the user's own items alone: it is post-processing of the
model for that user.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn.model.factor_model import FactorModel
from taciturn.model.known_items import KnownItems
from taciturn.model.profiles import Floats, Rows
from taciturn.model.score import By, Score
from taciturn.model.similarity import has_factors, unit_factors

NEAREST = 2
"""Maximum number of liked items in one reason."""

PARTS = ("popular", "matches this user's interest", "high predicted rating")
"""Reasons without similar items: the parts of the score, in the order of `Reasons.parts`."""

REMAINING = "among the best of the remaining items"
"""Reason for an item none of whose parts is better than that of an average item."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Reason:
    """Reason for one item: rows of similar items that the user liked, nearest first, and text."""

    near: npt.NDArray[np.int32]
    text: str


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Reasons:
    """Reasons for the items of lists by one score, with names of items for their texts.

    Attributes
    ----------
    average
        Mean of the items' profiles in the score: of biases, of interest vectors, of factors.
    titles
        Title of each item; None without titles.
    """

    model: FactorModel
    score: Score
    average: Floats
    titles: pl.Series | None = None

    def of_list(self, user: Floats, items: Rows, liked: Rows) -> list[Reason]:
        """Reason for each item of the list of one user.

        `user` is the user's profile in the score, and `liked` holds the items that the user liked.
        """
        near = self._near(items, liked)
        largest = self._largest_parts(user, items)
        return [
            Reason(near=rows, text=self._similar_to(rows) if rows.size else part)
            for rows, part in zip(near, largest, strict=True)
        ]

    def _near(self, items: Rows, liked: Rows) -> list[npt.NDArray[np.int32]]:
        """Liked items with the largest positive cosines, for each item; ties go to the earlier."""
        by = self.score.by if has_factors(self.model, self.score.by) else By.RATING
        cosines = unit_factors(self.model, by, items) @ unit_factors(self.model, by, liked).T
        order = np.argsort(-cosines, axis=1, kind="stable")[:, :NEAREST]
        is_near = np.take_along_axis(cosines, order, axis=1) > 0
        rows = np.asarray(liked, dtype=np.int32)
        return [rows[each[near]] for each, near in zip(order, is_near, strict=True)]

    def parts(self, user: Floats, items: Rows) -> npt.NDArray[np.float64]:
        """Parts of the scores of items less those of an average item (items × parts).

        The parts are popularity, interest factors, and the predicted rating.
        """
        factors, biases = self.score.items(self.model, self.model.item_profiles.take(items))
        excess = np.column_stack([biases, factors]).astype(np.float64) - self.average
        products = excess * np.append(1.0, user.astype(np.float64))
        columns = 0 if self.score.by is By.RATING else self.model.interest_count
        popularity = products[:, 1:2] if columns else np.zeros((len(items), 1))
        return np.column_stack(
            [
                popularity.sum(axis=1),
                products[:, 2 : 1 + columns].sum(axis=1),
                products[:, 0] + products[:, 1 + columns :].sum(axis=1),
            ]
        )

    def _largest_parts(self, user: Floats, items: Rows) -> list[str]:
        parts = self.parts(user, items)
        return [
            PARTS[part] if row[part] > 0 else REMAINING
            for row, part in zip(parts, parts.argmax(axis=1), strict=True)
        ]

    def _similar_to(self, items: Rows) -> str:
        return "similar to " + " and ".join(self._name(int(item)) for item in items)

    def _name(self, item: int) -> str:
        title = None if self.titles is None else self.titles[item]
        return title or f"item {self.model.item_profiles.ids[item]}"

    def table(
        self, users: Floats, places: Rows, items: npt.NDArray[np.int32], known: KnownItems
    ) -> pl.DataFrame:
        """Columns because and reason of several lists, one row for each item.

        List l consists of the items[l] and is for the user in row places[l] of `users` and `known`.
        """
        found = [
            reason
            for place, row in zip(places.tolist(), items, strict=True)
            for reason in self.of_list(users[place], np.maximum(row, 0), known.liked(place))
        ]
        ids = self.model.item_profiles.ids
        because = [ids.gather(reason.near).to_list() for reason in found]
        return pl.DataFrame(
            {
                "because": pl.Series(because, dtype=pl.List(ids.dtype)),
                "reason": pl.Series([reason.text for reason in found], dtype=pl.String),
            }
        )
