"""A run on disk: its ledger, its noise key, and what each piece of noise was used for.

::

    RUN/                  readable by its owner only
      ledger.jsonl        one line for the run, then one for each event, appended before its noise
      key.json            the noise key and what it is bound to; erased when the run completes
      uses.jsonl          fingerprints of what each event's noise was added to; erased likewise

A line counts once it has reached the disk. A crash can leave a last line unfinished: its event was
not booked yet, so no noise was drawn for it, and it is cut off when the run is resumed.
"""

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from tacit import _json
from tacit.errors import InvalidDocument, NoiseReuse
from tacit.privacy.events import Event, Noise, event_to_dict
from tacit.privacy.ledger import FORMAT, VERSION, Ledger
from tacit.privacy.noise.source import NoiseSource, SecureNoise

_BINDING = 2**47
"""Stands for the whole run where a fingerprint is of an event; no run has so many events."""


class RunFolder:
    """Ledger, key and uses of one run; build one with `create` or `resume`.

    The key is bound to `data`, bytes that stand for the data set and the configuration: resuming
    with others is refused, since the same noise on two data sets reveals their difference.
    """

    def __init__(
        self, path: Path, lock: int, ledger: Ledger, noise: NoiseSource, uses: dict[int, str]
    ) -> None:
        self.path = path
        self.ledger = ledger
        self.noise = noise
        self._uses = uses
        self._lock: int | None = lock

    @classmethod
    def create(
        cls, path: str | Path, *, data: list[bytes | memoryview], noise: NoiseSource | None = None
    ) -> "RunFolder":
        """Make a new folder for a fresh noise source; an existing folder is refused."""
        path = Path(path)
        try:
            path.mkdir(mode=0o700)
        except OSError as error:
            raise InvalidDocument(f"cannot make the run folder {path}: {error.strerror}") from None
        lock = _lock(path)
        noise = noise or SecureNoise()
        ledger = Ledger()
        header = {"format": FORMAT, "version": VERSION, "run": ledger.run}
        _append(path / "ledger.jsonl", header)
        _append(path / "uses.jsonl", {"run": ledger.run})
        key = {
            "run": ledger.run,
            "noise": noise.kind,
            "key": noise.secret().hex(),
            "data": noise.fingerprint(_BINDING, *data),
        }
        _append(path / "key.json", key)
        _sync_folder(path)
        return cls(path, lock, ledger, noise, {})

    @classmethod
    def resume(cls, path: str | Path, *, data: list[bytes | memoryview]) -> "RunFolder":
        """Open the folder of an interrupted run on the same data and configuration."""
        path = Path(path)
        if not path.is_dir():
            raise InvalidDocument(f"{path} is not a run folder; nothing to resume")
        lock = _lock(path)
        try:
            ledger = read_journal(path / "ledger.jsonl", repair=True)
            noise = _read_key(path, ledger.run, data)
            uses = _read_uses(path / "uses.jsonl")
        except BaseException:
            os.close(lock)
            raise
        return cls(path, lock, ledger, noise, uses)

    def book(self, event: Event) -> None:
        """Append an event to the ledger on disk; returns when it has reached it."""
        _append(self.path / "ledger.jsonl", event_to_dict(event))

    def bind(self, event: int, use: str) -> None:
        """Tie the noise of an event to what it is added to, or raise if that was something else."""
        known = self._uses.get(event)
        if known is None:
            _append(self.path / "uses.jsonl", {"event": event, "use": use})
            self._uses[event] = use
        elif known != use:
            raise NoiseReuse(
                f"the noise of event {event} was drawn for other sums; adding it to these would "
                "reveal the difference; begin a new run"
            )

    def close(self) -> None:
        """Let go of the folder, so that it can be resumed."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def erase_key(self) -> None:
        """Overwrite and remove the key and the uses; the ledger stays."""
        for name in ("key.json", "uses.jsonl"):
            file = self.path / name
            with file.open("r+b") as stream:
                stream.write(bytes(file.stat().st_size))
                stream.flush()
                os.fsync(stream.fileno())
            file.unlink()
        _sync_folder(self.path)
        self.close()


def read_journal(path: Path, *, repair: bool = False) -> Ledger:
    """Return the ledger of a run folder's `ledger.jsonl`.

    An unfinished last line is not an event; with `repair` it is cut off.
    """
    header, *events = _read_lines(path, repair=repair)
    if header.get("format") != FORMAT or header.get("version") != VERSION:
        raise InvalidDocument(f"{path} does not begin with a ledger's header")
    document = header | {"events": events}
    return Ledger.from_dict(document)


def _lock(path: Path) -> int:
    """Take the folder for this process; the lock ends with the handle or the process."""
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise NoiseReuse(f"another process is working in {path}; wait until it has ended") from None
    return handle


def _read_key(path: Path, run: str, data: list[bytes | memoryview]) -> NoiseSource:
    file = path / "key.json"
    if not file.exists():
        raise NoiseReuse(f"{path} has no noise key: its run completed; begin a new run")
    key = _json.read(file)
    try:
        noise = NoiseSource(bytes.fromhex(key["key"]), Noise(key["noise"]))
        key_run, bound = key["run"], key["data"]
    except (KeyError, TypeError, ValueError):
        raise InvalidDocument(f"{file} is damaged; begin a new run") from None
    if key_run != run:
        raise InvalidDocument(f"{path} has the key of one run and the ledger of another")
    if bound != noise.fingerprint(_BINDING, *data):
        raise NoiseReuse(
            "the run to resume was begun with other data or another configuration; "
            "resume with those or begin a new run"
        )
    return noise


def _read_uses(path: Path) -> dict[int, str]:
    lines = _read_lines(path, repair=True)[1:]
    if not all(line.keys() == {"event", "use"} for line in lines):
        raise InvalidDocument(f"{path} is damaged; begin a new run")
    return {line["event"]: line["use"] for line in lines}


def _append(path: Path, document: dict[str, Any]) -> None:
    """Append one line and return when it has reached the disk."""
    line = json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            size = os.fstat(handle).st_size
            try:
                data = line.encode()
                while data:
                    data = data[os.write(handle, data) :]
                os.fsync(handle)
            except OSError:
                os.ftruncate(handle, size)
                raise
        finally:
            os.close(handle)
    except OSError as error:
        raise InvalidDocument(f"cannot write {path}: {error.strerror}") from None


def _read_lines(path: Path, *, repair: bool) -> list[Any]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidDocument(f"cannot read {path}: {error.strerror}") from None
    whole = content[: content.rfind(b"\n") + 1]
    if not whole:
        raise InvalidDocument(f"{path} is empty; begin a new run")
    if repair and len(whole) < len(content):
        os.truncate(path, len(whole))
    try:
        text = whole.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidDocument(f"{path} is damaged; begin a new run") from None
    lines = [_json.loads(line, str(path)) for line in text.splitlines()]
    if not all(isinstance(line, dict) for line in lines):
        raise InvalidDocument(f"{path} is damaged; begin a new run")
    return lines


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
