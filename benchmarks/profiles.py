"""Training errors where the paper plots k = 44, with profiles of length 44 and 48.

MovieLens-1M with the paper's settings and numbers of iterations (figure 7). `off` is the difference
from the paper's error. Takes a few minutes; finished trainings are cached.
"""

from dataclasses import replace

from taciturn.errors import TaciturnError
from taciturn.reproduction.cells import Cell, cost
from taciturn.reproduction.figures import Settings, cells_of
from taciturn.reproduction.published import Quantity, configuration, figure
from taciturn.reproduction.runner import run_cells

PLOTTED, LENGTHS = 44, (44, 48)


def run() -> list[dict[str, object]]:
    """Error of each line with both lengths, and its difference from the paper's."""
    sweep = figure(7)
    lines = [curve for curve in sweep.curves if curve.quantity is Quantity.RMSE]
    wanted: dict[tuple[str, int], Cell] = {}
    for curve in lines:
        chosen = configuration(sweep, curve.series, PLOTTED)
        (cell,) = (
            each
            for each in cells_of(sweep, Settings())
            if each.configuration == chosen and not each.held_out
        )
        for factors in LENGTHS:
            wanted[curve.series, factors] = replace(
                cell, configuration=replace(chosen, factors=factors)
            )
    try:
        traces = run_cells((cell, cost(cell, cell.iterations or 0)) for cell in wanted.values())
    except TaciturnError as error:
        return [{"left out": str(error)}]
    published = {curve.series: dict(curve.points)[PLOTTED] for curve in lines}
    return [
        {
            "line": series,
            "factors": factors,
            "rmse": round(traces[cell].rmse[-1], 4),
            "paper": published[series],
            "off": round(traces[cell].rmse[-1] - published[series], 4),
        }
        for (series, factors), cell in wanted.items()
    ]
