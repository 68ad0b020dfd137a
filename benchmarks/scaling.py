"""Time and memory of `als` at ε = 1 with 8 factors, by unit and by the number of ratings.

On synthetic ratings, each size in a process of its own. All of it takes about an hour.
"""

import json
import sys

from benchmarks.processes import python

UNITS = ("rating", "user", "value")
SIZES = ("1m", "3m", "10m", "30m", "100m")

_RUN = """
import json, sys
from time import perf_counter
from tacit.data.synthetic import synthetic_ratings
from tacit.privacy.budget import Budget
from tacit.solvers.als import AlsSolver

unit, size = sys.argv[1:]
ratings = synthetic_ratings(size)
start = perf_counter()
AlsSolver(unit=unit, factors=8).fit(ratings, Budget.from_epsilon(1, 1e-5))
seconds = perf_counter() - start
print(json.dumps({"ratings": len(ratings), "seconds": seconds, "peak": peak()}))
"""


def run() -> list[dict[str, object]]:
    """Return seconds, seconds for each million ratings, and bytes at the peak for each rating."""
    return [_row(unit, size) for unit in UNITS for size in SIZES]


def _row(unit: str, size: str) -> dict[str, object]:
    found = python(_RUN, unit, size)
    ratings = found["ratings"]
    row: dict[str, object] = {
        "unit": unit,
        "size": size,
        "ratings": ratings,
        "seconds": round(found["seconds"], 1),
        "seconds_per_million": round(found["seconds"] / ratings * 1e6, 2),
        "peak_mb": round(found["peak"] / 2**20),
        "peak_bytes_per_rating": round(found["peak"] / ratings),
    }
    print(json.dumps(row), file=sys.stderr, flush=True)  # the whole takes long
    return row
