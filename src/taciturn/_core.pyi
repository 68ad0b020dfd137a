"""Compiled kernels of Taciturn."""

from typing import Any

import numpy as np
import numpy.typing as npt

SIGMA_MIN: float
SIGMA_MAX: float
FEATURE_NORM: int
ERROR_MAX: int
PREDICTION_MAX: int

def compiler() -> str: ...
def instruction_set() -> str: ...
def instruction_sets() -> list[str]: ...
def use_instruction_set(name: str) -> None: ...
def guard_aborts(line: bytes) -> None: ...
def unguard_aborts() -> None: ...
def exp_minus(w: float) -> float: ...
def grid_sums(
    starts: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int32],
    values: npt.NDArray[np.int32],
    lowest: int,
    highest: int,
    features: npt.NDArray[np.int32],
    out: npt.NDArray[np.int64],
    begin: int,
    end: int,
) -> None: ...
def error_sums(
    starts: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int32],
    values: npt.NDArray[np.int32],
    value_range: tuple[int, int],
    prediction_range: tuple[int, int],
    first: int,
    threshold: int,
    row_features: npt.NDArray[np.int16],
    row_lines: npt.NDArray[np.float32],
    column_features: npt.NDArray[np.int16],
    column_lines: npt.NDArray[np.float32],
    row_sums: npt.NDArray[np.int64],
    column_sums: npt.NDArray[np.int64],
    squares: npt.NDArray[np.int64],
    begin: int,
    end: int,
    weights: tuple[
        npt.NDArray[np.uint8],
        npt.NDArray[np.uint8],
        npt.NDArray[np.int32],
        npt.NDArray[np.int32],
    ]
    | None = None,
) -> None: ...
def pack_rows(
    features: npt.NDArray[np.float64],
    factors: npt.NDArray[np.float64],
    out: npt.NDArray[np.int16],
    begin: int,
    end: int,
) -> None: ...
def float_stride(width: int) -> int: ...
def float_rows(
    profiles: npt.NDArray[np.float64],
    bound: float,
    features: npt.NDArray[np.float32],
    scales: npt.NDArray[np.float32],
    begin: int,
    end: int,
) -> bool: ...
def float_sums(
    starts: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int32],
    values: npt.NDArray[np.int32],
    step: float,
    limit: float,
    features: npt.NDArray[np.float32],
    scales: npt.NDArray[np.float32],
    other_features: npt.NDArray[np.float32],
    other_scales: npt.NDArray[np.float32],
    inverse_step: float,
    sums: npt.NDArray[np.int64],
    squares: npt.NDArray[np.float64],
    begin: int,
    end: int,
) -> None: ...
def ridge_rows(
    starts: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int32],
    targets: npt.NDArray[np.float32],
    counterparts: npt.NDArray[np.float32],
    by_count: npt.NDArray[np.float64],
    fixed: npt.NDArray[np.float64],
    out: npt.NDArray[np.float32],
    inverse: npt.NDArray[np.float32],
    begin: int,
    end: int,
) -> None: ...
def posterior_rows(
    starts: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int32],
    table: npt.NDArray[np.float32],
    design: int,
    sums: npt.NDArray[np.float64],
    noise: npt.NDArray[np.float64],
    known: npt.NDArray[np.float64],
    precision: npt.NDArray[np.float64],
    pull: npt.NDArray[np.float64],
    means: npt.NDArray[np.float64],
    variances: npt.NDArray[np.float64],
    total: npt.NDArray[np.float64],
    begin: int,
    end: int,
) -> None: ...
def products(
    starts: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int32],
    rows: npt.NDArray[np.float32],
    others: npt.NDArray[np.float32],
    out: npt.NDArray[np.float32],
    begin: int,
    end: int,
) -> None: ...
def pattern_products(
    starts: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int32],
    values: npt.NDArray[np.float64],
    out: npt.NDArray[np.float64],
    begin: int,
    end: int,
) -> None: ...
def tabulate(
    keys: npt.NDArray[Any],
    values: npt.NDArray[Any],
    lowest: int,
    out: npt.NDArray[Any],
    begin: int,
    end: int,
) -> None: ...
def tabulated_sums(
    starts: npt.NDArray[np.int64],
    keys: npt.NDArray[np.int32],
    values: npt.NDArray[np.int64],
    lowest: int,
    out: npt.NDArray[np.int64],
    begin: int,
    end: int,
) -> None: ...
def add_covariances(
    columns: npt.NDArray[np.float32],
    weights: npt.NDArray[np.float64],
    scales: npt.NDArray[np.float64],
    one: int,
    bound: int,
    total: npt.NDArray[np.int64],
    begin: int,
    end: int,
) -> None: ...
def descend_rows(
    inward: npt.NDArray[np.float64],
    whitening: npt.NDArray[np.float64],
    outward: npt.NDArray[np.float64],
    eigenvalues: npt.NDArray[np.float64],
    noise: npt.NDArray[np.float64],
    constants: tuple[float, float, float],
    tables: tuple[npt.NDArray[np.float64], ...],
    by_row: tuple[npt.NDArray[np.float64], ...],
    out: npt.NDArray[np.float64],
    ends: tuple[int, int],
) -> None: ...
def top_k(
    factors: npt.NDArray[np.float32],
    biases: npt.NDArray[np.float32],
    users: npt.NDArray[np.float32],
    starts: npt.NDArray[np.int64],
    excluded: npt.NDArray[np.int32],
    items: npt.NDArray[np.int32],
    scores: npt.NDArray[np.float32],
    begin: int,
    end: int,
    interests: npt.NDArray[np.float32] | None = None,
    weight: float = 1.0,
) -> None: ...

class Ziggurat:
    """Discrete Gaussian sampler; see cpp/ziggurat.hpp."""

    def __init__(self, sigma: float) -> None: ...
    def fill(self, words: npt.NDArray[np.uint64], out: npt.NDArray[np.int64]) -> int | None: ...
    @property
    def sigma(self) -> float: ...
    @property
    def width(self) -> list[int]: ...
    @property
    def inside(self) -> list[int]: ...
    @property
    def lower(self) -> list[float]: ...
    @property
    def height(self) -> list[float]: ...
    @property
    def tail_start(self) -> int: ...
    @property
    def tail_cell(self) -> int: ...

def count_keys(keys: npt.NDArray[np.int32], counts: npt.NDArray[np.int64]) -> None: ...
def group(
    rows: npt.NDArray[np.int32],
    columns: npt.NDArray[np.int32],
    values: npt.NDArray[Any],
    places: npt.NDArray[np.int64],
    out_columns: npt.NDArray[np.int32],
    out_values: npt.NDArray[Any],
) -> None: ...
def transpose(
    starts: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int32],
    values: npt.NDArray[Any],
    begin: int,
    end: int,
    places: npt.NDArray[np.int64],
    out_columns: npt.NDArray[np.int32],
    out_values: npt.NDArray[Any],
) -> None: ...
def encode(
    values: npt.NDArray[np.float64],
    low: float,
    high: float,
    inverse_step: float,
    tolerance: float,
    codes: npt.NDArray[Any],
    outside: npt.NDArray[np.bool_],
) -> None: ...
def mark(ids: npt.NDArray[Any], low: int, present: npt.NDArray[np.bool_]) -> None: ...
def look_up(
    ids: npt.NDArray[Any],
    low: int,
    table: npt.NDArray[np.int32],
    out: npt.NDArray[np.int32],
) -> None: ...
