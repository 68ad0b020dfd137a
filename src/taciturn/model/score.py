"""Ranking score as one inner product of longer profiles.

By interest, the score is interest + w × predicted rating, not clipped, with the rating weight w of
the model. An item's longer profile is its bias times w, its interest vector, and its factors times
w; a user's is the interest vector and the factors. By rating, the score is the predicted rating.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from taciturn._internal import validate
from taciturn._internal.spelling import option
from taciturn.errors import InvalidParameter
from taciturn.model.factor_model import FactorModel, check_predicts
from taciturn.model.profiles import Floats, Profiles, Rows


class By(StrEnum):
    """Order of a list: by interest and predicted rating together, or by predicted rating alone."""

    INTEREST = "interest"
    RATING = "rating"


@dataclass(frozen=True, kw_only=True)
class Score:
    """Ranking score of a model.

    Attributes
    ----------
    by
        What it consists of.
    popularity_weight
        Multiplier of the popularity part of interest, 0 to 1.
    """

    by: By
    popularity_weight: float = 1.0

    @classmethod
    def of(
        cls, model: FactorModel, by: By | str | None = None, popularity_weight: float = 1.0
    ) -> "Score":
        """Checked score of a model. Default: by interest, or by rating if it has no interest."""
        has_interest = model.interest is not None
        if by is None:
            by = By.INTEREST if has_interest else By.RATING
        by = validate.choice("by", by, By)
        weight = validate.finite("popularity_weight", popularity_weight, "1 is the default")
        if not 0 <= weight <= 1:
            raise InvalidParameter(
                f"{option('popularity_weight')} must be between 0 and 1, got {weight:g}"
            )
        if not has_interest and (by is By.INTEREST or weight != 1):
            raise InvalidParameter(
                f"this model has no interest, so its lists are {option('by', 'rating')}; train "
                f"with {option('solver', 'als')}, without {option('interest', False)} and "
                f"{option('pattern_features', False)}, to add it"
            )
        if by is By.RATING:
            check_predicts(model)
        if weight == 0 and not model.predicts_ratings:
            raise InvalidParameter(
                f"{option('popularity_weight')} 0 leaves nothing to order items by: this model has "
                "popularity alone"
            )
        if by is By.RATING and weight != 1:
            raise InvalidParameter(
                f"{option('popularity_weight')} applies to interest; leave it out, or do not pass "
                f"{option('by', 'rating')}"
            )
        return cls(by=by, popularity_weight=weight)

    def is_personalised(self, model: FactorModel) -> bool:
        """True if the ranking of items by this score depends on the user."""
        return model.is_personalised if self.by is By.INTEREST else model.factor_count > 0

    def rating_weight(self, model: FactorModel) -> float:
        """Weight of a predicted rating in the score."""
        if self.by is By.RATING or model.interest is None:
            return 1.0
        return model.interest.rating_weight

    def items(self, model: FactorModel, profiles: Profiles) -> tuple[Floats, Floats]:
        """Factors and biases of items of a model in its score."""
        weight = profiles.factors.dtype.type(self.rating_weight(model))
        factors, biases = weight * profiles.factors, weight * profiles.biases
        if self.by is By.INTEREST and profiles.interests is not None:
            factors = np.hstack([profiles.interests, factors])
        return factors, biases

    def interests(self, profiles: Profiles) -> Floats | None:
        """Interest vectors of profiles if they are part of the score."""
        return profiles.interests if self.by is By.INTEREST else None

    def average(self, model: FactorModel, items: Profiles) -> npt.NDArray[np.float64]:
        """Mean of the items' profiles in the score: of biases, interest vectors and factors."""
        weight, interests = self.rating_weight(model), self.interests(items)
        means = [weight * items.biases.mean(dtype=np.float64, keepdims=True)]
        if interests is not None:
            means.append(interests.mean(axis=0, dtype=np.float64))
        return np.concatenate([*means, weight * items.factors.mean(axis=0, dtype=np.float64)])

    def users(self, model: FactorModel, rows: Rows) -> Floats:
        """Factors of users of a model in its score."""
        profiles = model.user_profiles
        factors: Floats = profiles.factors[rows]
        if self.by is By.INTEREST and profiles.interests is not None:
            interests = profiles.interests[rows]
            interests[:, 0] *= interests.dtype.type(self.popularity_weight)
            factors = np.hstack([interests, factors])
        return factors

    def offsets(self, model: FactorModel, rows: Rows) -> Floats:
        """Part of users' scores that is the same for every item."""
        offsets = model.offsets_rows(rows)
        return np.asarray(offsets * offsets.dtype.type(self.rating_weight(model)))
