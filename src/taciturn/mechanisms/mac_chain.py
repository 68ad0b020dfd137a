"""JSON lines with a chained MAC, so that no line can be edited, removed or moved unnoticed.

The MAC of a line covers that line and the MAC of the line before it. Its key is derived from the
noise key of the run. Whoever can read the noise key can forge lines, as they can undo the noise.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from taciturn.accounting.journal import MAC
from taciturn.errors import InvalidDocument


@dataclass(frozen=True, kw_only=True)
class MacChain:
    """MAC key of a file, and the MAC of its last line; at first, the name of the file."""

    key: bytes = field(repr=False)
    last: str

    def extended(self, *documents: dict[str, Any]) -> "tuple[bytes, MacChain]":
        """Lines to append for new documents, and the chain that ends with them."""
        last, lines = self.last, []
        for document in documents:
            content = f"{last}\n{_text(document)}".encode()
            last = hashlib.blake2b(content, key=self.key, digest_size=16).hexdigest()
            lines.append(_text(document | {MAC: last}) + "\n")
        return "".join(lines).encode(), replace(self, last=last)

    def checked(self, path: Path, documents: Sequence[dict[str, Any]]) -> "MacChain":
        """Chain at the end of a file that has these documents; raises unless every line matches."""
        plain = [
            {name: document[name] for name in document if name != MAC} for document in documents
        ]
        content, chain = self.extended(*plain)
        found, expected = path.read_bytes().splitlines(), content.splitlines()
        for number, (line, match) in enumerate(zip(found, expected, strict=True), start=1):
            if line != match:
                raise InvalidDocument(
                    f"line {number} of {path} does not match its MAC: the file was edited; restore "
                    "it, or start a new run and count the cost of this one's releases too"
                )
        return chain


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False)
