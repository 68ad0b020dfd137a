"""Peak rates of the machine and the fused gradient in floats, from benchmarks/native.cpp."""

import ctypes
import os
import platform
import re
import shutil
import subprocess
from functools import cache, partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.timing import best_of
from taciturn._internal import parallel
from taciturn.data.ratings import Csr

SOURCE = Path(__file__).with_suffix(".cpp")
BUILD = Path(__file__).parents[1] / "build" / "benchmarks"
FLAGS = ("-std=c++20", "-O3", "-march=native", "-shared", "-fPIC")
LANES = 16

Floats = npt.NDArray[np.float32]


class _Table(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("starts", "columns", "values")]


class _Profiles(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("main", "tail")]


def processor() -> str:
    """Model name of the processor."""
    try:
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        found = None
    return found.group(1) if found else platform.processor() or platform.machine()


@cache
def _library() -> ctypes.CDLL:
    """Compiled library, built on first use."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or "g++"
    described = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
    facts = repr((compiler, described, FLAGS, processor())).encode()
    key = sha256(SOURCE.read_bytes() + facts).hexdigest()[:16]
    built = BUILD / f"native-{key}.so"
    if not built.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        part = built.with_suffix(f".{os.getpid()}")
        subprocess.run([compiler, *FLAGS, str(SOURCE), "-o", str(part)], check=True)
        part.rename(built)
    loaded = ctypes.CDLL(str(built))
    long, pointer = ctypes.c_int64, ctypes.c_void_p
    loaded.triad.argtypes = [pointer, pointer, pointer, ctypes.c_double, long]
    loaded.triad.restype = None
    loaded.multiply_add.argtypes = [long, ctypes.c_float, ctypes.c_float]
    loaded.multiply_add.restype = ctypes.c_float
    loaded.float_pass.argtypes = [
        long,
        _Table,
        *[_Profiles] * 2,
        long,
        *[_Profiles] * 2,
        long,
        long,
    ]
    loaded.float_pass.restype = ctypes.c_bool
    return loaded


def triad_gb_per_s(threads: int, size: int = 2**25) -> float:
    """Memory bandwidth of a[i] = b[i] + f · c[i], reads and writes, in 10⁹ bytes per second."""
    a, b, c = (np.ones(size) for _ in range(3))

    def work(begin: int, end: int) -> None:
        places = (each[begin:end].ctypes.data for each in (a, b, c))
        _library().triad(*places, 3.0, end - begin)

    part = -(-size // threads)
    run = partial(parallel.for_ranges, work, size, size=part, threads=threads)
    return 3 * 8 * size / best_of({"triad": run})["triad"] / 1e9


def multiply_adds_per_ns(threads: int, rounds: int = 2**23) -> float:
    """Peak number of float multiply-adds per nanosecond."""

    def work(_: int, __: int) -> None:
        _library().multiply_add(rounds, 0.999, 0.001)

    run = partial(parallel.for_ranges, work, threads, size=1, threads=threads)
    return threads * rounds * 12 * LANES / best_of({"fma": run})["fma"] / 1e9


class FloatPass:
    """Both gradients of ½ Σ (⟨x, y⟩ − v)² in floats: the baseline of the pass on the grid.

    Parameters
    ----------
    pattern
        Compressed rows.
    values
        One number for each rating.
    rows, columns
        Profiles of both axes, with 20 or 64 factors.
    threads
        Number of threads; each processes a range of rows.
    """

    def __init__(
        self, pattern: Csr, values: Floats, rows: Floats, columns: Floats, threads: int
    ) -> None:
        self._kept = pattern, values  # the arguments below point into them
        self._factors = rows.shape[1]
        self._rows, self._columns, self._threads = _split(rows), _split(columns), threads
        even = np.linspace(0, pattern.columns.size, threads + 1)[1:-1]
        edges = [0, *np.searchsorted(pattern.starts, even).tolist(), pattern.starts.size - 1]
        self._parts = list(pairwise(edges))
        self._of_rows = [_aligned(each.shape) for each in self._rows]
        self._of_columns = [[_aligned(each.shape) for each in self._columns] for _ in self._parts]
        table = _Table(*(each.ctypes.data for each in (pattern.starts, pattern.columns, values)))
        given = self._factors, table, _places(self._rows), _places(self._columns), len(columns)
        self._arguments = [
            (*given, _places(self._of_rows), _places(of_columns), begin, end)
            for (begin, end), of_columns in zip(self._parts, self._of_columns, strict=True)
        ]

    def run(self) -> None:
        """Compute the gradients."""
        float_pass = _library().float_pass

        def work(part: int, _: int) -> None:
            if not float_pass(*self._arguments[part]):
                raise ValueError(f"there is no pass for {self._factors} factors")

        parallel.for_ranges(work, len(self._parts), size=1, threads=self._threads)
        for more in self._of_columns[1:]:
            for total, part in zip(self._of_columns[0], more, strict=True):
                total += part

    def gradients(self) -> tuple[Floats, Floats]:
        """Gradients by row and by column."""
        self.run()
        return np.hstack(self._of_rows), np.hstack(self._of_columns[0])


def _places(tables: list[Floats]) -> _Profiles:
    return _Profiles(*(table.ctypes.data for table in tables))


def _split(table: Floats) -> list[Floats]:
    """Full vectors of each row, and its remaining columns."""
    main = table.shape[1] // LANES * LANES
    parts = [_aligned((len(table), width)) for width in (main, table.shape[1] - main)]
    parts[0][:], parts[1][:] = table[:, :main], table[:, main:]
    return parts


def _aligned(shape: tuple[int, ...]) -> Floats:
    """Zeros, aligned to a cache line."""
    size = 4 * shape[0] * shape[1]
    memory = np.zeros(size + 64, dtype=np.uint8)
    begin = -memory.ctypes.data % 64
    return memory[begin : begin + size].view(np.float32).reshape(shape)
