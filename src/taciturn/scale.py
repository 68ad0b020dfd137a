"""Rating scale: declared by the owner, public, and never inferred from the data."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from taciturn._internal import validate
from taciturn._internal.arrays import checked
from taciturn.errors import InvalidParameter

LARGEST = 1e30
"""Largest absolute value on a scale; ratings are stored in 32 bits."""

_ON_STEP = 1e-4
"""Maximum distance of a value from a step, in steps; 0.1 has no exact binary form."""

_HINT = "for example 1:5, or 0.5:5:0.5 with its step"


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Rating scale from `low` to `high`; with a `step`, the values low, low + step, …, high.

    The scale is a public fact that the owner declares. Inferring it from the data would reveal the
    smallest and the largest rating.
    """

    low: float
    high: float
    step: float | None = None

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, validate.finite(name, getattr(self, name), _HINT))
        if not -LARGEST <= self.low < self.high <= LARGEST:
            raise InvalidParameter(
                f"a scale must run from a smaller to a larger number, got "
                f"{self.low:g}:{self.high:g}; {_HINT}"
            )
        if self.step is not None:
            step = validate.positive("step", self.step, _HINT)
            levels = (self.high - self.low) / step
            if levels > 65535 or abs(levels - round(levels)) > 1e-9 * levels:
                raise InvalidParameter(
                    f"the step of a scale must divide its range into at most 65,535 levels, got "
                    f"{step:g}; omit or correct it"
                )
            object.__setattr__(self, "step", step)

    @classmethod
    def parse(cls, text: str) -> "Scale":
        """Scale from its text, low:high or low:high:step."""
        if not isinstance(text, str):
            raise InvalidParameter(f"a scale is text, got {validate.shown(text)}; {_HINT}")
        parts = text.split(":")
        try:
            numbers = [float(part) for part in parts]
        except ValueError:
            numbers = []
        if len(numbers) not in (2, 3):
            raise InvalidParameter(f"a scale is written low:high[:step], got {text!r}; {_HINT}")
        return cls(low=numbers[0], high=numbers[1], step=numbers[2] if len(numbers) == 3 else None)

    def __str__(self) -> str:
        ends = f"{self.low:g}:{self.high:g}"
        return ends if self.step is None else f"{ends}:{self.step:g}"

    @property
    def range(self) -> float:
        """Width τ of the scale, high − low."""
        return self.high - self.low

    @property
    def levels(self) -> npt.NDArray[np.float64]:
        """Every value of a scale with a step, in ascending order."""
        if self.step is None:
            raise InvalidParameter(f"the scale {self} has no step, so its values are not listed")
        return np.asarray(self.low + self.step * np.arange(round(self.range / self.step) + 1.0))

    @property
    def dtype(self) -> np.dtype[Any]:
        """Smallest type that holds every rating: an unsigned code with a step, else a float."""
        if self.step is None:
            return np.dtype(np.float32)
        return np.dtype(np.uint8 if round(self.range / self.step) <= 255 else np.uint16)

    def encode(
        self, values: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Codes of rating values, and a boolean array of those that are not on the scale.

        A value that is not on the scale becomes the nearest one that is; NaN becomes the lowest.
        Reads private data, elementwise.
        """
        checked("values", values, "f")
        from taciturn import _core  # reading the scale of a release needs no compiled code

        codes = np.empty(values.size, dtype=self.dtype)
        outside = np.empty(values.size, dtype=np.bool_)
        inverse = 0.0 if self.step is None else 1 / self.step
        _core.encode(values, self.low, self.high, inverse, _ON_STEP, codes, outside)
        return codes, outside

    def decode(self, codes: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Rating values of codes. Reads private data, elementwise."""
        if self.step is None:
            return checked("codes", codes, "f").astype(np.float32, copy=False)
        checked("codes", codes, "i")
        decoded: npt.NDArray[np.float32] = self.levels.astype(np.float32)[codes]
        return decoded
