"""Ratings matched to a model by id. Exact, so owner-only."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal.ids import match_rows
from taciturn.data.ratings import Ratings, check_ratings
from taciturn.errors import InvalidParameter
from taciturn.model.factor_model import FactorModel, HasModel, model_of
from taciturn.model.interest import popularity_alone
from taciturn.model.profiles import Floats, Profiles
from taciturn.solvers.contract import Fit

Model = Fit | HasModel | FactorModel
"""Fits are evaluated with their private profiles, where they have any."""

RowMap = npt.NDArray[np.int64]

_PIECE = 2**18


@dataclass(frozen=True, eq=False, kw_only=True)
class Matched:
    """Model with the rows of the users and items of some ratings.

    Unknown users and items have the row of an empty profile, which is appended to the known ones.
    They are predicted from the mean and the bias of the other axis.

    Attributes
    ----------
    model
        Model, with an empty profile on an axis that has unknown ids.
    users, items
        Row of each user and of each item of the ratings.
    item_ids
        Ids of the known items.
    unknown_users, unknown_items
        Numbers of rated users and items that are not in the model.
    """

    model: FactorModel
    users: RowMap
    items: RowMap
    item_ids: pl.Series
    unknown_users: int
    unknown_items: int

    @property
    def item_count(self) -> int:
        """Number of known items."""
        return len(self.item_ids)

    def errors(self, ratings: Ratings) -> npt.NDArray[np.float64]:
        """Prediction errors v̂ − v, in the order of `by_user`."""
        users, items, values = ratings.rows(), ratings.by_user.columns, ratings.values()
        errors = np.empty(len(ratings))
        for begin in range(0, len(ratings), _PIECE):
            part = slice(begin, begin + _PIECE)
            rows = self.users[users[part]], self.items[items[part]]
            errors[part] = self.model.predict_rows(*rows) - values[part]
        return errors


def match(model: Model, ratings: Ratings) -> Matched:
    """Match ratings to a fit, release or model by the ids of users and items."""
    model = model.owner_model if isinstance(model, Fit) else model_of(model)
    check_ratings(ratings)
    if len(ratings) == 0:
        raise InvalidParameter("there are no ratings to compare predictions with")
    of_users, of_items = _empty_profiles(model)
    users, items = (
        _Axis.of(profiles, empty, ids, np.diff(table.starts) > 0)
        for profiles, empty, ids, table in (
            (model.users, of_users, ratings.user_ids, ratings.by_user),
            (model.items, of_items, ratings.item_ids, ratings.by_item),
        )
    )
    if users.unknown == users.rated and items.unknown == items.rated:
        raise InvalidParameter(
            "no user and no item of the ratings is in the model; both must use the same ids"
        )
    return Matched(
        model=replace(model, users=users.profiles, items=items.profiles),
        users=users.rows,
        items=items.rows,
        item_ids=items.known_ids,
        unknown_users=users.unknown,
        unknown_items=items.unknown,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Axis:
    """Users or items of ratings matched to profiles, with numbers of rated and unknown ones."""

    profiles: Profiles
    known_ids: pl.Series
    rows: RowMap
    rated: int
    unknown: int

    @classmethod
    def of(
        cls,
        profiles: Profiles | None,
        empty: Profiles,
        ids: pl.Series,
        is_rated: npt.NDArray[np.bool_],
    ) -> "_Axis":
        if profiles is None:
            profiles = replace(empty.take(np.empty(0, dtype=np.int64)), ids=ids.clear())
        rows = match_rows(ids, profiles.ids)
        is_unknown = rows < 0
        return cls(
            profiles=_with_empty(profiles, empty) if is_unknown.any() else profiles,
            known_ids=profiles.ids,
            rows=np.where(is_unknown, len(profiles), rows),
            rated=int(np.count_nonzero(is_rated)),
            unknown=int(np.count_nonzero(is_rated & is_unknown)),
        )


def _empty_profiles(model: FactorModel) -> tuple[Profiles, Profiles]:
    """Profile of an unknown user, who is interested in what is popular, and of an unknown item."""
    one = Profiles.from_rows(pl.Series([None]), np.zeros((1, 1 + model.factor_count)))
    if model.interest is None:
        return one, one
    vectors: Floats = popularity_alone(model.interest_count)[None]
    if model.items is not None and model.interest_items is not None:
        vectors = model.interest_items.scaled(vectors)
    return replace(one, interests=vectors), replace(one, interests=np.zeros_like(vectors))


def _with_empty(profiles: Profiles, empty: Profiles) -> Profiles:
    """Profiles with an empty one at the end; without variances."""
    interests = None
    if profiles.interests is not None and empty.interests is not None:
        interests = np.vstack([profiles.interests, empty.interests])
    return Profiles(
        ids=profiles.ids.extend_constant(None, 1),
        biases=np.append(profiles.biases, empty.biases.astype(profiles.biases.dtype)),
        factors=np.vstack([profiles.factors, empty.factors.astype(profiles.factors.dtype)]),
        interests=interests,
    )
