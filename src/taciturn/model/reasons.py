"""Reasons for the items of a list: similar items that the user liked, or a part of the score.

Everything is computed from the model and the user's own items alone: it is post-processing of the
model for that user.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal.ids import Id
from taciturn.model.factor_model import FactorModel
from taciturn.model.known_items import KnownItems
from taciturn.model.profiles import Floats, Rows
from taciturn.model.score import By, Score
from taciturn.model.similarity import has_factors, unit_factors

NEAREST = 2
"""Maximum number of liked items in one reason."""

NEIGHBOURS, COSINE_MIN = 50, 0.5
"""Number of nearest neighbours of a listed item that may be reasons for it, and the least cosine.

On MovieLens-100K, the 50 nearest films of a well-known one still resemble it, and the hundredth
seldom does. Both are needed: with 4 factors, hundreds of films have a cosine above 0.5; with 60, a
film with few ratings may have no near neighbour."""

_PIECE = 256
"""Number of items that are compared with all others at once."""

PARTS = ("popular", "matches this user's interest", "high predicted rating")
"""Reasons without similar items: the parts of the score, in the order of `Reasons.parts`."""

REMAINING = "among the best of the remaining items"
"""Reason for an item none of whose parts is better than that of an average item."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Reason:
    """Reason for one item: similar items that the user liked, nearest first, and text."""

    because: tuple[Id, ...]
    text: str


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Reasons:
    """Reasons for the items of lists by one score.

    Attributes
    ----------
    average
        Mean of the items' profiles in the score: of biases, of interest vectors, of factors.
    titles
        Title of each item; None without titles.
    """

    model: FactorModel
    score: Score
    average: npt.NDArray[np.float64]
    titles: pl.Series | None = None

    def of_lists(
        self, users: Floats, lists: Sequence[tuple[int, Rows]], known: KnownItems
    ) -> list[Reason]:
        """Reason for each item of several lists, one after the other.

        A list is a row of `users`, which are profiles in the score, and of `known`, and the rows of
        its items.
        """
        scale = self.model.scale
        middle = (scale.low + scale.high) / 2
        every = np.concatenate([np.empty(0, dtype=np.int64), *(items for _, items in lists)])
        listed, where = np.unique(every, return_inverse=True)
        has_own = known.is_own and known.columns.size > 0
        minima = self.minima(listed)[where] if has_own else np.zeros(len(every), dtype=np.float32)
        near, largest = [np.empty((0, NEAREST), dtype=np.int32)], [np.empty(0, dtype=np.int64)]
        start = 0
        for user, items in lists:
            part = slice(start, start := start + len(items))
            near.append(self.near(items, known.liked(user, middle), minima[part]))
            parts = self.parts(users[user], items)
            largest.append(np.where(parts.max(axis=1) > 0, parts.argmax(axis=1), len(PARTS)))
        rows = np.concatenate(near)
        places, inverse = np.unique(rows, return_inverse=True)
        names = self._names(places)
        ids = self.model.item_profiles.ids[np.maximum(places, 0)].to_list()
        found = zip(rows, inverse.reshape(rows.shape), np.concatenate(largest), strict=True)
        return [
            Reason(
                because=tuple(ids[place] for place in where[row >= 0]),
                text="similar to " + " and ".join(names[place] for place in where[row >= 0])
                if row[0] >= 0
                else (*PARTS, REMAINING)[part],
            )
            for row, where, part in found
        ]

    @property
    def _by(self) -> By:
        """Factors by which items are compared."""
        return self.score.by if has_factors(self.model, self.score.by) else By.RATING

    def minima(self, items: Rows) -> npt.NDArray[np.float32]:
        """Smallest cosine that makes an item a near neighbour of each of these items."""
        unit = unit_factors(self.model, self._by)
        found = np.full(len(items), COSINE_MIN, dtype=np.float32)
        # In ascending order, with the item itself last.
        place = len(unit) - 1 - NEIGHBOURS
        if place >= 0:
            for begin in range(0, len(items), _PIECE):
                part = slice(begin, begin + _PIECE)
                cosines = unit[items[part]] @ unit.T
                found[part] = np.maximum(
                    found[part], np.partition(cosines, place, axis=1)[:, place]
                )
        return found

    def near(
        self, items: Rows, liked: Rows, minima: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.int32]:
        """Liked items with the largest cosines, for each item; −1 where none reaches the minimum.

        Ties go to the earlier item.
        """
        found = np.full((len(items), NEAREST), -1, dtype=np.int32)
        if len(liked):
            unit = unit_factors(self.model, self._by, items)
            cosines = unit @ unit_factors(self.model, self._by, liked).T
            order = np.argsort(-cosines, axis=1, kind="stable")[:, :NEAREST]
            is_near = np.take_along_axis(cosines, order, axis=1) >= minima[:, None]
            found[:, : order.shape[1]] = np.where(is_near, liked[order], -1)
        return found

    def parts(self, user: Floats, items: Rows) -> npt.NDArray[np.float64]:
        """Parts of the scores of items less those of an average item (items × parts).

        The parts are popularity, interest factors, and the predicted rating.
        """
        profiles, weight = self.model.item_profiles, self.score.rating_weight(self.model)
        columns = [weight * profiles.biases[items, None], weight * profiles.factors[items]]
        width = 0
        if self.score.by is By.INTEREST and profiles.interests is not None:
            width = profiles.interests.shape[1]
            columns.insert(1, profiles.interests[items])
        excess = np.hstack(columns).astype(np.float64) - self.average
        products = excess * np.append(1.0, user.astype(np.float64))
        groups = products[:, 1 : 1 + min(width, 1)], products[:, 2 : 1 + width]
        interest = [group.sum(axis=1) for group in groups]
        return np.column_stack([*interest, products[:, 0] + products[:, 1 + width :].sum(axis=1)])

    def _names(self, items: Rows) -> list[str]:
        """Titles of items, or their ids; any text for rows of −1."""
        rows = np.maximum(items, 0)
        ids = self.model.item_profiles.ids[rows].to_list()
        titles = [None] * len(ids) if self.titles is None else self.titles[rows].to_list()
        names = [each if isinstance(each, str) else f"item {each}" for each in ids]
        return [title or name for title, name in zip(titles, names, strict=True)]
