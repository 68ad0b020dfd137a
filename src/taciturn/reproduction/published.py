"""What the paper's 27 figures show: every plotted number, as data.

The numbers are in `published.json`, read off the published vector graphics. J iterations give J
errors, those before step 0 to J − 1; the paper's iteration counts follow from its overall ε.
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
"""The paper's δ of one iteration and of all."""

FACTORS, STEP_SIZE = 20, 5e-4
"""Where a figure does not vary them."""

NON_PRIVATE = "non-private"

RUN_WITH = {44: 48}
"""Profiles that the paper's runs had where it plots others: at 44 its errors are those of 48, by
0.001, and are off by up to 0.016 from those of 44 (docs/reproduction.md)."""


class Quantity(StrEnum):
    """What a point of a figure measures."""

    RMSE = "rmse"
    RMSE_TEST = "rmse_test"
    EPSILON_PAPER = "epsilon_paper"
    EPSILON_EXACT = "epsilon_exact"
    MS = "ms"


class Axis(StrEnum):
    """What a figure varies along x, in the paper's letters."""

    ITERATIONS = "iterations"
    EPSILON_I = "eps_i"
    FACTORS = "n"
    STEP_SIZE = "mu"


@dataclass(frozen=True, kw_only=True)
class PaperSet:
    """A data set of the paper: what Taciturn calls it, and its size there."""

    source: str
    ratings: int

    def is_like(self, ratings: int) -> bool:
        """Return whether a set of so many ratings is the paper's, but for some hundredths."""
        return abs(ratings / self.ratings - 1) < 0.02


SETS = {
    "ml-1m": PaperSet(source="ml-1m", ratings=1_000_209),
    "netflix-slice": PaperSet(source="netflix:paper", ratings=5_360_000),
    "animereco-slice": PaperSet(source="anime:paper", ratings=1_540_000),
}


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One plotted line: its legend, what it measures, and its points (x, y) by rising x."""

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
    """What one point of a figure was run with; `epsilon_i` None means without noise."""

    epsilon_i: float | None
    factors: int
    step_size: float


@cache
def figures() -> dict[int, Figure]:
    """Return the figures by number."""
    text = files("taciturn.reproduction").joinpath("published.json").read_text(encoding="utf-8")
    return {
        int(number): _figure(int(number), entry)
        for number, entry in json.loads(text)["figures"].items()
    }


def figure(number: int) -> Figure:
    """Return a figure by its number."""
    if number not in figures():
        raise InvalidParameter(f"the paper has figures 1 to 27, not {number}")
    return figures()[number]


def configuration(figure: Figure, series: str, x: float) -> Configuration:
    """Return what a point was run with."""
    epsilon_i = x if figure.axis is Axis.EPSILON_I else series_epsilon(series)
    return Configuration(
        epsilon_i=epsilon_i,
        factors=RUN_WITH.get(round(x), round(x)) if figure.axis is Axis.FACTORS else FACTORS,
        step_size=x if figure.axis is Axis.STEP_SIZE else STEP_SIZE,
    )


def series_epsilon(series: str) -> float | None:
    """Return ε_i of a line of a legend, None for the one without noise."""
    return None if series == NON_PRIVATE else float(series.removeprefix("eps_i="))


def published_iterations(figure: Figure, series: str, x: float) -> int:
    """Return how many iterations the paper ran for a point.

    From the overall ε that it plots, which J decides; means over runs are rounded. Lines without
    noise have no ε: their curves tell in figures 1 to 3, and in the sweeps they are taken to have
    run as long as the line with the least noise.
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
    """Return the figure that plots the overall ε of the same runs: the first that does."""
    for each in figures().values():
        if (each.axis, each.data) == (of.axis, of.data):
            lines = [c for c in each.curves if c.quantity is Quantity.EPSILON_PAPER]
            if lines:
                return Figure(**(vars(each) | {"curves": tuple(lines)}))
    raise InvalidParameter(f"no figure tells the iterations of figure {of.number}")


_QUANTITIES = {
    "rmse": Quantity.RMSE,
    "overall_epsilon": Quantity.EPSILON_PAPER,
    "time_per_iteration_ms": Quantity.MS,
}


def _figure(number: int, entry: dict[str, Any]) -> Figure:
    curves = []
    names = entry["y"] if isinstance(entry["y"], list) else [entry["y"]]
    for name in names:
        # Figures of two quantities nest them, or name a line after each.
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
