"""Algorithm 1 step by step, as the experiments need to watch it.

What a step shows is exact and private, errors and item profiles included: the owner's own view, or
that of a researcher on a public set.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.mechanisms.exact_gate import OpenDoor
from taciturn.mechanisms.gate import Gate
from taciturn.mechanisms.noise import NoiseSource
from taciturn.reproduction.published import DELTA, DELTA_I, Configuration
from taciturn.scale import Scale
from taciturn.solvers.contract import Seeds
from taciturn.solvers.paper import Centre, PaperDescent, PaperSolver
from taciturn.solvers.run import State


class Protocol(StrEnum):
    """As the experiments were run, recovered from the figures, or as the paper prints it."""

    AS_RUN = "as-run"
    AS_PRINTED = "as-printed"


def paper_solver(
    configuration: Configuration, protocol: Protocol, scale: Scale, iterations: int
) -> PaperSolver:
    """Return the algorithm for a point of a figure.

    As run, ratings are centred by exact item means and τ is the largest rating; as printed, neither
    holds. Without noise, ε_i only chooses the grid.
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
    """One iteration: the state before it, with the errors before earlier ones, and the error."""

    number: int
    state: State
    error: float


def descend(
    solver: PaperSolver,
    ratings: Ratings,
    *,
    noised: bool = True,
    seed: int = 0,
    threads: int | None = None,
    noise: NoiseSource | None = None,
) -> Iterator[Step]:
    """Yield the iterations of Algorithm 1, up to `solver.iterations`. Reads private data."""
    door: Gate | OpenDoor
    if noised:
        door = solver.gate(ratings.shape[0], noise=noise, threads=threads)
        share = solver.share(door)
    else:
        door, share = OpenDoor(unit=Unit.VALUE, threads=threads), 0.0
    descent = PaperDescent(solver, ratings, threads)
    values = descent.values(ratings)
    state = descent.begin(Seeds(seed=seed))
    for number in range(solver.iterations):
        measurement = descent.measurement(number, state)
        released = door.release(measurement, values, share=share)
        after = descent.step(number, state, released, measurement.private)
        yield Step(number, state, float(after["errors"][-1]))
        state = after
    door.close()
