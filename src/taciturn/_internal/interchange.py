"""Tables of pandas, which is optional: taken and returned, and never imported before a caller did.

Columns pass through NumPy. Conversion through Arrow would need pyarrow.
"""

from importlib import import_module
from typing import Any, Protocol

import polars as pl


class Pandas(Protocol):
    """A table, series or index of pandas, as type checkers see it."""

    @property
    def iat(self) -> Any:
        """Access to one value, which nothing but pandas has under this name."""
        ...


def is_pandas(value: object, *kinds: str) -> bool:
    """True if `value` has one of these pandas classes, or a subclass of it."""
    return any(
        base.__name__ in kinds and base.__module__.partition(".")[0] == "pandas"
        for base in type(value).__mro__
    )


def to_pandas(frame: pl.DataFrame) -> Any:
    """Table of pandas with the columns of a polars one."""
    pandas = import_module("pandas")
    return pandas.DataFrame({column.name: column.to_numpy() for column in frame})
