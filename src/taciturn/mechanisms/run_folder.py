"""Run folder: the ledger and noise key of a run on disk, and fingerprints of its noise's uses.

::

    RUN/                  readable by its owner only
      ledger.jsonl        one line for the run, then one for each event, appended before its noise
      key.json            noise key and fingerprint of its data; erased when the run completes
      uses.jsonl          fingerprint of the sums that each event's noise was added to; erased too
      state               checkpoint of the solver; erased too

A line counts once it has reached the disk. A crash can leave the last line incomplete. Its event
was not recorded yet, so no noise was drawn for it, and the line is removed when the run is resumed.
A ledger that lacks an event whose noise was used is refused.
"""

import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from taciturn._internal import files, strict_json
from taciturn.accounting.events import Event, Noise, event_to_dict
from taciturn.accounting.journal import read_journal, read_lines
from taciturn.accounting.ledger import FORMAT, VERSION, Ledger
from taciturn.errors import InvalidDocument, NoiseReuse, OutputError
from taciturn.mechanisms.noise import FORMAT as NOISE_FORMAT
from taciturn.mechanisms.noise import NoiseSource, SecureNoise, _restored, check_source

_BINDING = 2**47
"""Event number that represents the whole run in a fingerprint; no run has that many events."""

SECRET = ("key.json", "uses.jsonl", "state")
"""Files that are erased when a run completes, as are their temporary copies."""

TOGETHER_MAX = 3
"""Maximum number of events of one joint release."""


class RunFolder:
    """Ledger, noise key and noise uses of one run; build one with `create` or `resume`.

    The key is bound to `data`, bytes that identify the dataset and the configuration. Resuming with
    different ones is refused, since the same noise on two datasets reveals their difference.
    """

    def __init__(
        self,
        path: Path,
        lock: int,
        ledger: Ledger,
        noise: NoiseSource,
        uses: dict[int, str],
        start: int,
    ) -> None:
        self.path = path
        self._ledger, self._noise = ledger, noise
        self._uses, self._start = uses, start
        self._lock: int | None = lock

    @property
    def ledger(self) -> Ledger:
        """Copy of the current ledger."""
        return Ledger(self._ledger.events, run=self._ledger.run)

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        data: Sequence[bytes | memoryview],
        noise: NoiseSource | None = None,
    ) -> "RunFolder":
        """Create a new folder for a fresh noise source; an existing folder is refused.

        The folder is built under a temporary name, so a crash leaves a complete run folder or none.
        """
        path = Path(path).absolute()
        noise = noise or SecureNoise()
        check_source(noise)
        ledger, start = Ledger(), secrets.randbits(128)
        key = {
            "run": ledger.run,
            "noise": noise.kind,
            "format": NOISE_FORMAT,
            "key": noise._secret().hex(),
            "data": noise._fingerprint(_BINDING, *data),
            "start": f"{start:x}",
        }
        contents: dict[str, dict[str, Any]] = {
            "ledger.jsonl": {"format": FORMAT, "version": VERSION, "run": ledger.run},
            "uses.jsonl": {"run": ledger.run},
            "key.json": key,
        }
        locks: list[int] = []

        def fill(draft: Path) -> None:
            locks.append(_lock(draft))  # lock before the folder is visible
            for name, content in contents.items():
                files.write_file(draft / name, _lines(content), is_private=True)

        try:
            files.write_folder(path, fill, is_private=True)
        except BaseException:
            for lock in locks:
                os.close(lock)
            raise
        return cls(path, locks[0], ledger, noise, {}, start)

    @classmethod
    def resume(cls, path: str | Path, *, data: Sequence[bytes | memoryview]) -> "RunFolder":
        """Open the folder of an interrupted run on the same data and configuration."""
        path = Path(path).absolute()
        if not path.is_dir():
            raise InvalidDocument(f"{path} is not a run folder, so there is nothing to resume")
        lock = _lock(path)
        try:
            ledger = read_journal(path / "ledger.jsonl", repair=True)
            noise, start = _read_key(path, ledger.run, data)
            uses = _read_uses(path / "uses.jsonl", ledger)
            with files.reported(path):
                for draft in files.drafts(path):
                    draft.unlink()
        except BaseException:
            os.close(lock)
            raise
        return cls(path, lock, ledger, noise, uses, start)

    def record(self, events: Sequence[Event]) -> None:
        """Append events to the ledger on disk; returns when they have reached the disk."""
        self._check_held()
        _append(self.path / "ledger.jsonl", *map(event_to_dict, events))

    def bind(self, first: int, uses: Sequence[str]) -> None:
        """Bind the noise of events, numbered from `first`, to the sums it is added to.

        Raises, and changes nothing, if the noise of one of them was used for other sums.
        """
        self._check_held()
        asked = dict(enumerate(uses, start=first))
        for event, use in asked.items():
            if self._uses.get(event, use) != use:
                raise NoiseReuse(
                    f"the noise of event {event} was drawn for other sums; adding it to these "
                    "would reveal the difference; start a new run"
                )
        new = [event for event in asked if event not in self._uses]
        if new:
            # A single line, so that a crash leaves all of the uses or none.
            line = {"event": new[0], "uses": [asked[event] for event in new]}
            _append(self.path / "uses.jsonl", line)
            self._uses |= asked

    def secret_seed(self) -> int:
        """Secret seed of the run, independent of the noise key; erased with it."""
        return self._start

    def save_state(self, position: int, content: bytes) -> None:
        """Save a solver's checkpoint after `position` events; replaces the previous one."""
        self._check_held()
        framed = _state_header(position, content) + content
        files.write_file(self.path / "state", framed, is_private=True, replace=True)

    def read_state(self) -> tuple[int, bytes] | None:
        """Last checkpoint, or None if there is no intact one that fits the ledger.

        Without a checkpoint the run repeats from its beginning, with the same noise.
        """
        self._check_held()
        try:
            header, _, content = (self.path / "state").read_bytes().partition(b"\n")
        except OSError:
            return None
        number = header.split(b" ")[0]
        position = int(number) if number.isdigit() and len(number) < 16 else -1
        whole = header + b"\n" == _state_header(position, content)
        return (position, content) if whole and position <= len(self._uses) else None

    def close(self) -> None:
        """Release the lock on the folder, so that the run can be resumed."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def erase_key(self) -> None:
        """Erase every secret file and release the lock on the folder; the ledger stays."""
        self._noise.erase()
        if self._lock is not None:
            erase(self.path)
        self.close()

    def _check_held(self) -> None:
        if self._lock is None:
            raise NoiseReuse(f"the run folder {self.path} was closed; resume the run to continue")


def erase(path: Path) -> None:
    """Overwrite and remove the secret files; safe to repeat after a crash."""
    try:
        for file in [*(path / name for name in SECRET), *files.drafts(path)]:
            if not file.exists():
                continue
            with file.open("r+b") as stream:
                stream.write(bytes(file.stat().st_size))
                stream.flush()
                os.fsync(stream.fileno())
            file.unlink()
        files.sync(path)
    except OSError as error:
        raise OutputError(
            f"cannot erase the noise key in {path}: {error.strerror}; resume the run to try again"
        ) from None


def _lock(path: Path) -> int:
    """Lock the folder for this process; the lock ends with the handle or the process."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise InvalidDocument(f"cannot open {path}: {error.strerror}") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise NoiseReuse(f"another process is using {path}; wait until it has ended") from None
    return handle


def _read_key(path: Path, run: str, data: Sequence[bytes | memoryview]) -> tuple[NoiseSource, int]:
    """Noise source and secret seed from a run folder."""
    file = path / "key.json"
    completed = NoiseReuse(
        f"the run in {path} is completed and its noise key erased; start a new run"
    )
    if not file.exists():
        raise completed
    if file.is_file() and not any(file.read_bytes()):
        erase(path)  # a crash interrupted the erasure
        raise completed
    key = strict_json.read(file)
    if isinstance(key, dict) and key.get("format") not in (None, NOISE_FORMAT):
        raise NoiseReuse(
            "the run was started by another version of Taciturn, which draws other noise; start a "
            "new run, and count the cost of this one's releases too"
        )
    try:
        noise = _restored(bytes.fromhex(key["key"]), Noise(key["noise"]))
        key_run, bound, _ = key["run"], key["data"], key["format"]
        start = int(key["start"], 16)
    except (KeyError, TypeError, ValueError):
        raise InvalidDocument(f"{file} is damaged; start a new run") from None
    if key_run != run:
        raise InvalidDocument(
            f"{path} has the key of one run and the ledger of another; start a new run"
        )
    if bound != noise._fingerprint(_BINDING, *data):
        raise NoiseReuse(
            "the run to resume was started with other data or another configuration; "
            "resume with the original ones or start a new run"
        )
    return noise, start


def _read_uses(path: Path, ledger: Ledger) -> dict[int, str]:
    """Uses of the events in order; those of the last release may be missing."""
    header, *lines = read_lines(path, repair=True)
    damaged = InvalidDocument(f"{path} is damaged; start a new run")
    if header != {"run": ledger.run}:
        raise damaged
    uses: list[str] = []
    for line in lines:
        together = line.get("uses")
        known = isinstance(together, list) and 0 < len(together) <= TOGETHER_MAX
        if not known or line != {"event": len(uses), "uses": together}:
            raise damaged
        uses += together
    if not len(ledger.events) - TOGETHER_MAX <= len(uses) <= len(ledger.events):
        raise InvalidDocument(
            f"{path} does not match the ledger beside it: one of them lost lines; start a new run"
        )
    return dict(enumerate(uses))


def _state_header(position: int, content: bytes) -> bytes:
    digest = hashlib.blake2b(content, key=b"%d" % position, digest_size=32)
    return b"%d %s\n" % (position, digest.hexdigest().encode())


def _append(path: Path, *documents: dict[str, Any]) -> None:
    """Append a JSON line for each document; returns when they have reached the disk."""
    with files.reported(path):
        files.append(path, _lines(*documents))


def _lines(*documents: dict[str, Any]) -> bytes:
    lines = [json.dumps(each, ensure_ascii=False, allow_nan=False) + "\n" for each in documents]
    return "".join(lines).encode()
