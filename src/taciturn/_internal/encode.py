"""Tables and arrays as file contents, to be written atomically."""

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal.forks import check_fork


def parquet_bytes(table: pl.DataFrame) -> bytes:
    """Content of a Parquet file with a table."""
    check_fork()
    content = io.BytesIO()
    table.write_parquet(content)
    return content.getvalue()


def npz_bytes(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Content of an npz file with arrays, uncompressed."""
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    return content.getvalue()
