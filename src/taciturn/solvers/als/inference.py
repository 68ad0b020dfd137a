"""Inference of `als` under unit `value`: post-processing of released numbers.

The coefficients of each row are inferred from all its noisy sums by exact Gaussian inference, and
their prior is learnt. The features of the next query minimise the expected posterior variance.
"""

from dataclasses import replace

import numpy as np

from taciturn.data.pattern import Axis
from taciturn.solvers.als.layout import Layout
from taciturn.solvers.als.posterior import Design, NoisySums, RowPrior, posterior
from taciturn.solvers.als.priors import learnt_covariance, regress, shares_of_length
from taciturn.solvers.als.value_state import Rows, Used, ValueState

_SAMPLED = 4096
"""Maximum number of rows sampled to optimise the feature weights."""

_FAINT = 0.02
"""Root mean square over ratings of a direction that explains little, in model units."""


def infer(
    layout: Layout, state: ValueState, axis: Axis, used: Used, threads: int | None = None
) -> ValueState:
    """Infer an axis's coefficients from all its noisy sums, and learn their prior.

    Counterparts are treated as known, except that their variance adds to the error of every rating.
    """
    columns, pattern = layout.columns(axis, used), layout.pattern(axis)
    own, others = state.along(axis), state.along(axis.other)
    bias, _, coefficients = layout.parts(others.rows)
    prior = own.prior[np.ix_(columns, columns)]
    regressors, slopes = layout.regressors[axis], own.slopes.copy()
    found = posterior(
        pattern,
        NoisySums(features=own.features, sums=own.sums, noise=own.noise),
        Design(
            unknown=layout.design(state, axis.other)[:, columns],
            known=np.column_stack([bias + state.mean, coefficients]),
            shifts=np.column_stack([np.ones(len(own.rows)), layout.pattern_features[axis]]),
            errors=layout.caution * state.variance + others.variances @ layout.moments(state, axis),
        ),
        RowPrior(means=regressors @ slopes[:, columns], covariance=prior),
        threads,
    )
    means, variances = np.zeros_like(own.rows), own.variances.copy()
    means[:, columns], variances[:, columns] = found.means, found.variances
    # Rows without ratings keep their prior and do not contribute to it.
    is_rated = pattern.counts > 0
    covariance = found.total - np.count_nonzero(~is_rated) * prior
    slopes[:, columns] = regress(regressors[is_rated], found.means[is_rated])
    left = (found.means - regressors @ slopes[:, columns])[is_rated]
    learnt = own.prior.copy()
    learnt[np.ix_(columns, columns)] = learnt_covariance(
        prior, left.T @ left + covariance, found.variances[is_rated]
    )
    degrees = left.shape[0] * columns.size - np.trace(np.linalg.solve(prior, covariance))
    inferred = replace(
        own,
        rows=means,
        variances=variances,
        prior=learnt,
        slopes=slopes,
        degrees=float(degrees),
    )
    return state.with_axis(axis, inferred)


def next_features(layout: Layout, state: ValueState, axis: Axis, used: Used, noise: float) -> Rows:
    """Features of an axis's counterparts for its next query, each row of norm 1.

    Columns of the design are weighted to minimise the expected posterior variance after a query
    with this noise.
    """
    columns = layout.columns(axis, used)
    design = layout.design(state, axis.other)[:, columns]
    moments = np.maximum(layout.moments(state, axis.other)[columns], 1e-9)
    counts, variances = layout.pattern(axis).counts, state.along(axis).variances[:, columns]
    some = slice(None, None, -(-counts.size // _SAMPLED))
    shares = shares_of_length(
        counts[some, None].astype(np.float64) * moments,
        variances[some],
        error=state.variance,
        noise=noise**2 * moments,
    )
    weighted: Rows = design * np.sqrt(shares / moments)
    weighted /= np.linalg.norm(weighted, axis=1, keepdims=True)
    return weighted


def begin_factors(layout: Layout, state: ValueState) -> ValueState:
    """Initialise factors with the leading directions of the part that pattern features explain.

    The remaining factors are random, and so are all without pattern features. The last of several
    is random too if its direction explains little: directions of the pattern alone would never find
    what the pattern says nothing about.
    """
    rows = {axis: state.along(axis).rows.copy() for axis in Axis}
    layout.parts(rows[Axis.USERS])[1][:] = state.start
    if layout.has_pattern_features:
        _move_into_factors(layout, rows)
    for axis in Axis:
        state = state.with_axis(axis, replace(state.along(axis), rows=rows[axis]))
    return state


def _move_into_factors(layout: Layout, rows: dict[Axis, Rows]) -> None:
    """Move the part that pattern features explain into factors, in place.

    The matrix ⟨g_i, f_j⟩ + ⟨h_i, d_j⟩ is a product of two thin matrices, so its singular vectors,
    with rows weighted by their ratings, follow from those of a small matrix.
    """
    features = layout.pattern_features
    given = {axis: layout.parts(rows[axis])[2] for axis in Axis}
    thin = {
        Axis.ITEMS: np.column_stack([given[Axis.ITEMS], features[Axis.ITEMS]]),
        Axis.USERS: np.column_stack([features[Axis.USERS], given[Axis.USERS]]),
    }
    small: dict[Axis, Rows] = {}
    for axis, table in thin.items():
        weights = np.sqrt(layout.pattern(axis).counts / layout.total)
        _, small[axis] = np.linalg.qr(table * weights[:, None])
    left, values, right = np.linalg.svd(small[Axis.ITEMS] @ small[Axis.USERS].T)
    count = min(layout.factors, int(np.count_nonzero(values > 1e-6 * values[0])))
    if 1 < count == layout.factors and values[count - 1] < _FAINT:
        count -= 1
    for axis, vectors in ((Axis.ITEMS, left * values), (Axis.USERS, right.T)):
        _, factors, coefficients = layout.parts(rows[axis])
        inverse = np.linalg.lstsq(small[axis], vectors[:, :count], rcond=None)[0]
        factors[:, :count] = thin[axis] @ inverse
        coefficients[:] = 0
