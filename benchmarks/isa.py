"""Kernels and a training on every instruction set of this processor, in one run.

Medians of five interleaved rounds on two threads, on MovieLens-1M, or without it in TACITURN_DATA
on synthetic ratings of its size. `noise` includes the key stream. `grid_ms` is the pass over
prediction errors with 20 factors in exact integers, and `float_ms` that of `paper` in floats, which
computes both gradients too. `pass_20_ms` and `pass_64_ms` are one pass of least squares over both
axes, and `train_s` is `als` at ε = 1 under unit `value` without interest. The row of lenskit has
its own time of a pass, if it could be installed.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.kernels import least_squares_pass
from benchmarks.noise import BLOCKS, numpy_noise, secure_noise
from benchmarks.report import Bar, Row
from benchmarks.training import ratings_at_hand
from taciturn.accounting.budget import Budget
from taciturn.data.pattern import Axis
from taciturn.data.ratings import Ratings
from taciturn.mechanisms.grid import ValueGrid
from taciturn.mechanisms.noise import BLOCK
from taciturn.queries.error_pass import ErrorPass
from taciturn.queries.features import AxisFeatures
from taciturn.queries.float_pass import FloatFeatures, FloatPass
from taciturn.queries.prediction_errors import PredictionErrorSums
from taciturn.queries.values import ValueView, on_grid
from taciturn.solvers.als.solver import AlsSolver
from taciturn.solvers.contract import Session
from tests.instruction_sets import SETS, using

FACTORS, RANKS, THREADS, ROUNDS, MEAN = 20, (20, 64), 2, 5, 3.5
LEVELS = 128  # of ratings on the grid, about as many as trainings use

Work = Callable[[], object]


def run() -> list[Row]:
    """One row for each instruction set, one for NumPy, and one for lenskit."""
    ratings, source = ratings_at_hand()
    references = _references()
    contenders: dict[tuple[str, str], Work] = {}
    for name in SETS:
        with using(name):  # features are laid out for the instruction set
            kernels = _kernels(ratings)
        contenders |= {(name, each): _on(name, work) for each, work in kernels.items()}
    times = _medians(contenders | {("reference", each): work for each, work in references.items()})
    rows: list[Row] = [_row(name, times, kernels, source) for name in SETS]
    rows.append(_row("reference", times, references, source))
    found = _lenskit(ratings)
    return [*rows, {"instruction_set": "lenskit", "ratings": source} | found]


def bars(rows: list[Row]) -> list[Bar]:
    """Least speed with AVX2."""
    by_name: dict[str, Any] = {str(row["instruction_set"]): row for row in rows}
    found = []
    avx2, avx512, reference, lenskit = (
        by_name.get(name, {}) for name in ("avx2", "avx512", "reference", "lenskit")
    )
    if not avx2:
        return []
    ratio = round(avx2["noise_million_per_s"] / reference["noise_million_per_s"], 2)
    found.append(Bar.at_least("AVX2: noise, times NumPy's", ratio, 1.5))
    ratio = round(avx2["grid_ms"] / avx2["float_ms"], 2)
    found.append(Bar.at_most("AVX2: pass on the grid, times that in floats", ratio, 2))
    if avx512:
        ratio = round(avx2["train_s"] / avx512["train_s"], 2)
        found.append(Bar.at_most("AVX2: als under value, times AVX-512", ratio, 1.6))
    for rank in RANKS:
        if f"pass_{rank}_ms" in lenskit:
            ratio = round(avx2[f"pass_{rank}_ms"] / lenskit[f"pass_{rank}_ms"], 2)
            found.append(
                Bar.at_most(f"AVX2: a pass with {rank} factors, times lenskit's", ratio, 1)
            )
    return found


def _on(name: str, work: Work) -> Work:
    def run() -> None:
        with using(name):
            work()

    return run


def _medians(contenders: Mapping[Any, Work]) -> dict[Any, float]:
    """Median time of each contender over interleaved rounds, in seconds."""
    times: dict[Any, list[float]] = {key: [] for key in contenders}
    for _ in range(ROUNDS):
        for key, work in contenders.items():
            start = perf_counter()
            work()
            times[key].append(perf_counter() - start)
    return {key: median(each) for key, each in times.items()}


def _row(
    name: str, times: Mapping[Any, float], works: Mapping[str, Work], source: str
) -> dict[str, Any]:
    row: dict[str, Any] = {"instruction_set": name, "ratings": source}
    for each in works:
        seconds = times[name, each]
        if each == "noise":
            row["noise_million_per_s"] = round(BLOCKS * BLOCK / seconds / 1e6)
        elif each == "train":
            row["train_s"] = round(seconds, 2)
        else:
            row[f"{each}_ms"] = round(1e3 * seconds, 2)
    return row


def _profiles(ratings: Ratings) -> Iterator[np.ndarray[Any, np.dtype[np.float64]]]:
    """Random profiles of users and items."""
    random = np.random.default_rng(1)
    for count in ratings.shape:
        yield random.normal(size=(count, FACTORS)) / FACTORS**0.5


def _kernels(ratings: Ratings) -> dict[str, Work]:
    """Work that is done on every instruction set."""
    view = ValueView(grid=ValueGrid.for_scale(1, 5, LEVELS), axis=Axis.USERS)
    bases = np.full(ratings.shape[0], MEAN), np.zeros(ratings.shape[1])
    users, items = (
        AxisFeatures(rows, 1 / np.linalg.norm(rows, axis=1), base)
        for rows, base in zip(_profiles(ratings), bases, strict=True)
    )
    sums = PredictionErrorSums(
        purpose="benchmark",
        errors=ErrorPass(view),
        users=users,
        items=items,
        pattern=ratings.pattern,
    )
    values, budget = on_grid(ratings, view), Budget.from_epsilon(1, 1e-5)
    floats = FloatPass(step=2.0**-20, limit=16.0)
    left, right = (FloatFeatures(rows, 1.0) for rows in _profiles(ratings))
    solver, session = AlsSolver(unit="value", interest=False), Session(seed=1, threads=THREADS)
    return {
        "noise": secure_noise(THREADS),
        "grid": lambda: sums.tables(values, THREADS),
        "float": lambda: floats.run(values, left, right, THREADS),
        **{f"pass_{rank}": least_squares_pass(ratings, rank)[1] for rank in RANKS},
        "train": lambda: solver.fit(ratings, budget, session),
    }


def _references() -> dict[str, Work]:
    """NumPy's generator."""
    return {"noise": numpy_noise(THREADS)}


def _lenskit(ratings: Ratings) -> dict[str, Any]:
    """Milliseconds of lenskit's pass on the same ratings, or why there are none."""
    with TemporaryDirectory() as folder:
        try:
            return {
                f"pass_{rank}_ms": round(1e3 * seconds, 2)
                for rank, seconds in peers.lenskit_passes(ratings, Path(folder), RANKS)
            }
        except peers.Failed as reason:
            return {"status": str(reason)}
