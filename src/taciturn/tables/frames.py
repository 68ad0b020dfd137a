"""In-memory tables as a polars frame with one column per role."""

import os
from typing import Any, TypeGuard

import numpy as np
import polars as pl

from taciturn._internal.forks import check_fork
from taciturn._internal.interchange import is_pandas
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.tables.columns import Roles, find_columns


def is_path(source: object) -> TypeGuard[str | os.PathLike[str]]:
    """True if `source` is a path rather than data."""
    return isinstance(source, str | os.PathLike)


def to_frame(source: Any, roles: Roles, columns: dict[str, str] | None = None) -> pl.DataFrame:
    """Frame with one column per role, from a frame, Arrow object, sparse matrix or arrays.

    Arrays are given in the order of the roles. The rows, columns and values of a sparse matrix have
    the first three roles.
    """
    check_fork()
    order = [role.name for role in roles]
    if isinstance(source, tuple | list):
        least = sum(role.is_required for role in roles)
        if not least <= len(source) <= len(roles):
            raise InvalidParameter(
                f"pass {least} to {len(roles)} arrays ({', '.join(order)}), got {len(source)}"
            )
        return _table(dict(zip(order, source, strict=False)))
    if hasattr(source, "tocoo"):
        coo = source.tocoo()
        return _table(dict(zip(order, (coo.row, coo.col, coo.data), strict=False)))
    if isinstance(source, pl.LazyFrame):
        source = _collected(source)
    if is_pandas(source, "DataFrame"):
        names = {str(name): name for name in source.columns}
        found = find_columns(list(names), roles, columns)
        return _table({role: source[names[name]].to_numpy() for role, name in found.items()})
    if not isinstance(source, pl.DataFrame):
        source = _from_arrow(source)
    found = find_columns(source.columns, roles, columns)
    return pl.DataFrame({role: source[name] for role, name in found.items()})


def to_whole_frame(source: Any) -> pl.DataFrame:
    """Frame with all columns of a frame or an Arrow object."""
    check_fork()
    if isinstance(source, pl.LazyFrame):
        source = _collected(source)
    if is_pandas(source, "DataFrame"):
        return _table({str(name): source[name].to_numpy() for name in source.columns})
    return source if isinstance(source, pl.DataFrame) else _from_arrow(source)


def _collected(source: pl.LazyFrame) -> pl.DataFrame:
    try:
        return source.collect()
    except (pl.exceptions.PolarsError, OSError):
        raise InvalidDocument("the lazy frame cannot be collected; pass a data frame") from None


def _from_arrow(source: object) -> pl.DataFrame:
    if not hasattr(source, "__arrow_c_stream__"):
        raise InvalidParameter(
            f"cannot read a table from {type(source).__name__}; pass a path, a data frame, an "
            "Arrow table, a sparse matrix or arrays"
        )
    try:
        return pl.DataFrame(source)
    except (pl.exceptions.PolarsError, TypeError, ValueError):
        raise InvalidDocument("the Arrow object cannot be read as a table") from None


def _table(columns: dict[str, Any]) -> pl.DataFrame:
    series = {role: _series(role, column) for role, column in columns.items()}
    if len({len(each) for each in series.values()}) > 1:
        raise InvalidParameter(f"the arrays ({', '.join(series)}) must have the same length")
    return pl.DataFrame(series)


def _series(role: str, values: object) -> pl.Series:
    if isinstance(values, pl.Series):
        return values
    # NumPy would convert a list of mixed types to text.
    array = np.asarray(values, dtype=object if isinstance(values, list | tuple) else None)
    if array.ndim != 1:
        raise InvalidParameter(f"the {role} column must be one-dimensional")
    try:
        if array.dtype == object:
            # pandas represents missing text as NaN.
            cells = [None if _is_missing(cell) else cell for cell in array.tolist()]
            return pl.Series(cells, strict=True)
        return pl.Series(array)
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):
        raise InvalidDocument(
            f"the {role} column mixes types; make it all numbers or all text"
        ) from None


def _is_missing(cell: object) -> bool:
    """True if a cell of an object array is missing: None, NaN or the NA of pandas."""
    return (
        cell is None
        or type(cell).__name__ == "NAType"
        or (isinstance(cell, float) and cell != cell)
    )
