"""End-to-end run with many ratings: generate, write, read, train, release, recommend.

Synthetic ratings of the size set by TACITURN_WHOLE_SIZE. The default is that of the Netflix Prize,
about 100 million ratings of 480,000 users and 17,770 items, and takes most of an hour. `als` is
trained with its defaults at ε = 1 under each unit, and so is `bias` under `value`, through the
command line. Every step is a separate process. `peak_gb` is its peak memory; `times_size` is the
memory of reading, without imports, relative to the size of the ratings.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.processes import python, taciturn
from benchmarks.report import Bar, Row

SIZE = os.environ.get("TACITURN_WHOLE_SIZE", "100m")
TRAININGS = {
    "unit rating": ("--unit", "rating"),
    "unit user": ("--unit", "user"),
    "bias, unit value": ("--solver", "bias", "--unit", "value"),
    "unit value": ("--unit", "value"),
}
SECONDS = {"unit rating": 45, "unit user": 80, "bias, unit value": 15, "unit value": 1200}
"""Maximum time of each training, whole command."""

_MAKE = """
import json, sys
from time import perf_counter
from taciturn.data.synthetic import synthetic_ratings

start = perf_counter()
ratings = synthetic_ratings(sys.argv[1])
made, most = perf_counter(), peak()
ratings.to_frame().write_parquet(sys.argv[2])
print(json.dumps({"ratings": len(ratings), "make": [made - start, most],
                  "write": [perf_counter() - made, peak()]}))
"""

_READ = """
import json, sys
from time import perf_counter
from taciturn.data import load
from taciturn.data import named

base, start = peak(), perf_counter()
ratings = load(sys.argv[1], scale="1:5:1")
print(json.dumps({"seconds": perf_counter() - start, "peak": peak(), "size": ratings.nbytes,
                  "more": peak() - base}))
"""


def run() -> list[Row]:
    """Seconds and memory of each step."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        source, mine = Path(folder) / "ratings.parquet", Path(folder) / "mine.csv"
        mine.write_text("item_id,rating\n1,5\n2,3\n3,1\n")
        made = python(_MAKE, SIZE, str(source))
        rows += [_row(step, *made[step], ratings=made["ratings"]) for step in ("make", "write")]
        read = python(_READ, str(source))
        sizes = {
            "file_gb": round(source.stat().st_size / 1e9, 2),
            "size_gb": round(read["size"] / 1e9, 2),
            "times_size": round(read["more"] / read["size"], 2),
        }
        rows.append(_row("read", read["seconds"], read["peak"], **sizes))
        for name, chosen in TRAININGS.items():
            release = str(Path(folder) / name)
            options = ["--scale", "1:5:1", "--epsilon", "1", *chosen, "--json"]
            done = taciturn("train", str(source), "-o", release, *options)
            rows.append(_row(f"train, {name}", done.found["seconds"], done.peak))
            rows.append(_row(f"train, {name}, whole command", done.seconds, done.peak))
            whose = ["--ratings", str(mine)] if "user" in chosen else ["--user", "17"]
            for step, more in (("verify", []), ("recommend", whose)):
                done = taciturn(step, release, *more, "--json")
                rows.append(_row(f"{step}, {name}", done.seconds, done.peak))
    return rows


def bars(rows: list[Row]) -> list[Bar]:
    """Maxima for the end-to-end run."""
    found: list[Bar] = []
    if SIZE != "100m":
        return found
    for row in rows:
        step = str(row["step"])
        if step == "read":
            found.append(Bar.at_most("reading: peak, times the size", row["times_size"], 3))
        if step.endswith("whole command"):
            name = step.removeprefix("train, ").removesuffix(", whole command")
            found.append(Bar.at_most(f"{step}, seconds", row["seconds"], SECONDS[name]))
            found.append(Bar.at_most(f"{step}, peak in GB", row["peak_gb"], 12))
    return found


def _row(step: str, seconds: float, peak: int, **more: object) -> Row:
    row: Row = {"step": step, "seconds": round(seconds, 2), "peak_gb": round(peak / 1e9, 2)} | more
    print(json.dumps(row), file=sys.stderr, flush=True)  # progress: the full benchmark takes long
    return row
