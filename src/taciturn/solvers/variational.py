"""Alternating least squares on exact ratings, with a learnt regularization.

The model is that of `als` under unit `value`, with the same features:
v_ij = m + b_i + c_j + ⟨x_i, θ_j⟩ + ⟨g_i, f_j⟩ + ⟨h_i, d_j⟩ + error, where f_j and h_i are features
of the rating pattern. The coefficients z of a row have a Gaussian prior, whose mean depends on
features of the rating pattern and on public item features. Prior, error variance and posterior
covariances are learnt by approximate variational inference: the uncertainty of the counterparts
enters as its mean over ratings.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from taciturn._internal.ridge import solve_rows
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis
from taciturn.mechanisms.grid import ValueGrid
from taciturn.mechanisms.query import Released
from taciturn.model import assumptions
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Profiles
from taciturn.queries.weighted_sums import EveryRating
from taciturn.solvers.als.layout import Layout
from taciturn.solvers.als.output import column_scales
from taciturn.solvers.als.posterior import products
from taciturn.solvers.als.priors import SMALLEST, regress
from taciturn.solvers.contract import Algorithm, ExactStep, PostProcess, PublicFacts, Seeds

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.float64]

_COEFFICIENT = 0.05
"""Initial prior standard deviation of the coefficients of pattern features."""

_SPARSE = 10.0
"""Number of ratings per row at which the initial prior expects half of the usual interactions."""

_PRIOR_ROWS = 2.0
"""Number of rows that the initial prior counts for."""

_NARROWEST = 0.05
"""Minimum standard deviation of errors, on a scale of width 4."""

_START_VARIANCE = 0.01
"""Variance of the initial random factors of users."""

_PINNED = 1e8
"""Regularization of the column of `solve_rows` that is not used."""

_NUMBERS = 2**24
"""Maximum number of entries of inverses that are in memory at a time."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AxisPosterior:
    """Posterior of the rows of one axis.

    Attributes
    ----------
    rows
        Posterior means of the coefficients: bias, factors, and one for each pattern feature of the
        counterparts.
    prior, slopes
        Prior covariance, and the slopes of prior means.
    covariance
        Mean over ratings of the posterior covariances.
    """

    rows: Rows
    prior: Rows
    slopes: Rows
    covariance: Rows


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class VariationalState:
    """Exact ratings minus their mean, in both orders, and what is inferred from them.

    In units in which the scale is 4 wide.
    """

    by_user: Floats
    by_item: Floats
    mean: float
    variance: float
    users: AxisPosterior
    items: AxisPosterior

    def along(self, axis: Axis) -> AxisPosterior:
        """Posterior of an axis."""
        return self.users if axis is Axis.USERS else self.items

    def values(self, axis: Axis) -> Floats:
        """Centred ratings in the order of an axis."""
        return self.by_user if axis is Axis.USERS else self.by_item

    def with_axis(self, axis: Axis, found: AxisPosterior) -> "VariationalState":
        """Copy with another posterior of an axis."""
        return replace(self, users=found) if axis is Axis.USERS else replace(self, items=found)


class VariationalAlgorithm(Algorithm[VariationalState]):
    """Reads every rating, then alternates between the axes. Not private.

    With the design a of a counterpart, the prior N(μ, P) of a row and the mean covariance C of the
    counterparts, a row with n ratings solves (Σ a aᵀ + n·C + σ² P⁻¹) (z − μ) = Σ a (v − v̂),
    where v̂ is the prediction from μ and everything else.

    Parameters
    ----------
    facts
        Public facts of the ratings, including the rating pattern.
    factors, iterations
        Number of factors, and number of times that both axes are solved.
    threads
        Number of threads; the result does not depend on it.
    """

    unit = Unit.VALUE
    budget = None

    def __init__(
        self,
        facts: PublicFacts,
        *,
        factors: int,
        iterations: int,
        threads: int | None = None,
    ) -> None:
        self._facts, self._threads = facts, threads
        self._layout = Layout(facts, factors, has_pattern_features=True)
        # Users have coefficients for public item features, as those who fold in.
        of_items = self._layout.pattern_features[Axis.ITEMS]
        self._layout.pattern_features[Axis.ITEMS] = np.column_stack([of_items, facts.item_features])
        grid = ValueGrid.for_scale(facts.scale.low, facts.scale.high)
        self._spec = EveryRating(purpose="every rating", pattern=facts.pattern.by_user, grid=grid)
        self.schedule = (ExactStep(), *[PostProcess()] * iterations)

    def query(self, step: int, state: VariationalState) -> EveryRating:
        """Query for every rating."""
        return self._spec

    def initial_state(self, seeds: Seeds) -> VariationalState:
        """Random factors of users, and the initial prior of `als`."""
        _, of_users = seeds.starts()
        users = self._initial(Axis.USERS)
        self._layout.parts(users.rows)[1][:] = of_users.normal(
            size=(len(users.rows), self._layout.factors)
        )
        covariance = _START_VARIANCE * np.eye(len(users.prior))
        nothing = np.zeros(0, dtype=np.float32)
        return VariationalState(
            by_user=nothing,
            by_item=nothing,
            mean=0.0,
            variance=assumptions.RATING**2,
            users=replace(users, covariance=covariance),
            items=self._initial(Axis.ITEMS),
        )

    def _initial(self, axis: Axis) -> AxisPosterior:
        """Posterior that equals the initial prior."""
        prior = self._first_prior(axis)
        return AxisPosterior(
            rows=np.zeros((len(self._layout.pattern(axis)), len(prior))),
            prior=prior,
            slopes=np.zeros((self._layout.regressors[axis].shape[1], len(prior))),
            covariance=prior,
        )

    def _first_prior(self, axis: Axis) -> Rows:
        """Prior covariance before anything is learnt.

        Interactions are expected to be smaller where rows have few ratings, and in later factors,
        so that many factors start like few.
        """
        layout = self._layout
        per_row = layout.total / sum(self._facts.shape)
        expected = per_row / (per_row + _SPARSE)
        decay = np.arange(1.0, 1 + layout.factors) ** -0.5
        factors = assumptions.INTERACTION_VARIANCE * expected * decay / decay.sum()
        coefficients = layout.pattern_features[axis.other].shape[1]
        variances = [assumptions.ALS_BIAS**2]
        variances += [1.0] * layout.factors if axis is Axis.USERS else factors.tolist()
        variances += [_COEFFICIENT**2 * expected] * coefficients
        return np.diag(variances)

    @cached_property
    def _item_order(self) -> npt.NDArray[np.int64]:
        """Permutation that sorts pairs by item; users of an item stay in order."""
        return np.argsort(self._facts.pattern.by_user.columns, kind="stable")

    def update(self, step: int, state: VariationalState, released: Released) -> VariationalState:
        """State with the ratings, or with both axes solved once, items first."""
        if step == 0:
            (table,) = released.tables
            values = table.reshape(-1).astype(np.float64)
            mean = float(values.mean())
            centred = ((values - mean) / self._layout.unit).astype(np.float32)
            return replace(
                state,
                by_user=centred,
                by_item=centred[self._item_order],
                mean=mean,
                variance=max(float(np.var(centred)), _NARROWEST**2),
            )
        for axis in (Axis.ITEMS, Axis.USERS):
            state = state.with_axis(axis, self._solved(axis, state))
        return replace(state, variance=self._variance(state))

    def _design(self, axis: Axis, state: VariationalState) -> Rows:
        """Design that multiplies the coefficients of an axis's counterparts."""
        _, factors, _ = self._layout.parts(state.along(axis).rows)
        return np.column_stack(
            [np.ones(len(factors)), factors, self._layout.pattern_features[axis]]
        )

    def _of_design(self, axis: Axis, state: VariationalState) -> Rows:
        """Mean covariance of an axis's design, of which only the factors are uncertain."""
        factors = slice(1, 1 + self._layout.factors)
        width = len(state.along(axis.other).prior)
        covariance = np.zeros((width, width))
        covariance[factors, factors] = state.along(axis).covariance[factors, factors]
        return covariance

    def _solved(self, axis: Axis, state: VariationalState) -> AxisPosterior:
        """Posterior of one axis given that of the other, and the prior learnt from it."""
        layout, own = self._layout, state.along(axis)
        pattern, regressors = layout.pattern(axis), layout.regressors[axis]
        design, means = self._design(axis.other, state), regressors @ own.slopes
        # In these coordinates the prior covariance is 1 and that of the design is diagonal.
        root = np.linalg.cholesky(own.prior)
        by_count, turned = np.linalg.eigh(root.T @ self._of_design(axis.other, state) @ root)
        root = root @ turned
        solution = self._rows(
            axis,
            self._unexplained(axis, state, design, means),
            design @ root,
            by_count=np.maximum(by_count, 0.0),
            fixed=np.full(len(by_count), state.variance),
        )
        rows = means + solution.rows @ root.T
        total, by_rating = (
            state.variance * root @ inverse @ root.T
            for inverse in (solution.by_row, solution.by_rating)
        )
        is_rated = pattern.counts > 0
        slopes = regress(regressors[is_rated], rows[is_rated])
        left = (rows - regressors @ slopes)[is_rated]
        learnt = left.T @ left + total + _PRIOR_ROWS * self._first_prior(axis)
        return AxisPosterior(
            rows=rows,
            prior=learnt / (len(left) + _PRIOR_ROWS) + SMALLEST * np.eye(len(learnt)),
            slopes=slopes,
            covariance=by_rating / layout.total,
        )

    def _unexplained(self, axis: Axis, state: VariationalState, design: Rows, rows: Rows) -> Floats:
        """Ratings less their predictions from these rows of an axis and the other axis."""
        layout = self._layout
        bias, _, coefficients = layout.parts(state.along(axis.other).rows)
        predicted = products(
            layout.pattern(axis),
            np.column_stack([np.ones(len(rows)), layout.pattern_features[axis], rows]),
            np.column_stack([bias, coefficients, design]),
            self._threads,
        )
        return state.values(axis) - predicted

    def _rows(
        self, axis: Axis, values: Floats, design: Rows, *, by_count: Rows, fixed: Rows
    ) -> "_Solution":
        """Solution of each row, in pieces, because inverses are large."""
        pattern, width = self._layout.pattern(axis), design.shape[1]
        # `solve_rows` has a column of ones, but here the ones are rotated: its solution is pinned.
        given = np.column_stack([np.zeros(len(design)), design])
        by_count, fixed = np.append(0.0, by_count), np.append(_PINNED, fixed)
        found = _Solution(
            rows=np.empty((len(pattern), width)),
            by_row=np.zeros((width, width)),
            by_rating=np.zeros((width, width)),
        )
        size = max(1, _NUMBERS // (width * (width + 1)))
        for begin in range(0, len(pattern), size):
            end = min(begin + size, len(pattern))
            inverse = np.empty((end - begin, width, width + 1), dtype=np.float32)
            rows = solve_rows(
                pattern.starts[begin : end + 1],
                pattern.columns,
                values,
                given,
                by_count=by_count,
                fixed=fixed,
                inverse=inverse,
                threads=self._threads,
            )
            found.rows[begin:end] = rows[:, 1:]
            counts = pattern.counts[begin:end].astype(np.float32)
            weights = np.stack([np.ones_like(counts), counts])
            sums = (weights @ inverse.reshape(len(inverse), -1)).reshape(2, width, width + 1)
            found.by_row[:] += sums[0, :, 1:]
            found.by_rating[:] += sums[1, :, 1:]
        return found

    def _variance(self, state: VariationalState) -> float:
        """Expected squared error of the ratings, given the posterior of both axes."""
        designs = {axis: self._design(axis, state) for axis in Axis}
        errors = self._unexplained(Axis.USERS, state, designs[Axis.ITEMS], state.users.rows)
        variance = float(np.mean(errors.astype(np.float64) ** 2))
        for axis in Axis:
            weighted = designs[axis.other] * self._layout.pattern(axis.other).counts[:, None]
            moments = weighted.T @ designs[axis.other] / self._layout.total
            variance += float(np.sum(state.along(axis).covariance * moments))
        factors = slice(1, 1 + self._layout.factors)
        both = [state.along(axis).covariance[factors, factors] for axis in Axis]
        return max(variance + float(np.sum(both[0] * both[1])), _NARROWEST**2)

    def model(self, state: VariationalState) -> FactorModel:
        """Exact model; it must not be released."""
        facts, unit = self._facts, self._layout.unit
        parts = {axis: self._layout.parts(state.along(axis).rows) for axis in Axis}
        factors = {
            axis: self._layout.joined(axis, *each[1:], self._layout.pattern_features[axis])
            for axis, each in parts.items()
        }
        users, items = (
            Profiles.from_rows(
                ids,
                np.column_stack(
                    [
                        parts[axis][0] * unit,
                        factors[axis] * column_scales(factors[axis], factors[axis.other], unit),
                    ]
                ),
            )
            for axis, ids in ((Axis.USERS, facts.user_ids), (Axis.ITEMS, facts.item_ids))
        )
        return FactorModel(scale=facts.scale, mean=state.mean, users=users, items=items)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Solution:
    """Solutions, and the sums of the inverses of their equations over rows and over ratings."""

    rows: Rows
    by_row: Rows
    by_rating: Rows
