"""Single points of figures on the paper's data, at its numbers of iterations."""

from typing import Any

import pytest

from taciturn.data import load
from taciturn.reproduction.cells import run_cell
from taciturn.reproduction.figures import Settings, cells_of
from taciturn.reproduction.published import Quantity, configuration, figure


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "series", "x", "bar"),
    [
        (5, "rmse", 0.2, 0.003),
        (7, "eps_i=0.20", 60, 0.01),
        (7, "eps_i=0.90", 4, 0.01),
        (7, "non-private", 12, 0.01),
        (7, "eps_i=0.30", 44, 0.01),
        (19, "eps_i=0.20", 0.001, 0.01),
        (19, "eps_i=0.50", 0.0007, 0.01),
    ],
)
def test_training_errors_equal_those_of_the_paper(
    real_set: Any, number: int, series: str, x: float, bar: float
) -> None:
    found = figure(number)
    real_set({"ml-1m": "ml-1m.zip"}.get(found.data.source, "netflix-slice.parquet"))
    wanted = configuration(found, series, x)
    (cell,) = (
        cell
        for cell in cells_of(found, Settings())
        if cell.configuration == wanted and not cell.held_out
    )
    (line,) = (
        curve for curve in found.curves if (curve.series, curve.quantity) == (series, Quantity.RMSE)
    )
    trace = run_cell(cell, load(found.data.source))
    assert trace.rmse[-1] == pytest.approx(dict(line.points)[x], abs=bar)
