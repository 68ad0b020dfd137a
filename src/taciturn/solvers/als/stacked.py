"""Rows from all gradients of a descent together: each gradient is a linear measurement of them.

A gradient at rows X is G = n·C·(X − X*) plus noise, with numbers of ratings n, curvature C and the
rows X* that minimise the error. So n·C·X − G measures n·C·X* with the noise of one gradient, and
the average of such measurements has the noise of all gradients together. Rows are the posterior
means given this average. Their prior means are a regression on what is known of the rows, fitted to
the same average with the weights that its noise and the prior imply.

Everything here is computed from released numbers and public facts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taciturn.solvers.descent import DescentSteps, NormalEquations, Rows, Vector, count_traits

_TRAIT_ROWS = 10.0
"""Regularization of the slopes of log-counts, in rows that are known exactly."""

_LEVEL_ROWS = 10.0
"""Regularization of the constant of a regression, in rows that are known exactly."""

_FEATURE_ROWS = 5.0
"""Regularization of the slopes of public features, in rows that are known exactly."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RowPrior:
    """Regressors of the prior means of rows, and an offset to these means.

    Attributes
    ----------
    traits
        Regressors (rows × traits).
    added
        Regularization of each slope, in rows that are known exactly.
    offset
        Known part of the prior means. Default: zero.
    precision
        Prior precision of each row relative to the usual one. Default: one.
    """

    traits: Rows
    added: Vector
    offset: Rows | None = None
    precision: Vector | None = None

    @classmethod
    def by_count(cls, counts: Vector, features: Rows | None = None) -> "RowPrior":
        """Quadratic in log(count), and linear in public features."""
        traits, added = count_traits(counts), [_LEVEL_ROWS, _TRAIT_ROWS, _TRAIT_ROWS]
        if features is not None:
            traits = np.column_stack([traits, features])
            added += [_FEATURE_ROWS] * features.shape[1]
        return cls(traits=traits, added=np.array(added))


@dataclass(frozen=True, eq=False, kw_only=True)
class StackedGradients:
    """Weighted average of what gradients measure.

    Attributes
    ----------
    steps
        Number of gradients.
    sums
        Average of n·C·X − G (rows × columns). The bias is divided by its constant feature.
    curvature
        Average of C.
    noise
        Sum of the squared weights by column: variance of the average's noise, relative to that of
        one gradient.
    """

    steps: float
    sums: Rows
    curvature: Rows
    noise: Vector

    @classmethod
    def none(cls, count: int, width: int) -> "StackedGradients":
        """Average before the first gradient."""
        return cls(
            steps=0.0,
            sums=np.zeros((count, width)),
            curvature=np.zeros((width, width)),
            noise=np.ones(width),
        )

    def updated(
        self,
        rows: Rows,
        gradient: Rows,
        counts: Vector,
        curvature: Rows,
        *,
        constant: float,
        growth: Sequence[float],
    ) -> "StackedGradients":
        """Average after a further gradient at these rows.

        Weights of gradients increase as t^growth with the number t of the gradient; `growth` is
        that of the bias and that of the factors. Features of counterparts change while they are
        learnt, so that early gradients say little about the final factors.
        """
        steps = self.steps + 1
        powers = np.full(rows.shape[1], growth[1])
        powers[0] = growth[0]
        weight = (1 + powers) / (steps + powers)
        scaled = rows.copy()
        scaled[:, 0] /= constant
        measured = counts[:, None] * (scaled @ curvature) - gradient
        return StackedGradients(
            steps=steps,
            sums=self.sums + weight * (measured - self.sums),
            curvature=self.curvature + weight[:, None] * (curvature - self.curvature),
            noise=(1 - weight) ** 2 * self.noise + weight**2,
        )

    def rows(
        self,
        steps: DescentSteps,
        prior: RowPrior,
        *,
        noise: float,
        counts: Vector,
        weight: float | Vector,
    ) -> Rows:
        """Posterior means of the rows.

        `noise` is the standard deviation of the noise of one gradient, and `weight` the mean weight
        of a rating, of all rows or of each.
        """
        system = self.equations(steps, noise=noise, counts=counts, weight=weight)
        added = system.added
        if prior.precision is not None:
            added = added * prior.precision[:, None]
        seen, means = self.sums @ system.transform, np.zeros_like(self.sums)
        if prior.offset is not None:
            means = steps.whitened(prior.offset) @ system.axes
        means = means + _regression(seen - system.bend * means, system.bend, added, prior)
        inside = (seen + added * means) / (system.bend + added)
        return steps.from_whitened(inside @ system.axes.T)

    def equations(
        self, steps: DescentSteps, *, noise: float, counts: Vector, weight: float | Vector
    ) -> NormalEquations:
        """Normal equations of the rows, given the average of all gradients."""
        return steps.equations(
            variance=noise**2 * self.noise,
            counts=counts,
            curvature=(self.curvature + self.curvature.T) / 2,
            weight=weight,
        )


def _regression(seen: Rows, bend: Rows, added: Rows, prior: RowPrior) -> Rows:
    """Regression of rows on their traits, fitted to `seen` = bend · rows + noise.

    Given its mean, a row has variance 1, so `seen` has the variance bend · (bend + added).
    """
    traits, found = prior.traits, np.empty_like(seen)
    for column in range(seen.shape[1]):
        weights = bend[:, column] / (bend[:, column] + added[:, column])
        system = (traits * weights[:, None]).T @ traits + np.diag(prior.added)
        observed = traits.T @ (seen[:, column] / (bend[:, column] + added[:, column]))
        found[:, column] = traits @ np.linalg.solve(system, observed)
    return found
