"""Validation of arrays that callers pass."""

from typing import Any

import numpy as np
import numpy.typing as npt

from taciturn._internal import validate
from taciturn.errors import InvalidParameter

_KINDS = {"b": "booleans", "f": "numbers", "i": "whole numbers"}
_TYPES = {"b": "b", "f": "fiu", "i": "iu"}


def checked(name: str, value: object, kind: str, dimensions: int = 1) -> npt.NDArray[Any]:
    """Validated array; `kind` is `b` for booleans, `f` for numbers, `i` for whole numbers.

    Shows nothing of an array of another kind, which may be private.
    """
    is_array = isinstance(value, np.ndarray) and value.ndim == dimensions
    if is_array and isinstance(value, np.ndarray) and value.dtype.kind in _TYPES[kind]:
        return value
    shape = "vector" if dimensions == 1 else "matrix"
    raise InvalidParameter(
        f"{name} must be a NumPy {shape} of {_KINDS[kind]}, got {validate.shown(value)}"
    )
