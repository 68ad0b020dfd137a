"""Texts of the owner about a release: dataset name, owner, purpose and contact. Public."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from taciturn._internal import validate
from taciturn.errors import InvalidParameter

LENGTH_MAX = 200
"""Maximum number of characters in a text of the owner."""


@dataclass(frozen=True, kw_only=True)
class About:
    """Texts of the owner for the card of a release. They are published and prove nothing.

    Each is one line of printable text of at most 200 characters, or None.

    Parameters
    ----------
    name
        Name of the dataset.
    owner
        Person or organisation that publishes the release.
    purpose
        Use that the release is meant for.
    contact
        Address for questions about the release.
    """

    name: str | None = None
    owner: str | None = None
    purpose: str | None = None
    contact: str | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None:
                continue
            text = validate.text(field.name, value, "it is printed on the card of the release")
            if len(text) > LENGTH_MAX:
                raise InvalidParameter(
                    f"{field.name} must have at most {LENGTH_MAX} characters, got {len(text):,}"
                )

    def given(self) -> dict[str, str]:
        """Texts that are given, by name."""
        return {name: text for name, text in asdict(self).items() if text is not None}

    @classmethod
    def from_dict(cls, document: Any) -> "About":
        """Texts that `given` returned; raises unless all names and texts are valid."""
        names = {field.name for field in fields(cls)}
        if not isinstance(document, dict) or not document or document.keys() - names:
            raise InvalidParameter("about must be an object of name, owner, purpose or contact")
        if None in document.values():
            raise InvalidParameter("about has a null field; omit an absent field instead")
        return cls(**document)
