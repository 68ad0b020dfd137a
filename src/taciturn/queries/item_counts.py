"""Number of ratings of each item, alone, under units that protect the rating pattern."""

from dataclasses import replace

from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.query import Answer
from taciturn.queries.per_user import UserTotals
from taciturn.queries.prediction_errors import Shape
from taciturn.queries.totals import RatingTotals
from taciturn.queries.values import GridValues, ValueView

PROOF = "popularity.md#claim"


class ItemCounts:
    """Number of ratings of each item; under unit `user`, the sum of their weights 1/√n.

    One of the tables of `RatingTotals` or of `UserTotals`, with its bound.

    Parameters
    ----------
    items
        Number of items.
    users
        Number of users, where it is public: under unit `rating`.
    view
        View of the ratings, along the users. Their values are not used.
    unit
        Privacy unit: `rating` or `user`.
    prefix
        Start of the purpose of the table.
    """

    def __init__(
        self, *, items: int, users: int | None, view: ValueView, unit: Unit, prefix: str = ""
    ) -> None:
        if view.axis is not Axis.USERS:
            raise InvalidParameter("counts of items need values along the users")
        self.view = view
        self._whole, self._place = _tables(items, users, view, unit)
        query = self._whole.queries[self._place]
        self.queries = (replace(query, purpose=prefix + query.purpose, proof=PROOF),)

    def exact(self, values: GridValues, threads: int | None = None) -> Answer:
        """Exact table of the query. Reads private data; the result is private too."""
        return Answer((self._whole.exact(values, threads).tables[self._place],))


def _tables(
    items: int, users: int | None, view: ValueView, unit: Unit
) -> tuple[RatingTotals | UserTotals, int]:
    """Query with the table of items, and its place there."""
    if unit is Unit.USER:
        return UserTotals(items=items, view=view), 0
    if unit is not Unit.RATING or users is None:
        raise InvalidParameter("counts of items need unit rating and users, or unit user")
    shape: Shape = users, items
    return RatingTotals(shape=shape, view=view), 1
