"""Similarity of items: cosines of their interest factors, or of their rating factors."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from taciturn._internal import validate
from taciturn._internal.spelling import option
from taciturn.errors import InvalidParameter
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Floats, Rows
from taciturn.model.score import By


def compared_by(model: FactorModel, by: By | str | None = None) -> By:
    """Part of the profiles that items are compared by.

    Default: interest factors, or rating factors if there are none. Raises if the items have no such
    factors.
    """
    if by is None:
        by = By.INTEREST if has_factors(model, By.INTEREST) else By.RATING
    by = validate.choice("by", by, By)
    if has_factors(model, by):
        return by
    if has_factors(model, By.RATING):
        raise InvalidParameter(
            f"these items have no interest factors to compare; leave {option('by')} out, or pass "
            f"{option('by', 'rating')}"
        )
    if by is By.RATING and has_factors(model, By.INTEREST):
        raise InvalidParameter(
            f"these items have no rating factors to compare; leave {option('by')} out, or pass "
            f"{option('by', 'interest')}"
        )
    raise InvalidParameter(
        "the profiles in this release have no factors, so items cannot be compared"
    )


def has_factors(model: FactorModel, by: By) -> bool:
    """Whether items have interest factors beside popularity, or rating factors."""
    if by is By.INTEREST:
        return model.interest_count > 1
    return model.factor_count > 0


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Similarity:
    """Cosines of a model's items, by one part of their profiles. Norms are computed once."""

    model: FactorModel
    by: By

    @cached_property
    def _norms(self) -> Floats:
        return _norms(_factors(self.model, self.by))

    def nearest(self, item: int, count: int) -> tuple[Rows, Floats]:
        """Rows of the other items with the largest cosines, and these; ties go to the earlier."""
        factors = _factors(self.model, self.by)
        if not factors[item].any():
            raise InvalidParameter(
                f"item {self.model.item_profiles.ids[item]} has no {self.by} factors to compare: "
                "they are all 0, as those of an item without ratings"
            )
        cosines: Floats = factors @ (factors[item] / self._norms[item]) / self._norms
        cosines[item] = -np.inf
        count = min(count, len(cosines) - 1)
        if count == 0:
            return np.empty(0, dtype=np.int64), cosines[:0]
        last = np.partition(-cosines, count - 1)[count - 1]
        places = np.flatnonzero(~(-cosines > last))  # with all ties of the last
        found = places[np.lexsort((places, -cosines[places]))[:count]]
        return found, cosines[found]


def unit_factors(model: FactorModel, by: By, rows: Rows | None = None) -> Floats:
    """Factors of items, scaled to norm 1; all items without rows. A vector of zeros stays."""
    factors = _factors(model, by)
    if rows is not None:
        factors = factors[rows]
    unit: Floats = factors / _norms(factors)[:, None]
    return unit


def _factors(model: FactorModel, by: By) -> Floats:
    """Factors of all items by which they are compared."""
    profiles = model.item_profiles
    if by is By.INTEREST and profiles.interests is not None:
        interests: Floats = profiles.interests[:, 1:]
        return interests
    return profiles.factors


def _norms(factors: Floats) -> Floats:
    """Norms of vectors, or 1 for a vector of zeros."""
    norms = np.linalg.norm(factors, axis=1)
    found: Floats = np.where(norms > 0, norms, norms.dtype.type(1))
    return found
