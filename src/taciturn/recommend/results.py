"""Results of serving: items of lists, and predicted distributions of ratings."""

from dataclasses import dataclass

from taciturn._internal.ids import Id
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Rows
from taciturn.model.score import By

_STEPS_MAX = 100.5
"""Maximum number of steps of a scale whose values get probabilities: 0 to 100."""


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """One recommended item: its id, its score, its rank, starting at 1, and its title if known.

    `by` is the order of the list, or the part of the profiles that similar items share. In a list
    with reasons, `because` holds the items that the user liked and that are similar to this one,
    and `reason` is text.
    """

    item_id: Id
    score: float
    rank: int
    by: By
    title: str | None = None
    because: tuple[Id, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Predicted distribution of one rating.

    `standard_deviation` is that of a normal distribution about the score. `probabilities` are those
    of the values of a scale with a step, by value; None if it has no step, or more than 101 values.
    """

    standard_deviation: float
    probabilities: dict[float, float] | None

    @classmethod
    def of(cls, model: FactorModel, users: Rows, items: Rows) -> "Distribution":
        """Distribution of one pair of rows."""
        step, probabilities = model.scale.step, None
        if step is not None and model.scale.range / step <= _STEPS_MAX:
            found = model.star_probability_rows(users, items)[0]
            probabilities = dict(zip(model.scale.levels.tolist(), found.tolist(), strict=True))
        deviation = float(model.standard_deviation_rows(users, items)[0])
        return cls(standard_deviation=deviation, probabilities=probabilities)
