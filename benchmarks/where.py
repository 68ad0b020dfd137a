"""Where the time of a training goes: kernels, noise, and the rest.

Percentages of the time of all threads. `rest` is NumPy, scipy and Python, mostly on one thread
while the others wait. Synthetic ratings at ε = 1; each training runs in a separate process. The
full benchmark takes hours; TACITURN_WHERE_SIZES and TACITURN_WHERE_SOLVERS select a part.
"""

import json
import os
import sys

from benchmarks.processes import python
from benchmarks.report import Row

SIZES = os.environ.get("TACITURN_WHERE_SIZES", "1m,100m").split(",")
SOLVERS = os.environ.get(
    "TACITURN_WHERE_SOLVERS",
    "als,als:rating,als:user,bias,bias:rating,bias:user,gradient,input-perturbation,paper,"
    "non-private",
).split(",")

_RUN = """
import json, sys, threading
from collections import Counter
from time import perf_counter
from taciturn import _core
from taciturn._internal.parallel import thread_count
from taciturn.data.synthetic import synthetic_ratings
from taciturn.accounting.budget import Budget
from taciturn.mechanisms.noise import SecureNoise
from taciturn.solvers.catalog import make_solver

spent, lock = Counter(), threading.Lock()

def timed(name, work):
    def run(*args, **kwargs):
        start = perf_counter()
        try:
            return work(*args, **kwargs)
        finally:
            with lock:
                spent[name] += perf_counter() - start
    return run

names = ("grid_sums", "error_sums", "float_sums", "pack_rows", "posterior_rows", "products")
for name in (*names, "ridge_rows"):
    setattr(_core, name, timed(name, getattr(_core, name)))
SecureNoise._integers = timed("noise", SecureNoise._integers)

name, _, unit = sys.argv[1].partition(":")
solver = make_solver(name, unit=unit or "value")
ratings = synthetic_ratings(sys.argv[2])
forget_peak()
start = perf_counter()
solver.fit(ratings, Budget.from_epsilon(1, 1e-5) if solver.is_private else None)
seconds = perf_counter() - start
print(json.dumps({"seconds": seconds, "threads": thread_count(None), "spent": spent,
                  "ratings": len(ratings), "peak": peak()}))
"""


def run() -> list[Row]:
    """Seconds and percentages of each solver at each size."""
    return [_row(solver, size) for size in SIZES for solver in SOLVERS]


def _row(solver: str, size: str) -> Row:
    found = python(_RUN, solver, size)
    whole = found["seconds"] * found["threads"]
    parts = {name: 100 * time / whole for name, time in sorted(found["spent"].items())}
    row: Row = {
        "solver": solver,
        "size": size,
        "seconds": round(found["seconds"], 1),
        "peak_gb": round(found["peak"] / 1e9, 2),
        "percent": ", ".join(
            f"{name} {part:.1f}" for name, part in sorted(parts.items(), key=lambda item: -item[1])
        ),
        "rest_percent": round(100 - sum(parts.values())),
    }
    print(json.dumps(row), file=sys.stderr, flush=True)  # progress: the full benchmark takes long
    return row
