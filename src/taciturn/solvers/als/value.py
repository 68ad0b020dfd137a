"""The model of the solver `als`, and its inference from what was released.

Everything here is post-processing: a `Model` is built from who rated what, which is public under
unit `value`, and from then on sees released numbers only. Ratings pass it once, in `values`, on
their way to the gate. Numbers are in units in which the scale is 4 wide and its middle is 0.
"""

import math
from dataclasses import dataclass
from enum import Flag, StrEnum, auto
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import erf

from taciturn.accounting import events
from taciturn.data.ratings import Ratings
from taciturn.mechanisms.grid import FeatureGrid, ValueGrid
from taciturn.mechanisms.query import BoundedQuery
from taciturn.queries.residuals import ClippedSums, Residuals, ResidualTotal
from taciturn.solvers.als.pattern_features import mask_features
from taciturn.solvers.als.posterior import Design, Measured, Pattern, Prior, posterior
from taciturn.solvers.als.priors import learnt_covariance, regress, shares_of_length
from taciturn.solvers.contract import Seeds
from taciturn.solvers.run import State

Rows = npt.NDArray[np.float64]
Columns = npt.NDArray[np.int64]

_WIDTH = 4.0

_BIAS, _COEFFICIENT, _USER_FACTOR, _ITEM_FACTOR = 0.5, 0.1, 1.0, 0.25
"""Deviations assumed of coefficients before anything was measured."""

_COLUMNS, _REGRESSORS = 8, 40
"""Mask features with coefficients of their own, and those that priors regress on, at most."""

_NARROWEST = 0.05
"""Least deviation of a residual."""

_LEAST = 0.2
"""Least share of the spread of residuals that is a rating's own error."""

_CAUTION = 2.0
"""Inference counts a rating's error as so much larger: partners are not as sure as they are taken
to be, and residuals are cut. What is published about deviations does not."""

_SAMPLED = 4096
"""Rows that the weights of features are chosen for, at most."""


class Side(StrEnum):
    """What a row stands for."""

    ITEMS = "items"
    USERS = "users"

    @property
    def partner(self) -> "Side":
        """The other side."""
        return Side.USERS if self is Side.ITEMS else Side.ITEMS


class Total(StrEnum):
    """What is added up over all ratings."""

    SQUARES = "squares of residuals"
    ALL = "residuals"
    CUT = "residuals as they are cut"

    @property
    def power(self) -> int:
        """Whether residuals or their squares are added up."""
        return 2 if self is Total.SQUARES else 1


class Used(Flag):
    """Which coefficients there are."""

    BIASES = auto()
    FACTORS = auto()
    MASK = auto()
    ALL = BIASES | FACTORS | MASK


@dataclass(frozen=True, eq=False, kw_only=True)
class AskedSums:
    """A query for a side's sums, and what is needed to learn from its answer; public."""

    measurement: ClippedSums
    side: Side
    limit: float
    predictions: npt.NDArray[np.int32]
    features: npt.NDArray[np.int32]


class Model:
    """Public facts of a training, and how a state follows from what was released.

    The coefficients of a row are its bias, its factors, and one for each mask feature of its
    partners. A state has for each side: the coefficients' means, variances, prior covariance and
    the slopes of their prior means; how many coefficients ratings decided, not priors; and all
    measurements (features, sums, noise).
    """

    def __init__(
        self,
        ratings: Ratings,
        *,
        factors: int | None,
        has_mask_features: bool,
        seeds: Seeds,
        threads: int | None = None,
    ) -> None:
        users, items = ratings.shape
        self._seeds, self._threads, self._scale = seeds, threads, ratings.scale
        self._patterns = {
            side: Pattern(csr.starts, csr.columns)
            for side, csr in ((Side.ITEMS, ratings.by_item), (Side.USERS, ratings.by_user))
        }
        self._total = len(ratings)
        self._factors = factors or usual_factors(users, items, self._total)
        self._unit = ratings.scale.range / _WIDTH
        self.grid = ValueGrid.for_scale(-ratings.scale.range / 2, ratings.scale.range / 2)
        self._step = math.ldexp(1.0, self.grid.exponent) / self._unit
        self._features = FeatureGrid()
        both = {side: np.empty((len(self._patterns[side].counts), 0)) for side in Side}
        if has_mask_features:
            most = min(_REGRESSORS, max(_COLUMNS, min(users, items) // 50))
            both[Side.USERS], both[Side.ITEMS] = mask_features(ratings.by_item, users, most)
        self._masks = {side: mask[:, :_COLUMNS] for side, mask in both.items()}
        self._regressors = {
            side: np.column_stack([np.ones(len(mask)), mask]) for side, mask in both.items()
        }

    def values(self, ratings: Ratings, side: Side) -> npt.NDArray[np.int32]:
        """Return the ratings on the grid, in the order of a side. Reads private data."""
        csr = ratings.by_item if side is Side.ITEMS else ratings.by_user
        middle = (self._scale.low + self._scale.high) / 2
        return self.grid.quantise(self._scale.decode(csr.codes) - middle)

    # What is known before anything is released.

    def begin(self) -> State:
        """Return the state before the first measurement."""
        state: State = {
            "mean": np.zeros(1),
            "spread": np.array([_WIDTH**2 / 12]),
            "shift": np.zeros(1),
            "offset": np.zeros(1),
        }
        for side, factor in ((Side.ITEMS, _ITEM_FACTOR), (Side.USERS, _USER_FACTOR)):
            rows, partners = len(self._masks[side]), len(self._masks[side.partner])
            width = self._masks[side.partner].shape[1]
            deviations = np.array([_BIAS] + [factor] * self._factors + [_COEFFICIENT] * width)
            state |= {
                f"{side}": np.zeros((rows, deviations.size)),
                f"{side}_variances": np.tile(deviations**2, (rows, 1)),
                f"{side}_prior": np.diag(deviations**2),
                f"{side}_slopes": np.zeros((self._regressors[side].shape[1], deviations.size)),
                f"{side}_features": np.zeros((partners, 0), dtype=np.float32),
                f"{side}_sums": np.zeros((rows, 0)),
                f"{side}_noise": np.zeros(0),
                f"{side}_decided": np.zeros(1),
            }
        return state

    @property
    def has_mask(self) -> bool:
        """Whether features of the mask have coefficients."""
        return any(mask.shape[1] for mask in self._masks.values())

    def columns(self, side: Side, used: "Used") -> Columns:
        """Return which of a side's coefficients are used."""
        kinds = [Used.BIASES] + [Used.FACTORS] * self._factors
        kinds += [Used.MASK] * self._masks[side.partner].shape[1]
        return np.flatnonzero([kind in used for kind in kinds])

    # Measurements.

    def ask(
        self, state: State, side: Side, features: Rows, limit: float, purpose: str
    ) -> "AskedSums":
        """Query for a side's residuals, clipped at ±limit, against features of its partners."""
        predictions, quantised = self._predictions(state, side), self._features.quantise(features)
        residuals = Residuals(self.grid, predictions, self._steps(limit))
        return AskedSums(
            measurement=self._sums(side, quantised, residuals, purpose),
            side=side,
            limit=limit,
            predictions=predictions,
            features=quantised,
        )

    def learn(self, state: State, asked: "AskedSums", released: Rows, noise: float) -> None:
        """Keep released sums of residuals as sums of the ratings themselves.

        Clipping takes a residual to `kept` times itself and an offset, on average.
        """
        side, limit = asked.side, asked.limit
        predictions, quantised = asked.predictions, asked.features
        kept, offset = self._kept(state, limit), 0.0 if self._is_all(limit) else state["offset"][0]
        values = (predictions, np.ones_like(predictions))
        predicted, alone = (
            self._patterns[side].sums(each, quantised, self._threads) / self._features.bound
            for each in values
        )
        sums = (released / self._unit - offset * alone) / kept + predicted * self._step
        for name, more in (
            ("features", (quantised / self._features.bound).astype(np.float32)),
            ("sums", sums),
            ("noise", np.full(quantised.shape[1], (noise / self._unit / kept) ** 2)),
        ):
            state[f"{side}_{name}"] = np.concatenate([state[f"{side}_{name}"], more], axis=-1)

    def ask_total(self, state: State, total: Total, limit: float, purpose: str) -> ResidualTotal:
        """Query for a total over all ratings, in the order of users."""
        residuals = Residuals(
            self.grid,
            self._predictions(state, Side.USERS),
            self._steps(limit if total is Total.CUT else _WIDTH),
        )
        return _total(residuals, total, purpose)

    def learn_total(self, state: State, total: Total, limit: float, released: Rows) -> None:
        """Keep the size of residuals, their mean, or what clipping makes of it."""
        mean = float(released[0, 0]) / self._unit**total.power / self._total
        if total is Total.SQUARES:
            state["spread"] = np.clip([mean], _NARROWEST**2, _WIDTH**2)
        elif total is Total.ALL:
            state["shift"] = np.clip([mean], -_WIDTH, _WIDTH)
        else:
            state["offset"] = np.clip([mean], -limit, limit)
            state["offset"] -= self._kept(state, limit) * state["shift"]

    def _kept(self, state: State, limit: float) -> float:
        """Return what is left of a normal residual that is cut, on average."""
        if self._is_all(limit):
            return 1.0
        return float(erf(limit / math.sqrt(2 * state["spread"][0])))

    def _is_all(self, limit: float) -> bool:
        """Whether nothing is cut."""
        return self._steps(limit) == self.grid.range

    def queries(self, purpose: str, used: "Used") -> dict[Side | Total, BoundedQuery]:
        """Return what is public about measurements of sides and of totals, before any."""
        found: dict[Side | Total, BoundedQuery] = {}
        nothing = np.zeros(self._total, dtype=np.int32)
        residuals = Residuals(self.grid, nothing, self._steps(_WIDTH))
        for side in Side:
            shape = len(self._masks[side.partner]), self.columns(side, used).size
            blank = np.zeros(shape, dtype=np.int32)
            found[side] = self._sums(side, blank, residuals, purpose).query
        return found | {total: _total(residuals, total, purpose).query for total in Total}

    def _sums(
        self, side: Side, features: npt.NDArray[np.int32], residuals: Residuals, purpose: str
    ) -> ClippedSums:
        return ClippedSums(
            purpose=f"{purpose}: residuals by {side.removesuffix('s')}",
            rows=events.Rows(side),
            starts=self._patterns[side].starts,
            columns=self._patterns[side].columns,
            features=features,
            feature_grid=self._features,
            residuals=residuals,
        )

    def _steps(self, limit: float) -> int:
        """Return a limit in steps of the grid, at most its range."""
        return min(self.grid.range, max(1, round(limit / self._step)))

    def limit(self, state: State, times: float) -> float:
        """Return so many usual residuals, in whole steps; or the scale, if that costs no more."""
        limit = times * math.sqrt(state["spread"][0])
        return self._steps(limit if limit < _WIDTH / 2 else _WIDTH) * self._step

    def reach(self, limit: float) -> float:
        """Return how far one rating moves its residual that is cut at a limit, at most."""
        return min(2 * limit, _WIDTH)

    def _predictions(self, state: State, side: Side) -> npt.NDArray[np.int32]:
        """Return what is predicted for each pair, in the order of a side, in steps."""
        predicted = self._patterns[side].products(
            self._row(state, side), self._row(state, side.partner), self._threads
        )
        np.clip(predicted, -_WIDTH, _WIDTH, out=predicted)
        predicted /= np.float32(self._step)
        return np.rint(predicted, out=predicted).astype(np.int32)

    def _row(self, state: State, side: Side) -> Rows:
        """Return rows whose products with the other side's are predictions."""
        bias, factors, coefficients = self._parts(state[side])
        one, mask = np.ones((len(bias), 1)), self._masks[side]
        both = [one, bias + state["mean"]] if side is Side.USERS else [bias, one]
        return np.column_stack([*both, self._joined(side, factors, coefficients, mask)])

    def _parts(self, rows: Rows) -> tuple[Rows, Rows, Rows]:
        """Return biases, factors and coefficients of mask features; views."""
        return rows[:, :1], rows[:, 1 : 1 + self._factors], rows[:, 1 + self._factors :]

    # Inference.

    def set_mean(self, state: State) -> None:
        """Take the mean of all ratings from the first measurement, that of items' sums."""
        mean = state["items_sums"][:, 0].sum() / self._total
        state["mean"] = np.clip([mean], -_WIDTH / 2, _WIDTH / 2)

    def infer(self, state: State, side: Side, used: Used) -> None:
        """Find a side's coefficients from all its measurements, and learn their prior.

        Partners count as known but for the variance that they add to every rating's error.
        """
        columns, partner = self.columns(side, used), side.partner
        pattern = self._patterns[side]
        bias, _, coefficients = self._parts(state[partner])
        moments = self._moments(state, side)
        prior = state[f"{side}_prior"][np.ix_(columns, columns)]
        regressors, slopes = self._regressors[side], state[f"{side}_slopes"].copy()
        found = posterior(
            pattern,
            Measured(
                features=state[f"{side}_features"].astype(np.float32, copy=False),
                sums=state[f"{side}_sums"],
                noise=state[f"{side}_noise"],
            ),
            Design(
                unknown=self._design(state, partner)[:, columns],
                known=np.column_stack([bias + state["mean"], coefficients]),
                shifts=np.column_stack([np.ones(len(state[side])), self._masks[side]]),
                errors=_CAUTION * state["spread"] + state[f"{partner}_variances"] @ moments,
            ),
            Prior(means=regressors @ slopes[:, columns], covariance=prior),
            self._threads,
        )
        means, variances = np.zeros_like(state[side]), state[f"{side}_variances"].copy()
        means[:, columns], variances[:, columns] = found.means, found.variances
        # Rows without ratings kept their prior, and tell nothing about it.
        is_rated = pattern.counts > 0
        covariance = found.total - np.count_nonzero(~is_rated) * prior
        slopes[:, columns] = regress(regressors[is_rated], found.means[is_rated])
        left = (found.means - regressors @ slopes[:, columns])[is_rated]
        learnt = state[f"{side}_prior"].copy()
        learnt[np.ix_(columns, columns)] = learnt_covariance(
            prior, left.T @ left + covariance, found.variances[is_rated]
        )
        decided = left.shape[0] * columns.size - np.trace(np.linalg.solve(prior, covariance))
        state |= {
            f"{side}": means,
            f"{side}_variances": variances,
            f"{side}_prior": learnt,
            f"{side}_slopes": slopes,
            f"{side}_decided": np.array([decided]),
        }

    def _design(self, state: State, side: Side) -> Rows:
        """Return what a side's partners' coefficients are multiplied with."""
        bias, factors, _ = self._parts(state[side])
        return np.column_stack([np.ones(len(bias)), factors, self._masks[side]])

    def _moments(self, state: State, side: Side) -> Rows:
        """Return the mean square of each column of a side's design, over ratings."""
        counts = self._patterns[side].counts
        moments: Rows = counts @ self._design(state, side) ** 2 / self._total
        return moments

    # What to measure next.

    def features(self, state: State, side: Side, used: Used, noise: float) -> Rows:
        """Return features of a side's partners to measure it against, each row of length 1.

        Columns of the design are weighted so that the next measurement, of this noise, is expected
        to make predictions as much surer as it can.
        """
        columns = self.columns(side, used)
        design = self._design(state, side.partner)[:, columns]
        moments = np.maximum(self._moments(state, side.partner)[columns], 1e-9)
        counts, variances = self._patterns[side].counts, state[f"{side}_variances"][:, columns]
        some = slice(None, None, -(-counts.size // _SAMPLED))
        shares = shares_of_length(
            counts[some, None].astype(np.float64) * moments,
            variances[some],
            error=float(state["spread"][0]),
            noise=noise**2 * moments,
        )
        weighted = design * np.sqrt(shares / moments)
        weighted /= np.linalg.norm(weighted, axis=1, keepdims=True)
        return weighted

    def start_factors(self, state: State) -> None:
        """Begin factors with the leading directions of what mask features explain.

        Those that are left, all without mask features, begin at random.
        """
        _, of_users = self._seeds.starts()
        state["users"], state["items"] = state["users"].copy(), state["items"].copy()
        _, factors, _ = self._parts(state["users"])
        factors[:] = of_users.normal(size=factors.shape)
        if not self.has_mask:
            return
        # The table of ⟨g_i, f_j⟩ + ⟨h_i, d_j⟩ is a product of two thin ones; its singular vectors,
        # rows weighted by their ratings, follow from those of a small matrix.
        _, _, given_items = self._parts(state["items"])
        _, _, given_users = self._parts(state["users"])
        thin = {
            Side.ITEMS: np.column_stack([given_items, self._masks[Side.ITEMS]]),
            Side.USERS: np.column_stack([self._masks[Side.USERS], given_users]),
        }
        small: dict[Side, Rows] = {}
        for side, table in thin.items():
            weights = np.sqrt(self._patterns[side].counts / self._total)
            _, small[side] = np.linalg.qr(table * weights[:, None])
        left, values, right = np.linalg.svd(small[Side.ITEMS] @ small[Side.USERS].T)
        count = min(self._factors, int(np.count_nonzero(values > 1e-6 * values[0])))
        for side, vectors in ((Side.ITEMS, left * values), (Side.USERS, right.T)):
            _, factors, coefficients = self._parts(state[side])
            inverse = np.linalg.lstsq(small[side], vectors[:, :count], rcond=None)[0]
            factors[:, :count] = thin[side] @ inverse
            coefficients[:] = 0

    # What is released in the end.

    def mean(self, state: State) -> float:
        """Return the mean in the units of the ratings."""
        middle = (self._scale.low + self._scale.high) / 2
        return float(middle + state["mean"][0] * self._unit)

    def residual_variance(self, state: State) -> float:
        """Return the variance of a rating's own error, in the units of the ratings.

        Residuals of ratings that were trained on have it, and the variance of predictions, less
        twice what predictions owe to the rating's own error: its share is the number of
        coefficients that ratings, not priors, decide, over the number of ratings.
        """
        variances = {
            side: self._patterns[side].counts @ state[f"{side}_variances"] / self._total
            for side in Side
        }
        unsure = sum(variances[side] @ self._moments(state, side.partner) for side in Side)
        factors = slice(1, 1 + self._factors)
        unsure += variances[Side.ITEMS][factors] @ variances[Side.USERS][factors]
        spread = state["spread"][0]
        own = 2 * sum(state[f"{side}_decided"][0] for side in Side) / self._total
        variance = (spread - unsure) / max(1 - own, _LEAST)
        return float(max(variance, _LEAST * spread)) * self._unit**2

    def profiles(self, state: State, side: Side, *, variances: bool) -> dict[str, Any]:
        """Return biases and profiles, whose products are the rest of a prediction.

        With their variances if asked for; mask features have none.
        """
        # Both sides get columns of the same size, so that those that matter more are larger.
        own, other = (
            self._joined(each, *self._parts(state[each])[1:], self._masks[each])
            for each in (side, side.partner)
        )
        sizes = [np.sqrt(np.mean(rows**2, axis=0)) + 1e-9 for rows in (own, other)]
        columns = np.sqrt(sizes[1] / sizes[0] * self._unit)
        found = {"biases": state[side][:, 0] * self._unit, "factors": own * columns}
        if variances:
            bias, factors, coefficients = self._parts(state[f"{side}_variances"])
            nothing = np.zeros_like(self._masks[side])
            found["bias_variances"] = bias[:, 0] * self._unit**2
            found["variances"] = self._joined(side, factors, coefficients, nothing) * columns**2
        return {name: rows.astype(np.float32) for name, rows in found.items()}

    def _joined(self, side: Side, factors: Rows, coefficients: Rows, mask: Rows) -> Rows:
        """Return the parts of rows in the order in which both sides' go together."""
        parts = (mask, coefficients) if side is Side.USERS else (coefficients, mask)
        return np.column_stack([factors, *parts])


def _total(residuals: Residuals, total: Total, purpose: str) -> ResidualTotal:
    return ResidualTotal(purpose=f"{purpose}: {total}", residuals=residuals, power=total.power)


def usual_factors(users: int, items: int, ratings: int) -> int:
    """Return how many factors so many ratings support, about."""
    return min(16, max(2, round(0.8 * math.sqrt(ratings / (users + items)))))
