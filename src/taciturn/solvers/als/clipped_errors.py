"""Clipped prediction errors of a descent, shared by the units `rating` and `user`."""

from collections.abc import Sequence
from dataclasses import dataclass

from taciturn.mechanisms.query import BoundedQuery
from taciturn.queries.error_pass import ErrorPass
from taciturn.queries.values import ValueView
from taciturn.solvers.clipping import ClipRule
from taciturn.solvers.contract import QueryStep, repeated


@dataclass(frozen=True, kw_only=True)
class ClippedErrors:
    """Settings for reading and clipping prediction errors, step by step.

    Attributes
    ----------
    view
        View of the ratings.
    clip
        Rule for the clipping threshold.
    ratio
        Sensitivity over noise scale of one gradient.
    iterations
        Number of steps.
    """

    view: ValueView
    clip: ClipRule
    ratio: float
    iterations: int

    def at(self, standard_deviation: float, unit: float) -> ErrorPass:
        """Errors clipped for a residual standard deviation in model units."""
        threshold = self.clip.threshold(standard_deviation * unit, self.view.grid, self.ratio)
        return ErrorPass(self.view, first=1, threshold=threshold)

    @property
    def noise(self) -> float:
        """Noise of a gradient in residual standard deviations, corrected for clipping."""
        return gradient_noise(self.clip, self.ratio)

    def purpose(self, step: int) -> str:
        """Purpose of a step; the first has number 1."""
        return f"step {step} of {self.iterations}"

    def schedule(
        self, first: QueryStep, queries: Sequence[BoundedQuery], shares: Sequence[float]
    ) -> tuple[QueryStep, ...]:
        """First step, followed by one step for each iteration with these queries."""
        purposes = map(self.purpose, range(1, 1 + self.iterations))
        return first, *repeated(queries, shares, purposes)


def gradient_noise(clip: ClipRule, ratio: float) -> float:
    """Noise of a gradient in residual standard deviations, corrected for clipping.

    `ratio` is the sensitivity over the noise scale.
    """
    return clip.multiplier / (clip.attenuation * ratio)
