"""Similarity of items: cosines of their interest factors, or of their rating factors."""

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


def unit_factors(model: FactorModel, by: By, rows: Rows | None = None) -> Floats:
    """Factors of items, scaled to norm 1; all items without rows. A vector of zeros stays."""
    profiles = model.item_profiles
    factors: Floats = profiles.factors
    if by is By.INTEREST and profiles.interests is not None:
        factors = profiles.interests[:, 1:]
    if rows is not None:
        factors = factors[rows]
    norms = np.linalg.norm(factors, axis=1)
    unit: Floats = factors / np.where(norms > 0, norms, 1)[:, None]
    return unit
