"""Cache of experiment cells: results on disk, keyed by the facts they were computed from.

A long experiment consists of cells, each of one or a few trainings. Finished cells are stored, so
that an interrupted experiment resumes and a larger one reuses them.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from taciturn._internal import strict_json
from taciturn._internal.files import prepare_folder, write_file
from taciturn.errors import InvalidInput

Result = TypeVar("Result")

Facts = Mapping[str, Any]
"""All facts that a result depends on, as JSON types."""


COMPARISON, AUDIT = "cells", "runs"
"""Names of the folders in which comparisons and audits cache their results, which are private."""

CELL_NAME = re.compile(r"[0-9a-f]{64}\.json")
"""Name of a file in a cache."""


class CellCache:
    """Results in a folder, which is created if it does not exist.

    With `is_private`, files are readable by their owner only.
    """

    def __init__(self, folder: Path, *, is_private: bool = False) -> None:
        prepare_folder(folder)
        self._folder, self._is_private = folder, is_private

    def get(self, facts: Facts, parse: Callable[[Any], Result | None]) -> Result | None:
        """Result of the cell with these facts, or None if it must be computed.

        `parse` converts the stored document into the result. A file counts as absent if it cannot
        be read, belongs to another cell, or makes `parse` fail or return None.
        """
        key = cell_key(facts)
        path = self._path(key)
        if not path.is_file():
            return None
        try:
            document = strict_json.read(path)
            return parse(document["result"]) if document["key"] == key else None
        except (InvalidInput, LookupError, TypeError, ValueError, AttributeError, OverflowError):
            return None

    def put(self, facts: Facts, document: object) -> None:
        """Store the result of a cell, given as JSON types; atomically replaces an older one.

        A result with NaN or infinity is not strict JSON, so it will count as absent.
        """
        key = cell_key(facts)
        content = json.dumps({"key": key, "result": document}).encode()
        write_file(self._path(key), content, is_private=self._is_private, replace=True)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.json"


def cell_key(facts: Facts) -> str:
    """SHA-256 of the facts as canonical JSON: sorted keys, no spaces, no NaN."""
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
