"""Ledger of a run on disk: one line for the run, then one for each event.

Reading is pure Python, so checking the cost of a run needs no compiled code. `run_folder` appends
the lines, each with a MAC under a key of the run, and checks the MACs when the run resumes.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from taciturn._internal import strict_json
from taciturn._internal.files import reported
from taciturn.accounting.ledger import FORMAT, VERSION, Ledger
from taciturn.errors import InvalidDocument

MAC = "mac"
"""Field of a line with its message authentication code; see `mechanisms.mac_chain`."""


def read_journal(path: Path, *, repair: bool = False) -> Ledger:
    """Ledger in the `ledger.jsonl` of a run folder.

    An incomplete last line is not an event; with `repair` it is removed from the file. MACs are not
    checked, since that needs the key of the run.
    """
    return ledger_from_lines(path, read_lines(path, repair=repair))


def ledger_from_lines(path: Path, lines: Sequence[dict[str, Any]]) -> Ledger:
    """Ledger of the documents in a `ledger.jsonl`."""
    header, *events = ({name: line[name] for name in line if name != MAC} for line in lines)
    if header.get("format") != FORMAT or header.get("version") != VERSION:
        raise InvalidDocument(f"{path} does not begin with the header of a ledger")
    return Ledger.from_dict(header | {"events": events})


def read_lines(path: Path, *, repair: bool) -> list[dict[str, Any]]:
    """Objects of a JSON Lines file; with `repair` an incomplete last line is removed from it."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidDocument(f"cannot read {path}: {error.strerror}") from None
    whole = content[: content.rfind(b"\n") + 1]
    if not whole:
        raise InvalidDocument(f"{path} is empty; start a new run")
    if repair and len(whole) < len(content):
        with reported(path):
            os.truncate(path, len(whole))
    try:
        text = whole.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidDocument(f"{path} is damaged; start a new run") from None
    lines = [strict_json.loads(line, str(path)) for line in text.removesuffix("\n").split("\n")]
    if not all(isinstance(line, dict) for line in lines):
        raise InvalidDocument(f"{path} is damaged; start a new run")
    return lines
