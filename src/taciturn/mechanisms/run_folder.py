"""A run on disk: its ledger, its noise key, and what each piece of noise was used for.

::

    RUN/                  readable by its owner only
      ledger.jsonl        one line for the run, then one for each event, appended before its noise
      key.json            the noise key and what it is bound to; erased when the run completes
      uses.jsonl          fingerprints of what each event's noise was added to; erased likewise
      state               what a solver needs to go on from the middle; erased likewise

A line counts once it has reached the disk. A crash can leave a last line unfinished: its event was
not booked yet, so no noise was drawn for it, and it is cut off when the run is resumed. A ledger
that lacks an event whose noise was used is refused.
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
"""Event number that stands for the whole run in a fingerprint; no run has that many events."""

SECRET = ("key.json", "uses.jsonl", "state")
"""Files that are erased when a run completes, together with drafts of them."""

TOGETHER_MAX = 3
"""Most events of one joint release."""


class RunFolder:
    """Ledger, key and uses of one run; build one with `create` or `resume`.

    The key is bound to `data`, bytes that stand for the data set and the configuration: resuming
    with others is refused, since the same noise on two data sets reveals their difference.
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
        """The ledger as it stands; a copy."""
        return Ledger(self._ledger.events, run=self._ledger.run)

    @classmethod
    def create(
        cls, path: str | Path, *, data: list[bytes | memoryview], noise: NoiseSource | None = None
    ) -> "RunFolder":
        """Make a new folder for a fresh noise source; an existing folder is refused.

        It is put together under another name, so a crash leaves a whole run folder or none.
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
            locks.append(_lock(draft))  # held before anybody can find the folder
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
    def resume(cls, path: str | Path, *, data: list[bytes | memoryview]) -> "RunFolder":
        """Open the folder of an interrupted run on the same data and configuration."""
        path = Path(path).absolute()
        if not path.is_dir():
            raise InvalidDocument(f"{path} is not a run folder; nothing to resume")
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

    def book(self, events: Sequence[Event]) -> None:
        """Append events to the ledger on disk; returns when they have reached it."""
        self._check_held()
        _append(self.path / "ledger.jsonl", *map(event_to_dict, events))

    def bind(self, first: int, uses: Sequence[str]) -> None:
        """Tie the noise of events, counted from `first`, to what it is added to.

        Raises, changing nothing, if one of them was used for something else before.
        """
        self._check_held()
        asked = dict(enumerate(uses, start=first))
        for event, use in asked.items():
            if self._uses.get(event, use) != use:
                raise NoiseReuse(
                    f"the noise of event {event} was drawn for other sums; adding it to these "
                    "would reveal the difference; begin a new run"
                )
        new = [event for event in asked if event not in self._uses]
        if new:
            # One line, which a crash leaves whole or not at all.
            line = {"event": new[0], "uses": [asked[event] for event in new]}
            _append(self.path / "uses.jsonl", line)
            self._uses |= asked

    def secret_seed(self) -> int:
        """Return a seed of the run that is not derived from the noise key; erased with it."""
        return self._start

    def save_state(self, position: int, content: bytes) -> None:
        """Keep what a solver needs to go on after `position` events, in place of what was kept."""
        self._check_held()
        framed = _state_header(position, content) + content
        files.write_file(self.path / "state", framed, is_private=True, replace=True)

    def read_state(self) -> tuple[int, bytes] | None:
        """Return what `save_state` kept, or None if there is nothing whole that fits the ledger.

        Without it the run is repeated from its beginning, with the same noise.
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
        """Let go of the folder, so that it can be resumed."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def erase_key(self) -> None:
        """Overwrite and remove the key and the uses, and let go of the folder; the ledger stays."""
        self._noise.erase()
        if self._lock is not None:
            erase(self.path)
        self.close()

    def _check_held(self) -> None:
        if self._lock is None:
            raise NoiseReuse(f"the run folder {self.path} was closed; resume it to go on")


def erase(path: Path) -> None:
    """Overwrite and remove what is secret; can be repeated after a crash."""
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
    """Take the folder for this process; the lock ends with the handle or the process."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise InvalidDocument(f"cannot open {path}: {error.strerror}") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise NoiseReuse(f"another process is working in {path}; wait until it has ended") from None
    return handle


def _read_key(path: Path, run: str, data: list[bytes | memoryview]) -> tuple[NoiseSource, int]:
    """Noise source and secret seed that a run folder kept."""
    file = path / "key.json"
    completed = NoiseReuse(f"the run in {path} completed, its noise key is gone; begin a new run")
    if not file.exists():
        raise completed
    if file.is_file() and not any(file.read_bytes()):
        erase(path)  # a crash came between overwriting and removing
        raise completed
    key = strict_json.read(file)
    if isinstance(key, dict) and key.get("format") not in (None, NOISE_FORMAT):
        raise NoiseReuse(
            "the run was begun by another version of Taciturn, which draws other noise; begin a "
            "new run: what this one released counts all the same"
        )
    try:
        noise = _restored(bytes.fromhex(key["key"]), Noise(key["noise"]))
        key_run, bound, _ = key["run"], key["data"], key["format"]
        start = int(key["start"], 16)
    except (KeyError, TypeError, ValueError):
        raise InvalidDocument(f"{file} is damaged; begin a new run") from None
    if key_run != run:
        raise InvalidDocument(f"{path} has the key of one run and the ledger of another")
    if bound != noise._fingerprint(_BINDING, *data):
        raise NoiseReuse(
            "the run to resume was begun with other data or another configuration; "
            "resume with those or begin a new run"
        )
    return noise, start


def _read_uses(path: Path, ledger: Ledger) -> dict[int, str]:
    """Return the uses: of the events in order, all but perhaps those of the last release."""
    header, *lines = read_lines(path, repair=True)
    damaged = InvalidDocument(f"{path} is damaged; begin a new run")
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
            f"{path} does not fit the ledger beside it: one of them lost lines; begin a new run"
        )
    return dict(enumerate(uses))


def _state_header(position: int, content: bytes) -> bytes:
    digest = hashlib.blake2b(content, key=b"%d" % position, digest_size=32)
    return b"%d %s\n" % (position, digest.hexdigest().encode())


def _append(path: Path, *documents: dict[str, Any]) -> None:
    """Append a line for each document to a file; returns when they have reached the disk."""
    with files.reported(path):
        files.append(path, _lines(*documents))


def _lines(*documents: dict[str, Any]) -> bytes:
    lines = [json.dumps(each, ensure_ascii=False, allow_nan=False) + "\n" for each in documents]
    return "".join(lines).encode()
