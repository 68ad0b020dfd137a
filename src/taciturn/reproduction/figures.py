"""Cells that a figure needs, and the points that follow from their results."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean, stdev
from typing import Any

from taciturn._internal import validate
from taciturn.accounting import gaussian
from taciturn.accounting.paper import paper_account
from taciturn.errors import InvalidParameter
from taciturn.reproduction.cells import Cell, Trace, cost
from taciturn.reproduction.descents import Protocol
from taciturn.reproduction.published import (
    DELTA,
    DELTA_I,
    SETS,
    Axis,
    Curve,
    Figure,
    Quantity,
    configuration,
    published_iterations,
    series_epsilon,
)

FACTORS_MAX = 60
"""Default maximum k in the sweeps over k; the paper's maximum of 512 takes hours."""

FACTORS_MIN = 4
"""Minimum k in the sweeps over k."""

STARTS = {0.15: 8, 0.2: 1, 0.3: 0, 0.5: 12, 0.75: 13, 0.9: 7, None: 13}
"""First seeds of figures 1 and 4, by ε_i.

The iteration at which the error starts to fall depends on the random initial profiles. The paper
does not give its own, which differed between lines. Of about thirty seeds tried, these make the
error fall when the paper's does (docs/benchmarks/reproduction.md). All other figures start with
seed 0.
"""


class Stop(StrEnum):
    """End of a run: the paper's number of iterations, or the stopping rule."""

    PAPER = "paper"
    RULE = "rule"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a reproduction: protocol, end of runs, seeds and maximum k.

    `first_seed` None means 0, or the seed in `STARTS` for figures 1 and 4. `max_factors` None means
    60 for training runs and no limit for timings.
    """

    protocol: Protocol = Protocol.AS_RUN
    stop: Stop = Stop.PAPER
    seeds: int = 1
    first_seed: int | None = None
    max_factors: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "protocol", validate.choice("protocol", self.protocol, Protocol))
        object.__setattr__(self, "stop", validate.choice("stop", self.stop, Stop))
        validate.positive_integer("seeds", self.seeds, "1 is the default")
        if self.first_seed is not None and not 0 <= self.first_seed < 2**32:
            raise InvalidParameter("first_seed must be a whole number from 0 to 2^32 − 1")
        if self.max_factors is not None:
            validate.positive_integer("max_factors", self.max_factors, "60 is the default")
            if self.max_factors < FACTORS_MIN:
                raise InvalidParameter(
                    f"max_factors must be at least {FACTORS_MIN}, the smallest k in the paper"
                )


@dataclass(frozen=True, kw_only=True)
class Point:
    """One point of a reproduced figure: the mean over seeds, and the paper's value if comparable.

    `standard_deviation` is over seeds, None for one seed; `iterations` is the mean number of
    iterations.
    """

    series: str
    quantity: Quantity
    x: float
    y: float
    paper: float | None = None
    standard_deviation: float | None = None
    iterations: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Point as JSON types."""
        document: dict[str, Any] = {
            "series": self.series,
            "quantity": self.quantity.value,
            "x": self.x,
            "y": self.y,
        }
        optional = {
            "paper": self.paper,
            "standard_deviation": self.standard_deviation,
            "iterations": self.iterations,
        }
        return document | {name: value for name, value in optional.items() if value is not None}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Point":
        """Point from the output of `to_dict`."""
        return cls(**(dict(document) | {"quantity": Quantity(document["quantity"])}))


def cells_of(figure: Figure, settings: Settings) -> dict[Cell, float]:
    """Cells that a figure needs, with the approximate running time of each."""
    cells = {}
    for curve in figure.curves:
        for x, _ in curve.points:
            if not _is_wanted(figure, x, settings):
                continue
            kinds = {
                Quantity.RMSE: (False, True),
                # At the paper's number of iterations, ε follows without training.
                Quantity.EPSILON_PAPER: (False,) if settings.stop is Stop.RULE else (),
            }.get(curve.quantity, ())
            iterations = published_iterations(figure, curve.series, x)
            for held_out in kinds:
                for cell in _cells_at(figure, curve, x, settings, held_out):
                    cells[cell] = cost(cell, iterations)
    return cells


def points_of(figure: Figure, settings: Settings, traces: Mapping[Cell, Trace]) -> list[Point]:
    """Points of a figure, except timings, from the results of its cells."""
    points: list[Point] = []
    for curve in figure.curves:
        if curve.quantity is Quantity.RMSE:
            points += _errors(figure, curve, settings, traces)
        elif curve.quantity is Quantity.EPSILON_PAPER:
            points += _epsilons(figure, curve, settings, traces)
    return points


def first_seed(figure: Figure, epsilon_i: float | None, settings: Settings) -> int:
    """First seed of a line or, in figure 4, of a point."""
    if settings.first_seed is not None:
        return settings.first_seed
    return STARTS[epsilon_i] if figure.number in (1, 4) else 0


def _is_wanted(figure: Figure, x: float, settings: Settings) -> bool:
    return figure.axis is not Axis.FACTORS or x <= (settings.max_factors or FACTORS_MAX)


def _cells_at(
    figure: Figure, curve: Curve, x: float, settings: Settings, held_out: bool
) -> list[Cell]:
    """Cells of a point, one for each seed."""
    iterations = None
    if settings.stop is Stop.PAPER:
        iterations = published_iterations(figure, curve.series, x)
    (data,) = (name for name, each in SETS.items() if each == figure.data)
    chosen = configuration(figure, curve.series, x)
    first = first_seed(figure, chosen.epsilon_i, settings)
    cell = Cell(
        data=data,
        protocol=settings.protocol,
        configuration=chosen,
        iterations=iterations,
        seed=first,
        held_out=held_out,
    )
    return [replace(cell, seed=first + number) for number in range(settings.seeds)]


def _errors(
    figure: Figure, curve: Curve, settings: Settings, traces: Mapping[Cell, Trace]
) -> Iterator[Point]:
    is_curve = figure.axis is Axis.ITERATIONS
    places = curve.points[:1] if is_curve else curve.points
    for held_out, quantity in ((False, Quantity.RMSE), (True, Quantity.RMSE_TEST)):
        for x, published in places:
            if not _is_wanted(figure, x, settings):
                continue
            runs = [traces[cell] for cell in _cells_at(figure, curve, x, settings, held_out)]
            comparable = (
                not held_out
                and settings.protocol is Protocol.AS_RUN
                and figure.data.is_like(runs[0].ratings)
            )
            if is_curve:
                paper = dict(curve.points) if comparable else {}
                yield from _along(curve.series, quantity, runs, dict(curve.points), paper)
                continue
            ends = [run.rmse_test[-1][1] if held_out else run.rmse[-1] for run in runs]
            point = _point(curve.series, quantity, x, ends, published if comparable else None)
            yield replace(point, iterations=fmean(run.iterations for run in runs))


def _along(
    series: str,
    quantity: Quantity,
    runs: list[Trace],
    plotted: Mapping[float, float],
    paper: Mapping[float, float],
) -> Iterator[Point]:
    """Points of a curve against iterations: the paper's, and the end of the run."""
    if quantity is Quantity.RMSE_TEST:
        lines = [{float(number): error for number, error in run.rmse_test} for run in runs]
    else:
        shortest = min(run.iterations for run in runs)
        wanted = {x for x in plotted if x < shortest} | {float(shortest - 1)}
        lines = [{x: run.rmse[int(x)] for x in wanted} for run in runs]
    for x in sorted(set.intersection(*(set(line) for line in lines))):
        yield _point(series, quantity, x, [line[x] for line in lines], paper.get(x))


def _epsilons(
    figure: Figure, curve: Curve, settings: Settings, traces: Mapping[Cell, Trace]
) -> Iterator[Point]:
    lines: dict[Quantity, list[Point]] = {}
    for x, published in curve.points:
        if not _is_wanted(figure, x, settings):
            continue
        counts = [published_iterations(figure, curve.series, x)]
        comparable = settings.stop is Stop.PAPER
        if settings.stop is Stop.RULE:
            runs = [traces[cell] for cell in _cells_at(figure, curve, x, settings, False)]
            counts = [run.iterations for run in runs]
            comparable = settings.protocol is Protocol.AS_RUN and figure.data.is_like(
                runs[0].ratings
            )
        epsilon_i = x if figure.axis is Axis.EPSILON_I else series_epsilon(curve.series)
        accounts = [
            paper_account(
                epsilon_i=epsilon_i or 0.0, delta_i=DELTA_I, iterations=count, delta=DELTA
            )
            for count in counts
        ]
        for quantity, values, paper in (
            (Quantity.EPSILON_PAPER, [each.epsilon_paper for each in accounts], published),
            (Quantity.EPSILON_EXACT, [gaussian.epsilon(DELTA, a.mu) for a in accounts], None),
        ):
            point = _point(curve.series, quantity, x, values, paper if comparable else None)
            lines.setdefault(quantity, []).append(replace(point, iterations=fmean(counts)))
    for line in lines.values():
        yield from line


def _point(
    series: str, quantity: Quantity, x: float, values: list[float], paper: float | None
) -> Point:
    return Point(
        series=series,
        quantity=quantity,
        x=int(x) if x == int(x) else x,
        y=fmean(values),
        paper=paper,
        standard_deviation=stdev(values) if len(values) > 1 else None,
    )
