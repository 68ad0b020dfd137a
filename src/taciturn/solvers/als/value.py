"""Unit `value`: noise-aware alternating least squares on all noisy sums released so far.

A rating is modelled as v_ij = m + b_i + c_j + ⟨x_i, θ_j⟩ + ⟨g_i, f_j⟩ + ⟨h_i, d_j⟩ + error, where
f_j and h_i are features of the rating pattern, public under unit `value`. A round queries, for each
item and then for each user, Σ residual × features of the counterparts. Residuals are clipped to
about their standard deviation and features have norm 1, so that every rating carries as much
information as its sensitivity allows. The coefficients of every row and their variances are
inferred from all noisy sums so far, given the noise (`inference`). The proof is in
docs/proofs/als.md.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from taciturn.accounting.budget import Budget
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis
from taciturn.mechanisms.extent import Extent, ideal_mu
from taciturn.mechanisms.grid import FeatureGrid
from taciturn.mechanisms.query import BoundedQuery, Released
from taciturn.model import assumptions
from taciturn.model.assumptions import WIDTH
from taciturn.model.factor_model import FactorModel
from taciturn.queries.residuals import (
    ClippedSums,
    Residuals,
    ResidualTotal,
    clipped_query,
    total_query,
)
from taciturn.queries.values import ValueView
from taciturn.queries.weighted_sums import grid_sums
from taciturn.solvers.als.fold_in import UserPrior
from taciturn.solvers.als.inference import begin_factors, infer, next_features
from taciturn.solvers.als.layout import Layout
from taciturn.solvers.als.output import profiles, residual_variance, user_prior
from taciturn.solvers.als.posterior import products
from taciturn.solvers.als.value_state import Rows, Used, ValueState
from taciturn.solvers.clipping import ClipRule, attenuation
from taciturn.solvers.contract import (
    WHOLE,
    Algorithm,
    PostProcess,
    PublicFacts,
    QueryStep,
    Seeds,
    Step,
)
from taciturn.solvers.descent import shrunk
from taciturn.solvers.entry import PATTERN_FEATURES, SUM_OF_RATINGS

ROUNDS = 8
"""Default number of rounds."""

_ALTERNATIONS = 3
"""Number of rounds of inference after the last release; they cost no privacy."""

_MEAN_SHARE, _BIAS_SHARE, _TOTAL_SHARE = 0.005, 0.08, 0.0005
"""Budget shares of the mean and of the biases, which are queried first, and of each total."""

_NARROWEST = 0.05
"""Minimum standard deviation of residuals."""

_DRIFT = 0.5
"""Standard deviation of the change of the residual variance between two totals, relative to it."""

_OFFSET = 0.1
"""Standard deviation of the offset that clipping adds to residuals."""

_ENDS = np.iinfo(np.int32)


class Total(StrEnum):
    """Total over all ratings; first of the ratings themselves, from the middle of the scale."""

    RATINGS = "ratings"
    SQUARES = "squares of residuals"
    ALL = "residuals"
    CLIPPED = "clipped residuals"

    @property
    def power(self) -> int:
        """Power of the residuals that are summed."""
        return 2 if self is Total.SQUARES else 1


class Work(StrEnum):
    """Step that releases nothing."""

    BEGIN_FACTORS = "begin factors"
    ALTERNATE = "infer both axes"


@dataclass(frozen=True)
class Move:
    """One step: its round, its release or work, and its budget share."""

    round: int
    what: Axis | Total | Work
    share: float = 0.0


class ValueAlgorithm(Algorithm[ValueState]):
    """Algorithm under unit `value`.

    Parameters
    ----------
    facts
        Public facts of the ratings, including the rating pattern.
    budget
        Budget of all releases.
    layout
        Layout of the coefficients.
    rounds
        Number of rounds after the round of biases.
    has_variances
        Whether the model includes posterior variances.
    threads
        Number of threads; the result does not depend on it.
    """

    unit = Unit.VALUE

    def __init__(
        self,
        facts: PublicFacts,
        budget: Budget,
        layout: Layout,
        *,
        rounds: int,
        has_variances: bool = False,
        threads: int | None = None,
    ) -> None:
        self.budget, self._facts, self._layout = budget, facts, layout
        self._rounds, self._has_variances, self._threads = rounds, has_variances, threads
        if layout.has_pattern_features:
            self.published_patterns = (PATTERN_FEATURES,)
        self._feature_grid = FeatureGrid()
        middle = (facts.scale.low + facts.scale.high) / 2
        self._views = {axis: ValueView(grid=layout.grid, axis=axis, offset=middle) for axis in Axis}
        self._moves = self._planned_moves()
        self.schedule = self._planned_steps()
        queries = [
            query for step in self.schedule if isinstance(step, QueryStep) for query in step.queries
        ]
        self._mu = ideal_mu(budget, Extent.of(queries))
        self._clip = ClipRule.for_mu(self._mu)

    # The schedule.

    def _planned_moves(self) -> tuple[Move, ...]:
        bias_share = _BIAS_SHARE / 2
        totals: list[tuple[Axis | Total, float]] = [
            (total, _TOTAL_SHARE) for total in Total if total is not Total.RATINGS
        ]
        first: list[tuple[Axis | Total, float]] = [
            (Total.RATINGS, _MEAN_SHARE),
            (Axis.ITEMS, bias_share),
        ]
        moves = [
            Move(0, what, share) for what, share in (*first, *totals, (Axis.USERS, bias_share))
        ]
        left = WHOLE - _MEAN_SHARE - _BIAS_SHARE - (3 * (1 + self._rounds) + 1) * _TOTAL_SHARE
        share = left / (2 * self._rounds)
        for number in range(1, 1 + self._rounds):
            used, before = self._layout.used(number), self._layout.used(number - 1)
            if Used.FACTORS in used and Used.FACTORS not in before:
                moves.append(Move(number, Work.BEGIN_FACTORS))
            asked = (*totals, (Axis.ITEMS, share), (Axis.USERS, share))
            moves += [Move(number, what, each) for what, each in asked]
        moves.append(Move(self._rounds, Total.SQUARES, _TOTAL_SHARE))
        moves += [Move(self._rounds, Work.ALTERNATE)] * _ALTERNATIONS
        return tuple(moves)

    def _planned_steps(self) -> tuple[Step, ...]:
        """Steps of all moves before anything is released, when nothing is clipped."""
        return tuple(
            PostProcess(effort=_effort(move))
            if isinstance(move.what, Work)
            else QueryStep(
                queries=(self._planned_query(move),), shares=(move.share,), effort=_effort(move)
            )
            for move in self._moves
        )

    def _planned_query(self, move: Move) -> BoundedQuery:
        grid, what = self._layout.grid, move.what
        if isinstance(what, Axis):
            return clipped_query(
                self._purpose(move),
                self._layout.pattern(what),
                view=self._views[what],
                threshold=grid.range,
                feature_grid=self._feature_grid,
                width=self._layout.columns(what, self._layout.used(move.round)).size,
            )
        return total_query(
            self._purpose(move),
            grid=grid,
            threshold=grid.range,
            power=_total(move).power,
            count=self._layout.total,
        )

    def _purpose(self, move: Move) -> str:
        if move.what is Total.RATINGS:
            return SUM_OF_RATINGS
        when = f"round {move.round} of {self._rounds}" if move.round else "biases"
        of = f"residuals by {move.what.singular}" if isinstance(move.what, Axis) else move.what
        return f"{when}: {of}"

    # Steps.

    def initial_state(self, seeds: Seeds) -> ValueState:
        """State that is independent of the ratings."""
        return self._layout.initial_state(seeds)

    def query(self, step: int, state: ValueState) -> ClippedSums | ResidualTotal:
        """Sums of clipped residuals by item or by user, or a total over all ratings."""
        move, layout = self._moves[step], self._layout
        threshold = self._threshold(step, state)
        if not isinstance(move.what, Axis):
            total = _total(move)
            steps = self._steps(threshold if total is Total.CLIPPED else WIDTH)
            residuals = self._residuals(state, Axis.USERS, steps)
            return ResidualTotal(
                purpose=self._purpose(move), residuals=residuals, power=total.power
            )
        axis, used = move.what, layout.used(move.round)
        noise = min(2 * threshold, WIDTH) / (self._mu * math.sqrt(move.share))
        features = next_features(layout, state, axis, used, noise)
        return ClippedSums(
            purpose=self._purpose(move),
            axis=axis,
            residuals=self._residuals(state, axis, self._steps(threshold)),
            features=self._feature_grid.quantise(features),
            feature_grid=self._feature_grid,
        )

    def _residuals(self, state: ValueState, axis: Axis, threshold: int) -> Residuals:
        """Residuals along an axis, clipped to a threshold in grid steps."""
        layout, pattern = self._layout, self._layout.pattern(axis)
        predicted = products(
            pattern,
            layout.prediction_rows(state, axis),
            layout.prediction_rows(state, axis.other),
            self._threads,
        )
        np.clip(predicted, -WIDTH, WIDTH, out=predicted)
        predicted /= np.float32(layout.step)
        predictions = np.rint(predicted, out=predicted).astype(np.int32)
        return Residuals(self._views[axis], pattern, predictions, threshold)

    def _steps(self, threshold: float) -> int:
        """Threshold in grid steps, at most the range of the grid."""
        return min(self._layout.grid.range, max(1, round(threshold / self._layout.step)))

    def _threshold(self, step: int, state: ValueState) -> float:
        """Clipping threshold in model units, rounded to the grid.

        The full range before biases are known, and where clipping would not lower the
        sensitivity.
        """
        threshold = WIDTH
        if step > 1:
            threshold = self._clip.multiplier * math.sqrt(state.variance)
        steps = self._steps(threshold if threshold < WIDTH / 2 else WIDTH)
        return steps * self._layout.step

    def update(self, step: int, state: ValueState, released: Released) -> ValueState:
        """State after inference from the released table."""
        move, layout = self._moves[step], self._layout
        used = layout.used(move.round)
        if move.what is Work.BEGIN_FACTORS:
            return begin_factors(layout, state)
        if move.what is Work.ALTERNATE:
            for axis in (Axis.ITEMS, Axis.USERS):
                state = infer(layout, state, axis, used, self._threads)
            return state
        if not isinstance(move.what, Axis):
            return self._with_total(_total(move), state, released)
        state = self._with_sums(move.what, state, released)
        # In the first rounds twice: the second inference uses the prior learnt by the first.
        for _ in range(2 if move.round <= 1 else 1):
            state = infer(layout, state, move.what, used, self._threads)
        return state

    def _with_sums(self, axis: Axis, state: ValueState, released: Released) -> ValueState:
        """State with the noisy sums of residuals, converted to sums of ratings.

        On average, clipping multiplies a residual by the attenuation and adds an offset.
        """
        layout, spec = self._layout, released.spec
        slope, offset = 1.0, 0.0
        if spec.residuals.threshold < layout.grid.range:
            slope = attenuation(spec.residuals.threshold * layout.step, state.variance)
            offset = state.offset
        predictions = spec.residuals.predictions
        predicted, alone = (
            self._public_sums(axis, each, spec.features)
            for each in (predictions, np.ones_like(predictions))
        )
        (table,), (noise,) = released.tables, released.noise_scales
        sums = (table / layout.unit - offset * alone) / slope + predicted * layout.step
        features = (spec.features / self._feature_grid.bound).astype(np.float32)
        variances = np.full(spec.features.shape[1], (noise / layout.unit / slope) ** 2)
        return state.with_axis(axis, state.along(axis).with_sums(features, sums, variances))

    def _public_sums(self, axis: Axis, values: np.ndarray, features: np.ndarray) -> Rows:
        """Σ value × feature of public values over the ratings of each row."""
        ends = int(_ENDS.min), int(_ENDS.max)
        sums = grid_sums(self._layout.pattern(axis), values, ends, features, self._threads)
        return sums / self._feature_grid.bound

    def _with_total(self, total: Total, state: ValueState, released: Released) -> ValueState:
        """State with the released total: variance, mean or clipping offset of residuals."""
        layout = self._layout
        divisor = layout.unit**total.power * layout.total
        mean, noise = float(released.tables[0][0, 0]) / divisor, released.noise_scales[0] / divisor
        if total is Total.RATINGS:
            limit = WIDTH / 2
            return replace(
                state, mean=float(np.clip(shrunk(mean, noise, assumptions.MEAN), -limit, limit))
            )
        if total is Total.SQUARES:
            change = shrunk(mean - state.variance, noise, _DRIFT * state.variance)
            variance = float(np.clip(state.variance + change, _NARROWEST**2, WIDTH**2))
            return replace(state, variance=variance)
        if total is Total.ALL:
            return replace(state, shift=float(np.clip(mean, -WIDTH, WIDTH)), shift_noise=noise)
        steps = released.spec.residuals.threshold
        threshold, slope = steps * layout.step, 1.0
        if steps < layout.grid.range:
            slope = attenuation(threshold, state.variance)
        offset = shrunk(
            float(np.clip(mean, -threshold, threshold)) - slope * state.shift,
            math.hypot(noise, slope * state.shift_noise),
            _OFFSET,
        )
        return replace(state, offset=offset)

    def model(self, state: ValueState) -> FactorModel:
        """Released model, in rating units."""
        layout, variances = self._layout, self._has_variances
        scale = self._facts.scale
        middle = (scale.low + scale.high) / 2
        ids = {Axis.USERS: self._facts.user_ids, Axis.ITEMS: self._facts.item_ids}
        users, items = (
            profiles(layout, state, axis, ids[axis], has_variances=variances)
            for axis in (Axis.USERS, Axis.ITEMS)
        )
        return FactorModel(
            scale=scale,
            mean=float(middle + state.mean * layout.unit),
            users=users,
            items=items,
            residual_variance=residual_variance(layout, state) if variances else None,
        )

    def user_prior(self, state: ValueState) -> UserPrior:
        """Prior of a user's profile, for folding in."""
        return user_prior(self._layout, state, self._facts.user_ids)


def _total(move: Move) -> Total:
    if not isinstance(move.what, Total):
        raise TypeError("only a total has a power")
    return move.what


def _effort(move: Move) -> float:
    """Relative duration of a step; inference from the sums of t rounds takes time t²."""
    if move.what is Work.ALTERNATE:
        return 1.0 + move.round**2
    return (1.0 + move.round**2) / 2 if isinstance(move.what, Axis) else 0.1
