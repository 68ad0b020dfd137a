"""Tables and arrays as file contents, to be written atomically."""

import io
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn._internal.forks import check_fork

PRIVATE = "taciturn.private"
"""Key of the metadata by which a private file of a training is recognised."""


class Private(StrEnum):
    """Kind of a private file, stated in the metadata of its Parquet footer."""

    ITEMS = "item profiles without noise"
    PSEUDONYMS = "map from user ids to pseudonyms"


def parquet_bytes(table: pl.DataFrame, *, private: Private | None = None) -> bytes:
    """Content of a Parquet file with a table; a private file says which kind it is."""
    check_fork()
    content = io.BytesIO()
    table.write_parquet(content, metadata=None if private is None else {PRIVATE: private.value})
    return content.getvalue()


def npz_bytes(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Content of an npz file with arrays, uncompressed."""
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    return content.getvalue()
