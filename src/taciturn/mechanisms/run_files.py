"""Files of a run folder: their names, the lock, the key file, erasing and deleting."""

import datetime
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taciturn._internal import files, strict_json
from taciturn._internal.spelling import option
from taciturn.accounting.events import Noise
from taciturn.errors import InvalidDocument, NoiseReuse, OutputError
from taciturn.mechanisms.noise import FORMAT as NOISE_FORMAT
from taciturn.mechanisms.noise import NoiseSource, _restored

LEDGER, KEY, USES, STATE = "ledger.jsonl", "key.json", "uses.jsonl", "state"

SECRET = (KEY, USES, STATE)
"""Files that are erased when a run completes, as are their temporary copies."""

Binding = Sequence[bytes | memoryview]
"""Bytes that identify the data and configuration of a run; its noise is bound to them."""

_BINDING = 2**47
"""Event number that represents the whole run in a fingerprint; no run has that many events."""

_SEAL = "seal"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RunKey:
    """Contents of key.json: the noise source, and facts that a resumed run needs.

    `start` is a secret seed, independent of the noise. `bound` is the fingerprint of the data and
    configuration. `date` is the day on which the run began, in UTC.
    """

    run: str
    noise: NoiseSource
    bound: str
    start: int
    date: datetime.date

    def to_document(self) -> dict[str, Any]:
        """Document of the key file, with a seal over every field."""
        document = {
            "run": self.run,
            "noise": self.noise.kind,
            "format": NOISE_FORMAT,
            "key": self.noise._secret().hex(),
            "data": self.bound,
            "start": f"{self.start:x}",
            "date": self.date.isoformat(),
        }
        return document | {_SEAL: _seal(self.noise, document)}

    def check_binding(self, data: Binding) -> None:
        """Raise unless the run was started with this data and configuration."""
        if self.bound != bound(self.noise, data):
            raise NoiseReuse(
                "the run to resume was started with other data or another configuration; "
                "resume with the original ones or start a new run"
            )


def bound(noise: NoiseSource, data: Binding) -> str:
    """Keyed fingerprint of the data and configuration of a run."""
    return noise._fingerprint(_BINDING, *data)


def _seal(noise: NoiseSource, document: dict[str, Any]) -> str:
    content = json.dumps(document, sort_keys=True).encode()
    return hashlib.blake2b(content, key=noise._derived(b"key file"), digest_size=16).hexdigest()


def intact_key(path: Path) -> RunKey | None:
    """Key of a run folder; None if it is missing, partly erased or damaged."""
    try:
        document = strict_json.read(path / KEY)
        seal = document.pop(_SEAL)
        noise = _restored(bytes.fromhex(document["key"]), Noise(document["noise"]))
        key = RunKey(
            run=document["run"],
            noise=noise,
            bound=document["data"],
            start=int(document["start"], 16),
            date=datetime.date.fromisoformat(document["date"]),
        )
        is_intact = document["format"] == NOISE_FORMAT and _seal(noise, document) == seal
    except (InvalidDocument, KeyError, TypeError, ValueError, AttributeError):
        return None
    return key if is_intact else None


def read_key(path: Path, data: Binding) -> RunKey:
    """Key of a run to resume; raises if it was erased, is damaged or belongs to other data."""
    file = path / KEY
    completed = NoiseReuse(
        f"the run in {path} is completed and its noise key erased; start a new run"
    )
    if not file.exists():
        raise completed
    if file.is_file() and not any(file.read_bytes()):
        erase(path)  # a crash interrupted the erasure
        raise completed
    document = strict_json.read(file)
    if isinstance(document, dict) and document.get("format") not in (None, NOISE_FORMAT):
        raise NoiseReuse(
            "the run was started by another version of Taciturn, which draws other noise; start a "
            "new run, and count the cost of this one's releases too"
        )
    key = intact_key(path)
    if key is None:
        raise InvalidDocument(f"{file} is damaged; start a new run")
    key.check_binding(data)
    return key


def lock(path: Path) -> int:
    """Lock the folder for this process; the lock ends with the handle or the process."""
    in_use = NoiseReuse(f"another process is using {path}; wait until it has ended")
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise InvalidDocument(f"cannot open {path}: {error.strerror}") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another process may have deleted the folder, or made it anew, before the lock was held.
        if not os.path.samestat(os.fstat(handle), path.stat()):
            raise in_use
    except OSError:
        os.close(handle)
        raise in_use from None
    except BaseException:
        os.close(handle)
        raise
    return handle


def is_locked(path: Path) -> bool:
    """True if a process is using the folder."""
    try:
        os.close(lock(path))
    except NoiseReuse:
        return True
    except InvalidDocument:
        return False
    return False


def erase(path: Path) -> None:
    """Overwrite and remove the secret files; safe to repeat after a crash."""
    with _reported(path):
        for file in [*(path / name for name in SECRET), *files.drafts(path)]:
            if file.is_dir() and not file.is_symlink():
                shutil.rmtree(file)
            elif os.path.lexists(file):
                files.erase_file(file)
        files.sync(path)


def delete(path: Path) -> None:
    """Erase the secret files, then remove the folder, its ledger last; safe to repeat."""
    erase(path)
    with _reported(path):
        for entry in sorted(path.iterdir(), key=lambda entry: (entry.name == LEDGER, entry.name)):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        path.rmdir()
        files.sync(path.parent)


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    """Convert system errors into an `OutputError` that says how to repeat the erasure."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"cannot erase the noise key in {path}: {error.strerror}; run the training again "
            f"with {option('resume', True)} to finish"
        ) from None
