"""Algorithm 1 step by step, for the experiments.

Steps expose exact errors and item profiles. They are owner-only unless the set is public.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.mechanisms.noise import NoiseSource
from taciturn.queries.executor import LocalExecutor
from taciturn.queries.values import Centre
from taciturn.reproduction.published import DELTA, DELTA_I, Configuration
from taciturn.scale import Scale
from taciturn.solvers.contract import PublicFacts, Session
from taciturn.solvers.loop import Training
from taciturn.solvers.paper import PaperAlgorithm, PaperSolver, PaperState


class Protocol(StrEnum):
    """Algorithm as run in the experiments (recovered from the figures), or as printed."""

    AS_RUN = "as-run"
    AS_PRINTED = "as-printed"


def paper_solver(
    configuration: Configuration, protocol: Protocol, scale: Scale, iterations: int
) -> PaperSolver:
    """Solver for a point of a figure.

    As run, ratings are centred by exact item means and τ is the largest rating. As printed, ratings
    are not centred and τ is the solver's default. Without noise, ε_i only determines the grid.
    """
    as_run = protocol is Protocol.AS_RUN
    return PaperSolver(
        factors=configuration.factors,
        step_size=configuration.step_size,
        iterations=iterations,
        epsilon_i=configuration.epsilon_i or 0.5,
        delta_i=DELTA_I,
        delta=DELTA,
        centre=Centre.ITEM_MEAN if as_run else Centre.NONE,
        tau=scale.high if as_run else None,
    )


@dataclass(frozen=True, eq=False)
class Step:
    """One iteration: its number, the state before it, and the training errors up to it."""

    number: int
    state: PaperState
    errors: npt.NDArray[np.float64]

    @property
    def error(self) -> float:
        """Exact training error before the iteration."""
        return float(self.errors[-1])


def descend(
    solver: PaperSolver,
    ratings: Ratings,
    *,
    noised: bool = True,
    seed: int = 0,
    threads: int | None = None,
    noise: NoiseSource | None = None,
) -> Iterator[Step]:
    """Iterations of Algorithm 1, up to `solver.iterations`. Reads private data."""
    facts = PublicFacts.of(ratings, Unit.VALUE)
    algorithm = PaperAlgorithm(solver, facts, is_noised=noised, threads=threads)
    session = Session(seed=seed, threads=threads, noise=noise)
    training = Training(algorithm, LocalExecutor(ratings, threads), session)
    for done in training.steps():
        yield Step(done.step, done.before, done.after.errors)
    training.finish()
