"""Secure integer noise against NumPy's default generator, on one and two threads.

Times include the key stream and the sampler; `gate` also includes recording, addition and
conversion.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import NoReturn

import numpy as np
import opendp.prelude as dp

from benchmarks.timing import best_of
from taciturn import _core
from taciturn.accounting.budget import Budget
from taciturn.accounting.units import Unit
from taciturn.data.pattern import Axis, Pattern
from taciturn.mechanisms.gate import Gate
from taciturn.mechanisms.grid import FeatureGrid, ValueGrid
from taciturn.mechanisms.noise import BLOCK, SecureNoise
from taciturn.mechanisms.query import Answer, Released
from taciturn.queries.values import GridValues, ValueView
from taciturn.queries.weighted_sums import WeightedSums
from tests.instruction_sets import SETS, using

BLOCKS = 256
ROUNDS = 5


def run() -> list[dict[str, object]]:
    """Million numbers per second for each, best of several interleaved rounds."""
    rows: list[dict[str, object]] = []
    for threads in (1, 2):
        contenders = {
            "numpy_pcg64": numpy_noise(threads),
            "taciturn": secure_noise(threads),
            **{f"taciturn_{name}": _on(name, threads) for name in SETS[1:]},
            "taciturn_gate": only_noise(BLOCKS * BLOCK // 16, 16, threads),
        }
        best = best_of(contenders, ROUNDS)
        speeds = {name: BLOCKS * BLOCK / seconds / 1e6 for name, seconds in best.items()}
        rows.append(
            {"threads": threads}
            | {f"{name}_million_per_s": round(speed) for name, speed in speeds.items()}
            | {"times_numpy": round(speeds["taciturn"] / speeds["numpy_pcg64"], 2)}
        )
    rows.append(
        {
            "draws_that_look_closer_percent": round(_closer_looks(), 2),
            "opendp_exact_million_per_s": round(_opendp(), 3),
        }
    )
    return rows


def _closer_looks() -> float:
    """Percentage of draws that are not accepted immediately."""
    table = _core.Ziggurat(2.0**24)
    inside = [
        (max(bound, -1) + 1) / width for bound, width in zip(table.inside, table.width, strict=True)
    ]
    return 100 * (1 - sum(inside) / len(inside))


def _opendp() -> float:
    """Million numbers per second of OpenDP's exact discrete Gaussian, on one thread."""
    dp.enable_features("contrib")
    count = 20_000
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    draw = dp.m.make_gaussian(*space, scale=2.0**24)
    start = perf_counter()
    draw([0] * count)
    return count / (perf_counter() - start) / 1e6


def _in_threads(work: Callable[[int], object], threads: int) -> Callable[[], object]:
    def every_block() -> None:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(BLOCKS)))

    return every_block


def numpy_noise(threads: int) -> Callable[[], object]:
    """NumPy's normal numbers."""
    streams = [np.random.Generator(np.random.PCG64(block)) for block in range(BLOCKS)]
    outs = [np.empty(BLOCK) for _ in range(8)]
    return _in_threads(lambda block: streams[block].standard_normal(out=outs[block % 8]), threads)


def secure_noise(threads: int) -> Callable[[], object]:
    """Secure noise in whole numbers, including its key stream."""
    source, table = SecureNoise(), _core.Ziggurat(2.0**24)
    return _in_threads(
        lambda block: source._integers(table, event=0, block=block, count=BLOCK), threads
    )


def _on(name: str, threads: int) -> Callable[[], object]:
    """Draw on another instruction set."""
    draw = secure_noise(threads)

    def run() -> None:
        with using(name):
            draw()

    return run


@dataclass(frozen=True, eq=False)
class _FixedValues:
    """Executor that always answers from the same values."""

    values: GridValues

    def answer(self, spec: WeightedSums) -> Answer:
        return spec.exact(self.values)

    def every_value(self) -> NoReturn:
        raise NotImplementedError("a gate reads no ratings")


def only_noise(rows: int, width: int, threads: int) -> Callable[[], Released]:
    """Release of a table without ratings, so that only the noise takes time."""
    grid, features = ValueGrid.for_scale(1, 5), FeatureGrid()
    nothing = np.empty(0, dtype=np.int32)
    pattern = Pattern(np.zeros(rows + 1, dtype=np.int64), nothing, 1)
    view = ValueView(grid=grid, axis=Axis.ITEMS)
    table = WeightedSums(
        purpose="benchmark",
        axis=Axis.ITEMS,
        pattern=pattern,
        view=view,
        features=features.quantise(np.ones((1, width))),
        feature_grid=features,
    )
    executor = _FixedValues(GridValues(view=view, pattern=pattern, steps=nothing))
    gate = Gate(budget=Budget.from_epsilon(1, 1e-5), unit=Unit.VALUE, threads=threads)
    return lambda: gate.release(table, executor, shares=(0.0005,))
