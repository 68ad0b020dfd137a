"""Noise-aware alternating least squares that forgets no measurement: the lead algorithm.

A rating is modelled as v_ij = m + b_i + c_j + ⟨x_i, θ_j⟩ + ⟨g_i, f_j⟩ + ⟨h_i, d_j⟩ + error, where
f_j and h_i are features of who rated what, public under unit `value`. A round measures, for each
item and then for each user, Σ residual × features of those rated. Residuals are cut at their usual
size and features have length 1, so that every rating tells all that its sensitivity allows. From
all measurements so far follow, by inference that knows the noise, the coefficients of every row and
how sure they are (`als_model`). docs/proofs/als.md says why this is private.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from taciturn._internal import parallel, validate
from taciturn.accounting.budget import Budget
from taciturn.accounting.events import Event, PatternRelease
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.gate import Gate
from taciturn.mechanisms.query import BoundedQuery, Measurement
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Profiles
from taciturn.solvers.als.hidden import fit_hidden, plan_hidden
from taciturn.solvers.als.value import Model, Side, Total, Used
from taciturn.solvers.catalog import PATTERN_FEATURES
from taciturn.solvers.contract import (
    PLAIN,
    Fit,
    Seeds,
    Session,
    check_ratings,
    needed_budget,
    settings,
)
from taciturn.solvers.run import Asked, Run, State, planned

FACTORS_MAX = 128

ITERATIONS_MAX = {Unit.VALUE: 64, Unit.RATING: 1024, Unit.USER: 1024}
"""Most rounds: under `value` each is far dearer."""

_ROUNDS = 8
"""The usual number of rounds under `value`."""

_ALTERNATIONS = 3
"""Rounds of inference after the last measurement; they cost no privacy."""

_BIAS_SHARE, _TOTAL_SHARE = 0.08, 0.0005
"""Shares of μ²: of the biases, measured first, and of each total."""

_LIMIT, _SLOPE = 0.8, 0.15
"""Where residuals are cut, in deviations: _LIMIT + _SLOPE · μ. Their noise then shrinks by more
than what they tell; the larger μ, the less noise matters, and the further out that is."""

RANGE_MAX = 1e6
"""Widest scale whose variances a release can hold."""


@dataclass(frozen=True, kw_only=True)
class AlsSolver:
    """The lead algorithm under every unit. Status `proven`.

    Under `value`, alternating least squares on noisy measurements. Under `rating` and `user`, which
    hide who rated what, the same model is fitted by descent (`als_rating`, `als_user`).

    Parameters
    ----------
    unit
        What is hidden: `value`, `rating` or `user`.
    factors
        Factors that are learnt from ratings; chosen when omitted, from the numbers of users, items
        and ratings, or from what was released of them. Under `value` profiles are longer: features
        of the mask come beside them.
    iterations
        Rounds of measurement; the budget is divided among them. 8 under `value` when omitted, and
        some dozens under other units.
    mask_features
        Whether to use features of who rated what, which profiles then publish; only under `value`,
        and there when omitted.
    uncertainty
        Whether to keep how sure every coefficient is, for predictive deviations; only under
        `value`.
    """

    name: ClassVar[str] = "als"
    is_private: ClassVar[bool] = True

    unit: Unit = Unit.VALUE
    factors: int | None = None
    iterations: int | None = None
    mask_features: bool | None = None
    uncertainty: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", validate.choice("unit", self.unit, Unit))
        rounds = ITERATIONS_MAX[self.unit]
        for name, most in (("factors", FACTORS_MAX), ("iterations", rounds)):
            value = getattr(self, name)
            if value is None:
                continue
            if validate.positive_integer(name, value, "the default suits most") > most:
                raise InvalidParameter(f"{name} must be at most {most}, got {value:,}")
        if self.mask_features is not None and not isinstance(self.mask_features, bool):
            raise InvalidParameter("mask_features must be true or false")
        if not isinstance(self.uncertainty, bool):
            raise InvalidParameter("uncertainty must be true or false")
        if self.unit is not Unit.VALUE and self.mask_features:
            raise InvalidParameter(
                f"unit {self.unit} hides who rated what: there are no mask features to publish"
            )
        if self.unit is not Unit.VALUE and self.uncertainty:
            raise InvalidParameter("uncertainty is known under unit value only so far")

    @parallel.without_blas_threads
    def fit(self, ratings: Ratings, budget: Budget | None = None, session: Session = PLAIN) -> Fit:
        """Train within a budget. Reads private data; see `Fit` for what may be released."""
        check_ratings(ratings, self.unit)
        if self.unit is not Unit.VALUE:
            return fit_hidden(self, self.unit, ratings, budget, session, **self._descent)
        budget = needed_budget(self, budget)
        run = Run(session)
        if self.uncertainty and ratings.scale.range > RANGE_MAX:
            raise InvalidParameter(f"uncertainty needs a scale no wider than {RANGE_MAX:,.0f}")
        model = self._model(ratings, session.seeds, session.threads)
        gate = run.gate(Unit.VALUE, budget, self._asked(model))
        door = _Door(gate, {side: model.values(ratings, side) for side in Side})

        def step(number: int, state: State) -> State:
            after = dict(state)
            if number <= self._rounds:
                self._step(model, number, after, door)
            else:
                for side in (Side.ITEMS, Side.USERS):
                    model.infer(after, side, _used(model, self._rounds))
            return after

        state = run.steps(1 + self._rounds + _ALTERNATIONS, model.begin, step)
        if model.has_mask:
            gate.publish_pattern(PATTERN_FEATURES)
        ledger = run.finish()
        ids = {Side.USERS: ratings.user_ids, Side.ITEMS: ratings.item_ids}
        users, items = (
            Profiles(ids=ids[side], **model.profiles(state, side, variances=self.uncertainty))
            for side in (Side.USERS, Side.ITEMS)
        )
        return Fit(
            solver=self.name,
            settings=settings(self),
            model=FactorModel(
                scale=ratings.scale,
                mean=model.mean(state),
                users=users,
                items=items,
                residual_variance=model.residual_variance(state) if self.uncertainty else None,
            ),
            ledger=ledger,
        )

    def plan(self, ratings: Ratings, budget: Budget | None = None) -> list[Event]:
        """Return the events that `fit` would book. Reads public facts only.

        The ratios of sensitivity and noise are those of `fit`. The scale of both is that of the
        residuals, which is not known before something is released; here nothing is cut.
        """
        if self.unit is not Unit.VALUE:
            return plan_hidden(self, self.unit, ratings, budget, **self._descent)
        model = self._model(ratings, Seeds())
        budget = needed_budget(self, budget)
        events: list[Event] = [*planned(Unit.VALUE, budget, self._asked(model))]
        if model.has_mask:
            events.append(PatternRelease(purpose=PATTERN_FEATURES, unit=Unit.VALUE))
        return events

    def _asked(self, model: Model) -> Asked:
        """All queries, as they are before anything is released, with their shares of μ²."""
        asked: list[tuple[BoundedQuery, float]] = []
        kinds: dict[Used, dict[Side | Total, BoundedQuery]] = {}
        for number in range(1 + self._rounds):
            used = _used(model, number)
            if used not in kinds:
                kinds[used] = model.queries("", used)
            for what, share in self._shares(number):
                query = kinds[used][what]
                purpose = self._purpose(number) + query.purpose
                asked.append((replace(query, purpose=purpose), share))
        return asked

    @property
    def _rounds(self) -> int:
        return self.iterations or _ROUNDS

    @property
    def _descent(self) -> dict[str, int | None]:
        return {"factors": self.factors, "iterations": self.iterations}

    @property
    def efforts(self) -> list[float] | None:
        """About how long the steps take, relative to each other: a stack of t rounds takes t².

        None if all take about as long.
        """
        if self.unit is not Unit.VALUE:
            return None
        stacked = [*range(1 + self._rounds), *[self._rounds] * _ALTERNATIONS]
        return [1.0 + rounds**2 for rounds in stacked]

    def _model(self, ratings: Ratings, seeds: Seeds, threads: int | None = None) -> Model:
        return Model(
            ratings,
            factors=self.factors,
            has_mask_features=self.mask_features is not False,
            seeds=seeds,
            threads=threads,
        )

    def _purpose(self, number: int) -> str:
        return f"round {number} of {self._rounds}" if number else "biases"

    def _shares(self, number: int) -> list[tuple[Side | Total, float]]:
        """Return what a step releases, in order, and for which share of μ²."""
        totals = [(total, _TOTAL_SHARE) for total in Total]
        if number == 0:
            share = _BIAS_SHARE / 2
            return [(Side.ITEMS, share), *totals, (Side.USERS, share)]
        last = [(Total.SQUARES, _TOTAL_SHARE)] if number == self._rounds else []
        # A little less than all, so that the sum does not round to more than 1.
        left = 1 - 2.0**-40 - _BIAS_SHARE - (3 * (1 + self._rounds) + 1) * _TOTAL_SHARE
        share = left / (2 * self._rounds)
        return [*totals, (Side.ITEMS, share), (Side.USERS, share), *last]

    def _step(self, model: Model, number: int, state: State, door: "_Door") -> None:
        """Make the releases of a step, and infer what follows from each."""
        used, purpose = _used(model, number), self._purpose(number)
        if Used.FACTORS in used and Used.FACTORS not in _used(model, number - 1):
            model.start_factors(state)
        for what, share in self._shares(number):
            # Before anything is known of a rating, nothing is cut.
            is_new = number == 0 and what is Side.ITEMS
            limit = model.limit(state, math.inf if is_new else _LIMIT + _SLOPE * door.ratio(1))
            if isinstance(what, Total):
                total = model.ask_total(state, what, limit, purpose)
                released, _ = door.release(total, Side.USERS, share)
                model.learn_total(state, what, limit, released)
                continue
            noise = model.reach(limit) / door.ratio(share)
            features = model.features(state, what, used, noise)
            asked = model.ask(state, what, features, limit, purpose)
            model.learn(state, asked, *door.release(asked.measurement, what, share))
            if is_new:
                model.set_mean(state)
            model.infer(state, what, used)
            if number <= 1:
                model.infer(state, what, used)  # with the prior that the first time taught


def _used(model: Model, number: int) -> Used:
    """Return which coefficients a step measures: biases, then what the mask explains, then all."""
    if number == 0:
        return Used.BIASES
    return Used.BIASES | Used.MASK if number == 1 and model.has_mask else Used.ALL


class _Door:
    """Where measurements leave; holds the private values."""

    def __init__(self, gate: Gate, values: dict[Side, npt.NDArray[np.int32]]) -> None:
        self._gate, self._values = gate, values

    def ratio(self, share: float) -> float:
        """Return sensitivity/noise of a release for a share of μ²."""
        return self._gate.mu * math.sqrt(share)

    def release(
        self, measurement: Measurement, side: Side, share: float
    ) -> tuple[npt.NDArray[np.float64], float]:
        """Release a measurement for a share of μ²: its noisy answer, and the scale of the noise."""
        released = self._gate.release(measurement, self._values[side], share=share)
        return released, self._gate.noise_scale(measurement.query, share)
