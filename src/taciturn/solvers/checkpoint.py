"""Serialization of algorithm states: frozen dataclasses of arrays, floats and such dataclasses."""

import io
import zlib
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

State = TypeVar("State")

_STEP = "step"

_DAMAGE = (OSError, EOFError, ValueError, TypeError, KeyError, RuntimeError, BadZipFile, zlib.error)
"""Exceptions raised when arrays are read from damaged or foreign bytes."""


def check_state(state: Any) -> None:
    """Raise `TypeError` unless every part of a state can be saved."""
    _flat("state", state)


def pack(step: int, state: Any) -> bytes:
    """Bytes of a state and the number of steps that led to it."""
    content = io.BytesIO()
    arrays: dict[str, Any] = {_STEP: np.int64(step), **_flat("state", state)}
    np.savez(content, **arrays)
    return content.getvalue()


def unpack(content: bytes, like: State) -> tuple[int, State] | None:
    """Number of steps and state that `pack` wrote; None if the bytes do not hold one.

    `like` is any state of the same algorithm.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return int(arrays[_STEP]), _like("state", like, dict(arrays))
    except _DAMAGE:
        return None


def _flat(name: str, part: Any) -> dict[str, npt.NDArray[Any]]:
    if is_dataclass(part):
        found: dict[str, npt.NDArray[Any]] = {}
        for field in fields(part):
            found |= _flat(f"{name}.{field.name}", getattr(part, field.name))
        return found
    if not isinstance(part, np.ndarray | float):
        raise TypeError(f"{name} must be an array or a float")
    return {name: np.asarray(part)}


def _like(name: str, part: Any, arrays: dict[str, npt.NDArray[Any]]) -> Any:
    if is_dataclass(part) and not isinstance(part, type):
        parts = {
            field.name: _like(f"{name}.{field.name}", getattr(part, field.name), arrays)
            for field in fields(part)
        }
        return type(part)(**parts)
    return float(arrays[name]) if isinstance(part, float) else arrays[name]
