"""`taciturn paper figure`: runs the cells of figures, plots the figures and writes them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taciturn._internal import strict_json
from taciturn._internal.files import prepare_folder, write_file
from taciturn._internal.optional import require
from taciturn._version import __version__
from taciturn.data.named import load_named
from taciturn.errors import InvalidDocument
from taciturn.reproduction.cells import Cell, Trace
from taciturn.reproduction.descents import Protocol
from taciturn.reproduction.draw import draw_figure
from taciturn.reproduction.figures import Point, Settings, cells_of, first_seed, points_of
from taciturn.reproduction.published import (
    NON_PRIVATE,
    Figure,
    Quantity,
    configuration,
    figure,
    figures,
)
from taciturn.reproduction.runner import Progress, run_cells
from taciturn.reproduction.times import time_points


@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """A reproduced figure: its points, settings and output folder.

    `ratings` is the number of ratings, None if none were needed.
    """

    figure: Figure
    points: tuple[Point, ...]
    settings: Settings
    folder: Path
    ratings: int | None

    @property
    def obstacle(self) -> str | None:
        """Reason why errors or times are not comparable with the paper's; None if they are."""
        data = self.figure.data
        if self.ratings is None:
            return None
        if not data.is_like(self.ratings):
            return f"{self.ratings:,} ratings here, {data.ratings:,} in the paper"
        if self.settings.protocol is Protocol.AS_PRINTED and not _is_timed(self.figure):
            return "the paper's experiments were not run as printed"
        return None

    def path(self, ending: str) -> Path:
        """Path of the figure's file with this extension: png, svg or json."""
        return self.folder / f"figure-{self.figure.number:02}.{ending}"

    def differences(self, quantity: Quantity) -> list[float]:
        """Differences of comparable points from the paper's."""
        return [
            point.y - point.paper
            for point in self.points
            if point.quantity is quantity and point.paper is not None
        ]


def reproduce(
    numbers: Sequence[int],
    folder: Path,
    settings: Settings | None = None,
    *,
    jobs: int | None = None,
    progress: Progress = lambda done, total, share: None,
    timing: Callable[[int, int], None] = lambda done, total: None,
    written: Callable[[Reproduced], None] = lambda reproduced: None,
) -> list[Reproduced]:
    """Reproduce figures as figure-NN.png, .svg and .json in a folder, replacing existing files.

    Each figure is written, and passed to `written`, as soon as its cells are done. Timings come
    last, when nothing else is running.
    """
    settings = settings or Settings()
    require("matplotlib.figure", extra="plots")
    prepare_folder(folder)
    chosen = [figure(number) for number in sorted(set(numbers))]
    needed = {each.number: cells_of(each, settings) for each in chosen}
    cells: dict[Cell, float] = {}
    for wanted in needed.values():
        cells |= _longest_first(wanted, cells)
    done: dict[int, Reproduced] = {}

    def keep(each: Figure, points: list[Point], ratings: int | None) -> None:
        result = Reproduced(
            figure=each, points=tuple(points), settings=settings, folder=folder, ratings=ratings
        )
        _write(result)
        done[each.number] = result
        written(result)

    def finished(traces: dict[Cell, Trace]) -> None:
        for each in chosen:
            if (
                each.number not in done
                and not _is_timed(each)
                and needed[each.number].keys() <= (traces.keys())
            ):
                counts = [traces[cell].ratings for cell in needed[each.number]]
                keep(each, points_of(each, settings, traces), counts[0] if counts else None)

    if cells:
        run_cells(cells.items(), jobs=jobs, progress=progress, finished=finished)
    else:
        finished({})
    for each in chosen:
        if _is_timed(each):
            ratings = load_named(each.data.source)
            keep(each, time_points(each, ratings, settings, timing), len(ratings))
    return [done[each.number] for each in chosen]


def _is_timed(figure: Figure) -> bool:
    return figure.curves[0].quantity is Quantity.MS


def _longest_first(cells: dict[Cell, float], known: dict[Cell, float]) -> dict[Cell, float]:
    new = [cell for cell in cells if cell not in known]
    return {cell: cells[cell] for cell in sorted(new, key=lambda cell: -cells[cell])}


def _write(result: Reproduced) -> None:
    document = {
        "figure": result.figure.number,
        "title": result.figure.title,
        "taciturn": __version__,
        "data": result.figure.data.source,
        "ratings": result.ratings,
        "protocol": result.settings.protocol.value,
        "stop": result.settings.stop.value,
        "seeds": result.settings.seeds,
        "first_seed": result.settings.first_seed,
        "first_seeds": _first_seeds(result),
        "max_factors": result.settings.max_factors,
        "points": [point.to_dict() for point in result.points],
    }
    for ending, content in draw_figure(result.figure, result.points, _subtitle(result)).items():
        write_file(result.path(ending), content, replace=True)
    write_file(result.path("json"), strict_json.dumps(document).encode(), replace=True)


def _subtitle(result: Reproduced) -> str:
    """Settings of a figure in one line."""
    settings = result.settings
    parts = [settings.protocol.value, f"stop {settings.stop.value}"]
    if settings.seeds > 1:
        parts.append(f"{settings.seeds} seeds, bars are standard deviations")
    if result.obstacle:
        parts.append(f"not comparable: {result.obstacle}")
    return "; ".join(parts)


def _first_seeds(result: Reproduced) -> dict[str, int]:
    """First seed of each line of errors, by ε_i."""
    figure = result.figure
    rows = [curve for curve in figure.curves if curve.quantity is Quantity.RMSE]
    found = {
        configuration(figure, curve.series, x).epsilon_i for curve in rows for x, _ in curve.points
    }
    return {
        NON_PRIVATE if epsilon_i is None else f"{epsilon_i:g}": first_seed(
            figure, epsilon_i, result.settings
        )
        for epsilon_i in sorted(found, key=lambda each: each or float("inf"))
    }


def read_reproduced(folder: Path) -> list[Reproduced]:
    """Figures in a folder."""
    results = []
    for number in figures():
        path = folder / f"figure-{number:02}.json"
        if path.exists():
            results.append(_read(path, number))
    return results


def _read(path: Path, number: int) -> Reproduced:
    document: dict[str, Any] = strict_json.read(path)
    try:
        settings = Settings(
            protocol=document["protocol"],
            stop=document["stop"],
            seeds=document["seeds"],
            first_seed=document["first_seed"],
            max_factors=document["max_factors"],
        )
        points = tuple(Point.from_dict(point) for point in document["points"])
        ratings = None if document["ratings"] is None else int(document["ratings"])
        if document["figure"] != number:
            raise ValueError(number)
    except (KeyError, TypeError, ValueError):
        raise InvalidDocument(
            f"{path} was not written by taciturn paper figure; run it again"
        ) from None
    return Reproduced(
        figure=figure(number),
        points=points,
        settings=settings,
        folder=path.parent,
        ratings=ratings,
    )
