"""Figures: their cells, points, plots and the report page."""

import json
from pathlib import Path
from typing import Any

import pytest

from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.reproduction.cells import Cell, Trace
from taciturn.reproduction.descents import Protocol
from taciturn.reproduction.draw import draw_figure
from taciturn.reproduction.figures import STARTS, Point, Settings, Stop, cells_of, points_of
from taciturn.reproduction.published import Quantity, figure
from taciturn.reproduction.readings import reading
from taciturn.reproduction.report import write_report
from taciturn.reproduction.reproduce import Reproduced, read_reproduced, reproduce
from tests.narrow import present

ML_1M = 1_000_209


def made_up(cell: Cell, ratings: int = ML_1M) -> Trace:
    """A trace whose numbers identify their cell."""
    length = cell.iterations or 30
    epsilon_i = cell.configuration.epsilon_i or 9.0
    errors = tuple(1 / (1 + step) + 1 / epsilon_i for step in range(length))
    held = ((0, 2.0), (length - 1, 1.5 + cell.seed)) if cell.held_out else ()
    return Trace(rmse=errors, rmse_test=held, ratings=ratings)


def points(number: int, settings: Settings, ratings: int = ML_1M) -> list[Point]:
    cells = cells_of(figure(number), settings)
    return points_of(figure(number), settings, {cell: made_up(cell, ratings) for cell in cells})


def of(found: list[Point], quantity: Quantity) -> list[Point]:
    return [point for point in found if point.quantity is quantity]


def test_figure_4_takes_twelve_cells_and_shares_them_with_figure_1() -> None:
    four, one = (set(cells_of(figure(number), Settings())) for number in (4, 1))
    assert len(four) == 12 and four < one and len(one) == 14
    assert {cell.seed for cell in one} == set(STARTS.values())
    assert {cell.seed for cell in cells_of(figure(4), Settings(first_seed=5))} == {5}


def test_sweeps_of_the_same_runs_share_their_cells() -> None:
    assert set(cells_of(figure(13), Settings())) == set(cells_of(figure(7), Settings()))
    assert set(cells_of(figure(26), Settings())) == set(cells_of(figure(20), Settings()))


def test_epsilon_at_the_papers_iterations_needs_no_training() -> None:
    assert cells_of(figure(10), Settings()) == {}
    assert len(cells_of(figure(22), Settings(stop=Stop.RULE))) == 20


@pytest.mark.parametrize(("most", "count"), [(None, 60), (4, 12), (128, 84), (512, 132)])
def test_sweeps_over_k_end_at_max_factors(most: int | None, count: int) -> None:
    assert len(cells_of(figure(7), Settings(max_factors=most))) == count


def test_seeds_are_independent_cells_and_points_are_their_means() -> None:
    settings = Settings(seeds=3)
    assert len(cells_of(figure(5), settings)) == 36
    (first, *_) = of(points(5, settings, 5_337_656), Quantity.RMSE_TEST)
    assert first.y == pytest.approx(1.5 + 1.0) and first.standard_deviation == pytest.approx(1.0)


def test_points_of_figure_4_are_beside_those_of_the_paper() -> None:
    found = points(4, Settings())
    assert {point.quantity for point in found} == set(Quantity) - {Quantity.MS}
    rmse = {point.x: point for point in of(found, Quantity.RMSE)}
    assert list(rmse) == [0.15, 0.2, 0.3, 0.5, 0.75, 0.9]
    assert rmse[0.15].paper == 0.83893
    assert rmse[0.15].y == pytest.approx(1 / 791 + 1 / 0.15)
    assert all(point.paper is None for point in of(found, Quantity.RMSE_TEST))
    for point in of(found, Quantity.EPSILON_PAPER):
        assert point.y == pytest.approx(point.paper, abs=0.002)
    exact = of(found, Quantity.EPSILON_EXACT)
    assert len(exact) == 6 and all(point.paper is None for point in exact)


def test_points_of_figure_1_are_where_the_paper_plots_them() -> None:
    found = points(1, Settings())
    line = [point for point in of(found, Quantity.RMSE) if point.series == "eps_i=0.30"]
    plotted = dict(figure(1).curves[2].points)
    assert {point.x: point.paper for point in line} == plotted
    assert [point.x for point in line] == sorted(plotted)


def test_only_comparable_points_have_the_value_of_the_paper() -> None:
    printed = points(4, Settings(protocol=Protocol.AS_PRINTED))
    assert all(point.paper is None for point in of(printed, Quantity.RMSE))
    assert all(point.paper is not None for point in of(printed, Quantity.EPSILON_PAPER))
    sample = points(6, Settings(), ratings=100_000)
    assert all(point.paper is None for point in of(sample, Quantity.RMSE))
    whole = points(6, Settings(), ratings=1_540_000)
    assert all(point.paper is not None for point in of(whole, Quantity.RMSE))


def test_a_rule_that_stops_earlier_shortens_curves_and_changes_epsilon() -> None:
    settings = Settings(stop=Stop.RULE)
    curve = [point for point in of(points(1, settings), Quantity.RMSE) if point.series[-2:] == "15"]
    assert [point.x for point in curve] == [0, 6, 29]  # where the paper plots, and the end
    epsilons = of(points(4, settings), Quantity.EPSILON_PAPER)
    assert all(point.y < present(point.paper) for point in epsilons)


@pytest.mark.parametrize(
    "options",
    [
        {"protocol": "other"},
        {"stop": "other"},
        {"seeds": 0},
        {"max_factors": 0},
        {"first_seed": -1},
    ],
)
def test_bad_settings_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        Settings(**options)


def made_up_figures(folder: Path) -> list[Reproduced]:
    results = []
    for number in range(1, 28, 3):  # one of each kind
        each = figure(number)
        found = points(number, Settings())
        if not found:
            found = [
                Point(series=curve.series, quantity=curve.quantity, x=int(x), y=2 * y, paper=y)
                for curve in each.curves
                for x, y in curve.points
            ]
        results.append(
            Reproduced(
                figure=each,
                points=tuple(found),
                settings=Settings(),
                folder=folder,
                ratings=None if each.curves[0].quantity is Quantity.EPSILON_PAPER else ML_1M,
            )
        )
    return results


@pytest.mark.slow
def test_every_figure_has_a_drawing_and_a_reading(tmp_path: Path) -> None:
    for result in made_up_figures(tmp_path):
        drawn = draw_figure(result.figure, result.points)
        assert drawn["png"].startswith(b"\x89PNG") and b"<svg" in drawn["svg"]
        words = reading(result)
        assert words.endswith(".") and "nan" not in words and len(words) > 100


@pytest.mark.slow
def test_figures_are_written_and_read_and_put_on_one_page(tmp_path: Path) -> None:
    results = reproduce([12, 23, 12], tmp_path)
    assert [result.figure.number for result in results] == [12, 23]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"figure-{number}.{ending}" for number in (12, 23) for ending in ("json", "png", "svg")
    ]
    document = json.loads((tmp_path / "figure-12.json").read_text())
    assert document["figure"] == 12
    keys = {"series", "quantity", "x", "y", "paper", "iterations"}
    assert document["points"][0].keys() == keys
    again = read_reproduced(tmp_path)
    assert [result.points for result in again] == [result.points for result in results]
    page = write_report(tmp_path, again).read_text(encoding="utf-8")
    assert page.count("<img") == 2 and "Assumptions" in page
    assert "http" not in page and "src='data:" in page  # nothing is fetched


@pytest.mark.parametrize("content", ["{", "{}", "[]", '{"figure": 13, "points": []}'])
def test_a_file_that_is_no_figure_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "figure-12.json").write_text(content)
    with pytest.raises(InvalidDocument, match="figure-12.json"):
        read_reproduced(tmp_path)


def test_a_report_without_figures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidDocument, match="no figures"):
        write_report(tmp_path, [])
