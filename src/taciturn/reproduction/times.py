"""Time per iteration on this machine, for figures 16 to 18."""

from collections.abc import Callable, Iterator
from itertools import islice
from statistics import median
from time import perf_counter

from taciturn.data.ratings import Ratings
from taciturn.reproduction.descents import Step, descend, paper_solver
from taciturn.reproduction.figures import Point, Settings
from taciturn.reproduction.published import Figure, configuration

SECONDS = 0.7
"""Approximate duration of the timing for each k, in seconds."""

LEAST, MOST = 5, 60
"""Minimum and maximum number of timed iterations."""


def time_points(
    figure: Figure,
    ratings: Ratings,
    settings: Settings,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Point]:
    """Median milliseconds per iteration, with the paper's times.

    Uses all processors, with nothing else running. The paper's times are for a P100 GPU.
    """
    points = []
    places = [
        (curve, x, published)
        for curve in figure.curves
        for x, published in curve.points
        if settings.max_factors is None or x <= settings.max_factors
    ]
    comparable = figure.data.is_like(len(ratings))
    for number, (curve, x, published) in enumerate(places):
        progress(number, len(places))
        chosen = configuration(figure, curve.series, x)
        solver = paper_solver(chosen, settings.protocol, ratings.scale, MOST)
        steps = descend(solver, ratings, noised=chosen.epsilon_i is not None)
        points.append(
            Point(
                series=curve.series,
                quantity=curve.quantity,
                x=round(x),
                y=1e3 * median(_durations(steps)),
                paper=published if comparable else None,
            )
        )
    progress(len(places), len(places))
    return points


def _durations(steps: Iterator[Step]) -> Iterator[float]:
    next(steps)  # the first iteration includes setup
    began = perf_counter()
    for number in range(MOST - 1):
        start = perf_counter()
        next(islice(steps, 1))
        end = perf_counter()
        yield end - start
        if number + 1 >= LEAST and end - began > SECONDS:
            return
