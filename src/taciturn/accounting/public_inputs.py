"""Public inputs of a training: data that is public and that no guarantee covers.

They cost no privacy. A ledger names each with the SHA-256 of its bytes, so that a reader can see
which data the release relies on and check that it is really public.
"""

import re
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from taciturn._internal import validate
from taciturn.accounting import text
from taciturn.errors import InvalidDocument, InvalidParameter


class InputKind(StrEnum):
    """Kind of a public input."""

    ITEM_FEATURES = "item-features"
    PUBLIC_RATINGS = "public-ratings"


@dataclass(frozen=True, kw_only=True)
class PublicInput:
    """A public input: its kind, name and SHA-256.

    Attributes
    ----------
    kind
        Kind of the input.
    name
        Name without blanks, such as that of a file, so that it cannot pass for a sentence of the
        certificate.
    sha256
        SHA-256 of its bytes, as given.
    columns
        Number of feature columns that were used; None for other kinds.
    ratings
        Number of public ratings; None for other kinds.
    """

    kind: InputKind
    name: str
    sha256: str
    columns: int | None = None
    ratings: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", validate.choice("kind", self.kind, InputKind))
        if not (isinstance(self.name, str) and re.fullmatch(validate.SOURCE_NAME, self.name)):
            raise InvalidParameter(
                "the name of a public input must have 1 to 64 letters, digits or any of . : _ + -"
            )
        if not (isinstance(self.sha256, str) and re.fullmatch("[0-9a-f]{64}", self.sha256)):
            raise InvalidParameter("sha256 must be 64 lower-case hexadecimal digits")
        counted = _COUNTED[self.kind]
        validate.positive_integer(counted, getattr(self, counted), f"it counts {self.kind}")
        if {name for name in _COUNTED.values() if getattr(self, name) is not None} != {counted}:
            raise InvalidParameter(f"a public input of kind {self.kind} counts only {counted}")

    @property
    def sentence(self) -> str:
        """Sentence of the certificate about this input."""
        return text.PUBLIC_INPUTS[self.kind].format(
            name=self.name, sha256=self.sha256, count=getattr(self, _COUNTED[self.kind])
        )

    def to_dict(self) -> dict[str, Any]:
        """Input as JSON types, with the count of its kind."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, document: object) -> "PublicInput":
        """Input that `to_dict` wrote; checks everything."""
        if not (isinstance(document, dict) and document.keys() in _FIELDS):
            raise InvalidDocument(
                "a public input has exactly the fields kind, name, sha256 and the count of its kind"
            )
        return cls(**document)


_COUNTED = {InputKind.ITEM_FEATURES: "columns", InputKind.PUBLIC_RATINGS: "ratings"}
"""Field that counts what an input of each kind has."""

_SHARED = {"kind", "name", "sha256"}
_FIELDS = [_SHARED | {count} for count in _COUNTED.values()]
