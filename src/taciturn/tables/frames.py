"""Ratings that are in memory already, as one polars table with the columns of their roles."""

import os
from typing import Any

import numpy as np
import polars as pl

from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.tables.columns import ROLES, find_columns


def is_path(source: object) -> bool:
    """Return whether `source` names files rather than holding data."""
    return isinstance(source, str | os.PathLike)


def to_frame(source: Any, columns: dict[str, str] | None) -> pl.DataFrame:
    """Return a frame, Arrow object, sparse matrix or tuple of arrays as a table by role."""
    if isinstance(source, tuple | list):
        if len(source) not in (3, 4):
            raise InvalidParameter(
                f"give three arrays, users, items and ratings, or four with timestamps; got "
                f"{len(source)}"
            )
        return _table(dict(zip(ROLES, source, strict=False)))
    if hasattr(source, "tocoo"):
        coo = source.tocoo()
        return _table({"user": coo.row, "item": coo.col, "rating": coo.data})
    if isinstance(source, pl.LazyFrame):
        try:
            source = source.collect()
        except (pl.exceptions.PolarsError, OSError):
            raise InvalidDocument("the lazy frame cannot be collected") from None
    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
        # Column by column through NumPy: unlike the Arrow route it needs no pyarrow.
        names = {str(name): name for name in source.columns}
        found = vars(find_columns(list(names), columns))
        chosen = {role: names[name] for role, name in found.items() if name is not None}
        return _table({role: source[name].to_numpy() for role, name in chosen.items()})
    if not isinstance(source, pl.DataFrame):
        source = _from_arrow(source)
    found = vars(find_columns(source.columns, columns))
    return pl.DataFrame({role: source[name] for role, name in found.items() if name is not None})


def _from_arrow(source: object) -> pl.DataFrame:
    if not hasattr(source, "__arrow_c_stream__"):
        raise InvalidParameter(
            f"cannot read ratings from {type(source).__name__}; give a path, a data frame, an "
            "Arrow table, a sparse matrix or three arrays"
        )
    try:
        return pl.DataFrame(source)
    except (pl.exceptions.PolarsError, TypeError, ValueError):
        raise InvalidDocument("the Arrow object cannot be read as a table") from None


def _table(columns: dict[str, Any]) -> pl.DataFrame:
    series = {role: _series(role, column) for role, column in columns.items()}
    if len({len(each) for each in series.values()}) > 1:
        raise InvalidParameter("users, items and ratings must have the same length")
    return pl.DataFrame(series)


def _series(role: str, values: object) -> pl.Series:
    if isinstance(values, pl.Series):
        return values
    # A list may mix types, which NumPy would turn into text.
    array = np.asarray(values, dtype=object if isinstance(values, list | tuple) else None)
    if array.ndim != 1:
        raise InvalidParameter(f"the {role} column must be one-dimensional")
    try:
        if array.dtype == object:
            # A missing text in pandas is a NaN among texts.
            cells = [None if _is_missing(cell) else cell for cell in array.tolist()]
            return pl.Series(cells, strict=True)
        return pl.Series(array)
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):
        raise InvalidDocument(
            f"the {role} column mixes types; make it all numbers or all text"
        ) from None


def _is_missing(cell: object) -> bool:
    """Return whether a cell of an object array stands for nothing: None, NaN or pandas's NA."""
    return (
        cell is None
        or type(cell).__name__ == "NAType"
        or (isinstance(cell, float) and cell != cell)
    )
