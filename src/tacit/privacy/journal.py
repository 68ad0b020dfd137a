"""The ledger of a run on disk: one line for the run, then one for each event.

Reading needs nothing but Python, so that whoever checks what a run has spent needs no compiled
code; `run_folder` appends the lines.
"""

import os
from pathlib import Path
from typing import Any

from tacit import _json
from tacit.errors import InvalidDocument
from tacit.privacy.events import PatternRelease, Rows
from tacit.privacy.ledger import FORMAT, PATTERN_VERSION, VERSION, Ledger


def read_journal(path: Path, *, repair: bool = False) -> Ledger:
    """Ledger in a run folder's `ledger.jsonl`.

    An unfinished last line is not an event; with `repair` it is removed.
    """
    header, *events = read_lines(path, repair=repair)
    if header.get("format") != FORMAT or header.get("version") not in (1, VERSION):
        raise InvalidDocument(f"{path} does not begin with a ledger's header")
    # The header was written before it was known which events would follow.
    is_second = any(
        event.get("type") == PatternRelease.type or event.get("rows") == Rows.RATINGS
        for event in events
    )
    version = PATTERN_VERSION if is_second else 1
    return Ledger.from_dict(header | {"version": version, "events": events})


def read_lines(path: Path, *, repair: bool) -> list[Any]:
    """Objects in a file of one JSON object a line; with `repair` an unfinished last line goes."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidDocument(f"cannot read {path}: {error.strerror}") from None
    whole = content[: content.rfind(b"\n") + 1]
    if not whole:
        raise InvalidDocument(f"{path} is empty; begin a new run")
    if repair and len(whole) < len(content):
        try:
            os.truncate(path, len(whole))
        except OSError as error:
            raise InvalidDocument(f"cannot mend {path}: {error.strerror}") from None
    try:
        text = whole.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidDocument(f"{path} is damaged; begin a new run") from None
    lines = [_json.loads(line, str(path)) for line in text.removesuffix("\n").split("\n")]
    if not all(isinstance(line, dict) for line in lines):
        raise InvalidDocument(f"{path} is damaged; begin a new run")
    return lines
