"""The paper's 27 figures as data: every plotted number.

The numbers are in `published.json`, extracted from the published vector graphics. J iterations give
J errors, those before steps 0 to J − 1. The paper's iteration counts follow from its overall ε.
"""

import json
import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

from taciturn.accounting.renyi import mu_at_zcdp
from taciturn.errors import InvalidParameter

DELTA_I, DELTA = 0.01, 1e-5
"""The paper's δ per iteration and in total."""

FACTORS, STEP_SIZE = 20, 5e-4
"""The paper's k and step size where a figure does not vary them."""

NON_PRIVATE = "non-private"

RUN_WITH = {44: 48}
"""Values of k that the paper ran, by the k that it plots. Its errors at 44 match k = 48 within
0.001 and differ from k = 44 by up to 0.016 (docs/benchmarks/reproduction.md)."""


class Quantity(StrEnum):
    """Quantity that a point of a figure measures."""

    RMSE = "rmse"
    RMSE_TEST = "rmse_test"
    EPSILON_PAPER = "epsilon_paper"
    EPSILON_EXACT = "epsilon_exact"
    MS = "ms"


class Axis(StrEnum):
    """Quantity on the x axis of a figure, in the paper's notation."""

    ITERATIONS = "iterations"
    EPSILON_I = "eps_i"
    FACTORS = "n"
    STEP_SIZE = "mu"


@dataclass(frozen=True, kw_only=True)
class PaperSet:
    """A data set of the paper: its name in Taciturn and its number of ratings in the paper."""

    source: str
    ratings: int

    def is_like(self, ratings: int) -> bool:
        """True if a number of ratings is within 2% of the paper's."""
        return abs(ratings / self.ratings - 1) < 0.02


SETS = {
    "ml-1m": PaperSet(source="ml-1m", ratings=1_000_209),
    "netflix-slice": PaperSet(source="netflix:paper", ratings=5_360_000),
    "animereco-slice": PaperSet(source="anime:paper", ratings=1_540_000),
}


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One plotted line: its legend, its quantity, and its points (x, y) sorted by x."""

    series: str
    quantity: Quantity
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One of the paper's figures."""

    number: int
    title: str
    data: PaperSet
    axis: Axis
    curves: tuple[Curve, ...]
    ends: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """Configuration of one point of a figure; `epsilon_i` None means no noise."""

    epsilon_i: float | None
    factors: int
    step_size: float


@cache
def figures() -> dict[int, Figure]:
    """The figures by number."""
    text = files("taciturn.reproduction").joinpath("published.json").read_text(encoding="utf-8")
    return {
        int(number): _figure(int(number), entry)
        for number, entry in json.loads(text)["figures"].items()
    }


def figure(number: int) -> Figure:
    """The figure with this number."""
    if number not in figures():
        raise InvalidParameter(f"the paper has figures 1 to 27, got {number}")
    return figures()[number]


def configuration(figure: Figure, series: str, x: float) -> Configuration:
    """Configuration of a point."""
    epsilon_i = x if figure.axis is Axis.EPSILON_I else series_epsilon(series)
    return Configuration(
        epsilon_i=epsilon_i,
        factors=RUN_WITH.get(round(x), round(x)) if figure.axis is Axis.FACTORS else FACTORS,
        step_size=x if figure.axis is Axis.STEP_SIZE else STEP_SIZE,
    )


def series_epsilon(series: str) -> float | None:
    """ε_i of a legend entry; None for the line without noise."""
    return None if series == NON_PRIVATE else float(series.removeprefix("eps_i="))


def published_iterations(figure: Figure, series: str, x: float) -> int:
    """Number of iterations J that the paper ran for a point.

    Computed from the plotted overall ε, which depends on J; means over runs are rounded. Lines
    without noise have no ε. In figures 1 to 3 their curves give J. In the sweeps they are assumed
    to have run as long as the line with the least noise.
    """
    if figure.axis is Axis.ITERATIONS:
        return figure.ends[series] + 1
    epsilon_i = x if figure.axis is Axis.EPSILON_I else series_epsilon(series)
    source = _epsilon_figure(figure)
    lines = {curve.series: dict(curve.points) for curve in source.curves}
    if figure.axis is Axis.EPSILON_I:
        overall = lines["overall_epsilon"][x]
    else:
        if epsilon_i is None:
            series = max(lines, key=lambda each: series_epsilon(each) or 0)
            epsilon_i = series_epsilon(series)
        overall = lines[series][x]
    ratio = (epsilon_i or math.nan) / math.sqrt(2 * math.log(1.25 / DELTA_I))
    return round((mu_at_zcdp(overall, DELTA) / ratio) ** 2)


def _epsilon_figure(of: Figure) -> Figure:
    """First figure that plots the overall ε of the same runs."""
    for each in figures().values():
        if (each.axis, each.data) == (of.axis, of.data):
            lines = [c for c in each.curves if c.quantity is Quantity.EPSILON_PAPER]
            if lines:
                return Figure(**(vars(each) | {"curves": tuple(lines)}))
    raise InvalidParameter(f"no figure gives the iterations of figure {of.number}")


_QUANTITIES = {
    "rmse": Quantity.RMSE,
    "overall_epsilon": Quantity.EPSILON_PAPER,
    "time_per_iteration_ms": Quantity.MS,
}


def _figure(number: int, entry: dict[str, Any]) -> Figure:
    curves = []
    names = entry["y"] if isinstance(entry["y"], list) else [entry["y"]]
    for name in names:
        # Figures with two quantities nest them, or have one line named after each.
        lines = entry["series"]
        if len(names) > 1:
            lines = lines[name] if isinstance(lines[name], dict) else {name: lines[name]}
        curves += [
            Curve(
                series=series,
                quantity=_QUANTITIES[name],
                points=tuple((float(x), float(y)) for x, y in points),
            )
            for series, points in lines.items()
        ]
    return Figure(
        number=number,
        title=entry["title"],
        data=SETS[entry["dataset"]],
        axis=Axis(entry["x"]),
        curves=tuple(curves),
        ends={series: round(end[0]) for series, end in entry.get("end", {}).items()},
    )
