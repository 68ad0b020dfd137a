"""Time and memory of `als` with its defaults but 8 factors at ε = 1, by the number of ratings.

On synthetic ratings, each size in a process of its own.
"""

import json
import subprocess
import sys

SIZES = ("1m", "3m", "10m", "30m")

_RUN = """
import json, resource, sys
from time import perf_counter
from tacit.data.synthetic import synthetic_ratings
from tacit.privacy.budget import Budget
from tacit.solvers.als import AlsSolver

ratings = synthetic_ratings(sys.argv[1])
start = perf_counter()
AlsSolver(factors=8).fit(ratings, Budget.from_epsilon(1, 1e-5))
seconds = perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"ratings": len(ratings), "seconds": seconds, "peak": peak}))
"""


def run() -> list[dict[str, object]]:
    """Return seconds, seconds for each million ratings, and bytes at the peak for each rating."""
    rows: list[dict[str, object]] = []
    for size in SIZES:
        command = [sys.executable, "-c", _RUN, size]
        output = subprocess.run(command, capture_output=True, check=True).stdout  # noqa: S603
        found = json.loads(output)
        ratings = found["ratings"]
        rows.append(
            {
                "size": size,
                "ratings": ratings,
                "seconds": round(found["seconds"], 1),
                "seconds_per_million": round(found["seconds"] / ratings * 1e6, 1),
                "peak_mb": round(found["peak"] / 2**20),
                "peak_bytes_per_rating": round(found["peak"] / ratings),
            }
        )
    return rows
