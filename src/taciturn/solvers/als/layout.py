"""Layout of the coefficients of `als` under unit `value`: public facts of a training.

Numbers are in units in which the scale is 4 wide and its middle is 0. Everything here is built from
the rating pattern, which is public under unit `value`, and from the declared scale.
"""

import math

import numpy as np
import numpy.typing as npt

from taciturn.data.pattern import Axis, Pattern
from taciturn.mechanisms.grid import ValueGrid
from taciturn.model import assumptions
from taciturn.solvers.als.pattern_features import compute_pattern_features
from taciturn.solvers.als.public_items import PublicItems
from taciturn.solvers.als.value_state import AxisState, Rows, Used, ValueState
from taciturn.solvers.contract import PublicFacts, Seeds
from taciturn.solvers.descent import rating_scale_factor

Columns = npt.NDArray[np.int64]

_CAUTION, _CAUTION_SPARSE, _SPARSE = 2.0, 1.2, 20
"""Factor by which inference inflates the error variance of a rating: with at least twice the last
number of ratings per row, and with at most that number. Inference treats counterparts as more
certain than they are, and residuals are clipped. With few ratings per row, a larger factor shrinks
biases too far. Published variances do not include it."""

_COLUMNS, _REGRESSORS = 8, 40
"""Maximum numbers of pattern features: with coefficients, and as regressors of prior means."""


class Layout:
    """Coefficients of each row, and predictions from them.

    Parameters
    ----------
    facts
        Public facts of the ratings, including the rating pattern.
    factors
        Number of factors. Default: from the size of the dataset.
    has_pattern_features
        Whether to use features of the rating pattern.
    threads
        Number of threads; the result does not depend on it.
    """

    def __init__(
        self,
        facts: PublicFacts,
        factors: int | None,
        has_pattern_features: bool,
        threads: int | None = None,
    ) -> None:
        pattern, (users, items) = facts.pattern, facts.shape
        self._pattern, self.scale = pattern, facts.scale
        self.total = pattern.entries
        self.caution = usual_caution(users, items, self.total)
        self.factors = factors or usual_factors(users, items, self.total)
        self.unit = rating_scale_factor(facts.scale)
        self.grid = ValueGrid.for_scale(-facts.scale.range / 2, facts.scale.range / 2)
        self.step = math.ldexp(1.0, self.grid.exponent) / self.unit
        both = {axis: np.empty((len(pattern.along(axis)), 0)) for axis in Axis}
        if has_pattern_features:
            most = min(_REGRESSORS, max(_COLUMNS, min(users, items) // 50))
            found = compute_pattern_features(pattern, most, threads)
            both[Axis.USERS], both[Axis.ITEMS] = found
        self.pattern_features = {axis: found[:, :_COLUMNS] for axis, found in both.items()}
        # Prior means of rows depend on features of the rating pattern and on public inputs.
        of_items, public = [both[Axis.ITEMS], facts.item_features], PublicItems.of(facts)
        if public is not None:
            of_items.append(public.regressors)
        both[Axis.ITEMS] = np.column_stack(of_items)
        self.regressors = {
            axis: np.column_stack([np.ones(len(found)), found]) for axis, found in both.items()
        }

    def pattern(self, axis: Axis) -> Pattern:
        """The rating pattern along an axis."""
        return self._pattern.along(axis)

    @property
    def has_pattern_features(self) -> bool:
        """True if features of the rating pattern have coefficients."""
        return any(found.shape[1] for found in self.pattern_features.values())

    def used(self, number: int) -> Used:
        """Coefficients that a round queries: first biases, then also pattern features, then all."""
        if number == 0:
            return Used.BIASES
        is_pattern = number == 1 and self.has_pattern_features
        return Used.BIASES | Used.PATTERN if is_pattern else Used.ALL

    def columns(self, axis: Axis, used: Used) -> Columns:
        """Column indices of an axis's used coefficients."""
        kinds = [Used.BIASES] + [Used.FACTORS] * self.factors
        kinds += [Used.PATTERN] * self.pattern_features[axis.other].shape[1]
        return np.flatnonzero([kind in used for kind in kinds])

    def initial_state(self, seeds: Seeds) -> ValueState:
        """State before the first release."""
        _, of_users = seeds.starts()
        users = len(self.pattern(Axis.USERS))
        return ValueState(
            mean=0.0,
            variance=assumptions.WIDTH**2 / 12,
            shift=0.0,
            shift_noise=0.0,
            offset=0.0,
            start=of_users.normal(size=(users, self.factors)),
            users=self._initial_axis(Axis.USERS, assumptions.ALS_USER_FACTOR),
            items=self._initial_axis(Axis.ITEMS, assumptions.ALS_ITEM_FACTOR),
        )

    def _initial_axis(self, axis: Axis, factor: float) -> AxisState:
        rows, counterparts = len(self.pattern(axis)), len(self.pattern(axis.other))
        width = self.pattern_features[axis.other].shape[1]
        standard_deviations = np.array(
            [assumptions.ALS_BIAS] + [factor] * self.factors + [assumptions.ALS_COEFFICIENT] * width
        )
        return AxisState(
            rows=np.zeros((rows, standard_deviations.size)),
            variances=np.tile(standard_deviations**2, (rows, 1)),
            prior=np.diag(standard_deviations**2),
            slopes=np.zeros((self.regressors[axis].shape[1], standard_deviations.size)),
            degrees=0.0,
            features=np.zeros((counterparts, 0), dtype=np.float32),
            sums=np.zeros((rows, 0)),
            noise=np.zeros(0),
        )

    def parts(self, rows: Rows) -> tuple[Rows, Rows, Rows]:
        """Biases, factors and coefficients of pattern features, as views."""
        return rows[:, :1], rows[:, 1 : 1 + self.factors], rows[:, 1 + self.factors :]

    def design(self, state: ValueState, axis: Axis) -> Rows:
        """Design matrix that multiplies the coefficients of an axis's counterparts."""
        bias, factors, _ = self.parts(state.along(axis).rows)
        return np.column_stack([np.ones(len(bias)), factors, self.pattern_features[axis]])

    def moments(self, state: ValueState, axis: Axis) -> Rows:
        """Mean square of each column of an axis's design, over ratings."""
        counts = self.pattern(axis).counts
        moments: Rows = counts @ self.design(state, axis) ** 2 / self.total
        return moments

    def prediction_rows(self, state: ValueState, axis: Axis) -> Rows:
        """Rows whose inner products with those of the other axis are predictions."""
        bias, factors, coefficients = self.parts(state.along(axis).rows)
        one, features = np.ones((len(bias), 1)), self.pattern_features[axis]
        both = [one, bias + state.mean] if axis is Axis.USERS else [bias, one]
        return np.column_stack([*both, self.joined(axis, factors, coefficients, features)])

    def joined(self, axis: Axis, factors: Rows, coefficients: Rows, features: Rows) -> Rows:
        """Parts of rows, in the order that matches the other axis."""
        parts = (features, coefficients) if axis is Axis.USERS else (coefficients, features)
        return np.column_stack([factors, *parts])


def usual_factors(users: int, items: int, ratings: int) -> int:
    """Number of factors that a dataset of this size usually supports."""
    return min(16, max(2, round(0.8 * math.sqrt(ratings / (users + items)))))


def usual_caution(users: int, items: int, ratings: int) -> float:
    """Factor that inflates the error variance of ratings in a dataset of this size."""
    doublings = math.log2(max(ratings, 1) / (_SPARSE * (users + items)))
    return _CAUTION_SPARSE + (_CAUTION - _CAUTION_SPARSE) * min(max(doublings, 0.0), 1.0)
