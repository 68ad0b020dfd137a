"""Time and memory of `als` at ε = 1 with 8 factors, by unit and by the number of ratings.

Synthetic ratings; each size runs in a separate process. Draws results/scaling.svg. The full
benchmark takes about an hour; TACITURN_SCALING_UNITS and TACITURN_SCALING_SIZES select a part.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from benchmarks.processes import python
from benchmarks.report import Row
from taciturn._internal.drawing import COLOURS, canvas, saved

UNITS = os.environ.get("TACITURN_SCALING_UNITS", "rating,user,value").split(",")
SIZES = os.environ.get("TACITURN_SCALING_SIZES", "1m,3m,10m,30m,100m").split(",")
DRAWING = Path(__file__).parent / "results" / "scaling.svg"

_RUN = """
import json, sys
from time import perf_counter
from taciturn.data.synthetic import synthetic_ratings
from taciturn.accounting.budget import Budget
from taciturn.solvers.als.solver import AlsSolver

unit, size = sys.argv[1:]
ratings = synthetic_ratings(size)
forget_peak()
start = perf_counter()
AlsSolver(unit=unit, factors=8).fit(ratings, Budget.from_epsilon(1, 1e-5))
seconds = perf_counter() - start
print(json.dumps({"ratings": len(ratings), "seconds": seconds, "peak": peak()}))
"""


def run() -> list[Row]:
    """Seconds, seconds per million ratings, and peak bytes per rating."""
    rows = [_row(unit, size) for unit in UNITS for size in SIZES]
    DRAWING.write_bytes(saved(draw(rows), "svg"))
    return rows


def draw(rows: list[Row]) -> Any:
    """Time and memory against the number of ratings; dotted lines are proportional to it."""
    drawing = canvas(9, 4)
    for place, (name, factor, label) in enumerate(
        (("seconds", 1, "seconds"), ("peak_mb", 1000, "GB at the peak")), start=1
    ):
        axes = drawing.add_subplot(1, 2, place)
        for unit, colour in zip(dict.fromkeys(row["unit"] for row in rows), COLOURS, strict=False):
            of_unit = [row for row in rows if row["unit"] == unit]
            ratings = [float(str(row["ratings"])) / 1e6 for row in of_unit]
            found = [float(str(row[name])) / factor for row in of_unit]
            axes.plot(ratings, found, "o-", color=colour, label=f"unit {unit}")
            last = found[-1] / ratings[-1]
            axes.plot(ratings, [last * x for x in ratings], ":", color=colour)
        axes.set(xscale="log", yscale="log", xlabel="million ratings", ylabel=label)
        axes.grid(alpha=0.3)
    axes.legend()
    return drawing


def _row(unit: str, size: str) -> Row:
    found = python(_RUN, unit, size)
    ratings = found["ratings"]
    row: Row = {
        "unit": unit,
        "size": size,
        "ratings": ratings,
        "seconds": round(found["seconds"], 1),
        "seconds_per_million": round(found["seconds"] / ratings * 1e6, 2),
        "peak_mb": round(found["peak"] / 1e6),
        "peak_bytes_per_rating": round(found["peak"] / ratings),
    }
    print(json.dumps(row), file=sys.stderr, flush=True)  # progress: the full benchmark takes long
    return row
