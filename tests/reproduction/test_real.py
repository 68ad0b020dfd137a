"""Figures of the paper on its data: beginnings of curves, and single points at full length."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from taciturn.data.ratings import Ratings
from taciturn.reproduction.cells import Cell, run_cell
from taciturn.reproduction.figures import Settings, cells_of
from taciturn.reproduction.published import Curve, Quantity, configuration, figure

BEGINNING = 200
"""Iterations of a curve after which all noise levels differ clearly."""


def cell_and_curve(
    number: int, series: str, x: float, *, held_out: bool = False
) -> tuple[Cell, Curve]:
    """Run behind a point of a figure, and the curve of training errors that it is on."""
    found = figure(number)
    wanted = configuration(found, series, x)
    (cell,) = (
        cell
        for cell in cells_of(found, Settings())
        if cell.configuration == wanted and cell.held_out == held_out
    )
    (curve,) = (
        curve for curve in found.curves if (curve.series, curve.quantity) == (series, Quantity.RMSE)
    )
    return cell, curve


NETFLIX = (2, "eps_i=0.20")
MOVIELENS = [(1, curve.series) for curve in figure(1).curves]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "series"), [*MOVIELENS, NETFLIX])
def test_curves_begin_like_those_of_the_paper(
    real_ratings: Callable[[str], Ratings], number: int, series: str
) -> None:
    """The curves of neighbouring noise levels differ by more than 0.01 after 200 iterations."""
    cell, curve = cell_and_curve(number, series, 0)
    ratings = real_ratings(figure(number).data.source)
    trace = run_cell(replace(cell, iterations=BEGINNING + 1), ratings)
    begun = [(int(x), y) for x, y in curve.points if x <= BEGINNING]
    assert len(begun) > 10
    assert max(abs(trace.rmse[x] - y) for x, y in begun) < 0.005


@pytest.mark.slow
@pytest.mark.parametrize(
    ("series", "x"), [("eps_i=0.90", 4), ("non-private", 12), ("eps_i=0.20", 60)]
)
def test_training_errors_for_numbers_of_factors_equal_those_of_the_paper(
    real_ratings: Callable[[str], Ratings], series: str, x: float
) -> None:
    cell, curve = cell_and_curve(7, series, x)
    trace = run_cell(cell, real_ratings("ml-1m"))
    assert trace.rmse[-1] == pytest.approx(dict(curve.points)[x], abs=0.01)


@pytest.mark.slow
def test_the_training_error_for_another_step_size_equals_that_of_the_paper(
    real_ratings: Callable[[str], Ratings],
) -> None:
    cell, curve = cell_and_curve(19, "eps_i=0.20", 0.001)
    trace = run_cell(cell, real_ratings("ml-1m"))
    assert trace.rmse[-1] == pytest.approx(dict(curve.points)[0.001], abs=0.01)


@pytest.mark.slow
def test_held_out_errors_are_far_above_the_training_errors_of_the_paper(
    real_ratings: Callable[[str], Ratings],
) -> None:
    """At the smallest ε_i of figure 4, where the paper shows 0.839."""
    cell, curve = cell_and_curve(4, "rmse", 0.15, held_out=True)
    trace = run_cell(cell, real_ratings("ml-1m"))
    last, error = trace.rmse_test[-1]
    assert last == 790 and error > 0.9 > dict(curve.points)[0.15]
