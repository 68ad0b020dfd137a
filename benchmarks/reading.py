"""Ratings built from a file of 20 million rows: time against polars' own read, memory against size.

Each run is a separate process, so that memory peaks do not mix. Plain reads of the three columns
and ours alternate. Rows are sorted by user, as in MovieLens files, or shuffled.
"""

import tempfile
from pathlib import Path

from benchmarks.processes import python
from benchmarks.report import Bar, Row

SIZE = "20m"
ROUNDS = 5
TIMES_POLARS = 4

_MAKE = """
from taciturn.data.synthetic import synthetic_ratings
frame = synthetic_ratings({size!r}).to_frame()
for order in ("by-user", "shuffled"):
    frame.write_parquet({folder!r} + f"/{{order}}.parquet")
    frame.write_csv({folder!r} + f"/{{order}}.csv")
    frame = frame.sample(fraction=1, shuffle=True, seed=1)
print(len(frame))
"""

_MEASURE = """
import json, time
import polars as pl
from taciturn.data import load
from taciturn.data import named

base = peak()
columns = ["user_id", "item_id", "rating"]
start = time.perf_counter()
{work}
seconds = time.perf_counter() - start
most = peak()
print(json.dumps({{"seconds": seconds, "megabytes": (most - base) / 1e6, "size": {size} / 1e6}}))
"""


def run() -> list[Row]:
    """Best times of interleaved rounds for each format, and their ratios."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        count = int(python(_MAKE.format(size=SIZE, folder=folder)))
        files = [
            (name, read, order)
            for order in ("by-user", "shuffled")
            for name, read in (("parquet", "pl.read_parquet"), ("csv", "pl.read_csv"))
        ]
        for name, read, order in files:
            path = str(Path(folder) / f"{order}.{name}")
            plain = _MEASURE.format(work=f"{read}({path!r}, columns=columns)", size="0")
            ours = _MEASURE.format(
                work=f"ratings = load({path!r}, scale='1:5:1')", size="ratings.nbytes"
            )
            measured = [(python(plain), python(ours)) for _ in range(ROUNDS)]
            polars = min(pair[0]["seconds"] for pair in measured)
            taciturn = min(pair[1]["seconds"] for pair in measured)
            size = measured[0][1]["size"]
            peak = min(pair[1]["megabytes"] for pair in measured)
            rows.append(
                {
                    "format": name,
                    "order": order,
                    "rows": count,
                    "polars_s": round(polars, 2),
                    "taciturn_s": round(taciturn, 2),
                    "times_polars": round(taciturn / polars, 2),
                    "size_mb": round(size),
                    "peak_mb": round(peak),
                    "times_size": round(peak / size, 2),
                }
            )
    return rows


def bars(rows: list[Row]) -> list[Bar]:
    """Maxima for reading."""
    names = [f"reading {row['format']} {row['order']}" for row in rows]
    return [
        *(
            Bar.at_most(f"{name}: peak, times the size", row["times_size"], 3)
            for name, row in zip(names, rows, strict=True)
        ),
        *(
            Bar.at_most(f"{name}: time, times polars' own", row["times_polars"], TIMES_POLARS)
            for name, row in zip(names, rows, strict=True)
            if row["format"] == "parquet"
        ),
    ]
