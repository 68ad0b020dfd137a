"""Profiles and variances that `als` publishes under unit `value`, in rating units."""

from collections.abc import Collection

import numpy as np
import polars as pl

from taciturn.data.pattern import Axis
from taciturn.model.profiles import Profiles
from taciturn.solvers.als.fold_in import UserPrior
from taciturn.solvers.als.layout import Layout
from taciturn.solvers.als.value_state import Rows, ValueState

_LEAST = 0.2
"""Minimum observation-noise variance, as a fraction of residual variance."""


def profiles(
    layout: Layout, state: ValueState, axis: Axis, ids: pl.Series, *, has_variances: bool
) -> Profiles:
    """Profiles of an axis, optionally with variances; pattern features have none."""
    own, other = (_factors(layout, state, each) for each in (axis, axis.other))
    columns = column_scales(own, other, layout.unit)
    found = {"biases": state.along(axis).rows[:, 0] * layout.unit, "factors": own * columns}
    if has_variances:
        bias, factors, coefficients = layout.parts(state.along(axis).variances)
        nothing = np.zeros_like(layout.pattern_features[axis])
        found["bias_variances"] = bias[:, 0] * layout.unit**2
        found["variances"] = layout.joined(axis, factors, coefficients, nothing) * columns**2
    return Profiles(ids=ids, **{name: rows.astype(np.float32) for name, rows in found.items()})


def column_scales(own: Rows, other: Rows, unit: float) -> Rows:
    """Multipliers of an axis's columns, which turn predictions into rating units.

    Columns of both axes get the same size, so that more important ones are larger.
    """
    sizes = [np.sqrt(np.mean(rows**2, axis=0)) + 1e-9 for rows in (own, other)]
    scales: Rows = np.sqrt(sizes[1] / sizes[0] * unit)
    return scales


def _factors(layout: Layout, state: ValueState, axis: Axis) -> Rows:
    """Factors, pattern features and their coefficients, ordered to match the other axis."""
    _, factors, coefficients = layout.parts(state.along(axis).rows)
    return layout.joined(axis, factors, coefficients, layout.pattern_features[axis])


def residual_variance(
    layout: Layout, state: ValueState, uncertain: Collection[Axis] = tuple(Axis)
) -> float:
    """Variance of a rating about its prediction by exact rows of these axes, in rating units.

    Training residuals also contain the variance of predictions. They are too small by twice the
    part of a prediction that comes from the rating's own error: the effective degrees of freedom
    divided by the number of ratings.
    """
    variances = {
        axis: layout.pattern(axis).counts @ state.along(axis).variances / layout.total
        for axis in Axis
    }
    of_rows = sum(variances[axis] @ layout.moments(state, axis.other) for axis in uncertain)
    factors = slice(1, 1 + layout.factors)
    of_rows += variances[Axis.ITEMS][factors] @ variances[Axis.USERS][factors]
    own = 2 * sum(state.along(axis).degrees for axis in Axis) / layout.total
    variance = (state.variance - of_rows) / max(1 - own, _LEAST)
    return max(float(variance), _LEAST * state.variance) * layout.unit**2


def user_prior(layout: Layout, state: ValueState, ids: pl.Series) -> UserPrior:
    """Prior of a user's profile: mean and second moments of the posterior over rated users.

    A user's pattern features are coefficients like the others: whoever folds in need not know them.
    """
    users = profiles(layout, state, Axis.USERS, ids, has_variances=True)
    rows, variances = (
        np.column_stack([np.asarray(biases), np.asarray(factors)]).astype(np.float64)
        for biases, factors in (
            (users.biases, users.factors),
            (users.bias_variances, users.variances),
        )
    )
    return UserPrior.of_rows(
        rows,
        (layout.pattern(Axis.USERS).counts > 0).astype(np.float64),
        variances=variances,
        # Items stay uncertain when a user's own row is solved exactly.
        residual_variance=residual_variance(layout, state, [Axis.USERS]),
    )
