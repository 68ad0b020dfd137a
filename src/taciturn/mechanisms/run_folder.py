"""Run folder: the ledger and noise key of a run on disk, and fingerprints of its noise's uses.

::

    RUN/                  readable by its owner only
      ledger.jsonl        one line for the run, then one for each event, appended before its noise
      key.json            noise key and fingerprint of its data; erased when the run completes
      uses.jsonl          fingerprint of the sums that each event's noise was added to; erased too
      state               checkpoint of the solver; erased too

A line counts once it has reached the disk. A crash can leave the last line incomplete. Its event
was not recorded yet, so no noise was drawn for it, and the line is removed when the run is resumed.
A ledger that lacks an event whose noise was used is refused. Lines, checkpoint and key file carry
MACs under keys derived from the noise key, and a run whose files were edited does not resume.
"""

import hashlib
import os
import secrets
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from taciturn._internal import files, strict_json
from taciturn.accounting.events import Event, event_to_dict
from taciturn.accounting.journal import ledger_from_lines, read_lines
from taciturn.accounting.ledger import FORMAT, VERSION, Ledger
from taciturn.errors import InvalidDocument, NoiseReuse
from taciturn.mechanisms.mac_chain import MacChain
from taciturn.mechanisms.noise import NoiseSource, SecureNoise, check_source
from taciturn.mechanisms.run_files import (
    KEY,
    LEDGER,
    STATE,
    USES,
    Binding,
    RunKey,
    bound,
    delete,
    erase,
    lock,
    read_key,
)

TOGETHER_MAX = 4
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
        key: RunKey,
        uses: dict[int, str],
        chains: dict[str, MacChain],
    ) -> None:
        self.path = path
        self._ledger, self._key, self._noise = ledger, key, key.noise
        self._uses, self._chains = uses, chains
        self._lock: int | None = lock

    @property
    def ledger(self) -> Ledger:
        """Copy of the current ledger."""
        return Ledger(self._ledger.events, run=self._ledger.run)

    @property
    def date(self) -> date:
        """Day on which the run began, in UTC; a resumed run keeps it."""
        return self._key.date

    @classmethod
    def create(
        cls, path: str | Path, *, data: Binding, noise: NoiseSource | None = None
    ) -> "RunFolder":
        """Create a new folder for a fresh noise source; an existing folder is refused.

        The folder is built under a temporary name, so a crash leaves a complete run folder or none.
        The name is always the same, so that the next call removes what a killed one left.
        """
        path = Path(path).absolute()
        noise = noise or SecureNoise()
        check_source(noise)
        ledger = Ledger()
        key = RunKey(
            run=ledger.run,
            noise=noise,
            bound=bound(noise, data),
            start=secrets.randbits(128),
            date=today(),
        )
        chains = {name: _new_chain(noise, name) for name in (LEDGER, USES)}
        headers: dict[str, dict[str, Any]] = {
            LEDGER: {"format": FORMAT, "version": VERSION, "run": ledger.run},
            USES: {"run": ledger.run},
        }
        locks: list[int] = []

        def fill(draft: Path) -> None:
            locks.append(lock(draft))  # before the folder is visible under its own name
            for name, header in headers.items():
                content, chains[name] = chains[name].extended(header)
                files.write_file(draft / name, content, is_private=True)
            document = strict_json.dumps(key.to_document()).encode()
            files.write_file(draft / KEY, document, is_private=True)

        files.check_absent(path)
        remove_leftover(path)
        try:
            files.write_folder(path, fill, draft=_draft(path), is_private=True)
        except BaseException:
            for handle in locks:
                os.close(handle)
            raise
        return cls(path, locks[0], ledger, key, {}, chains)

    @classmethod
    def resume(cls, path: str | Path, *, data: Binding) -> "RunFolder":
        """Open the folder of an interrupted run on the same data and configuration."""
        path = Path(path).absolute()
        if not path.is_dir():
            raise InvalidDocument(f"{path} is not a run folder, so there is nothing to resume")
        handle = lock(path)
        try:
            lines = {LEDGER: read_lines(path / LEDGER, repair=True)}
            key = read_key(path, data)
            ledger = ledger_from_lines(path / LEDGER, lines[LEDGER])
            if key.run != ledger.run:
                raise InvalidDocument(
                    f"{path} has the key of one run and the ledger of another; start a new run"
                )
            lines[USES] = read_lines(path / USES, repair=True)
            chains = {
                name: _new_chain(key.noise, name).checked(path / name, found)
                for name, found in lines.items()
            }
            uses = _uses_from_lines(path / USES, ledger, lines[USES])
            with files.reported(path):
                for draft in files.drafts(path):
                    draft.unlink()
        except BaseException:
            os.close(handle)
            raise
        return cls(path, handle, ledger, key, uses, chains)

    def record(self, events: Sequence[Event]) -> None:
        """Append events to the ledger on disk; returns when they have reached the disk."""
        self._check_held()
        self._append(LEDGER, *map(event_to_dict, events))

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
                    "would reveal the difference; resume on the processor of the first run or with "
                    "its TACITURN_ISA, or start a new run"
                )
        new = [event for event in asked if event not in self._uses]
        if new:
            # A single line, so that a crash leaves all of the uses or none.
            line = {"event": new[0], "uses": [asked[event] for event in new]}
            self._append(USES, line)
            self._uses |= asked

    def secret_seed(self) -> int:
        """Secret seed of the run, independent of the noise key; erased with it."""
        return self._key.start

    def secret_key(self, purpose: bytes) -> bytes:
        """Secret key of the run for a purpose other than noise; the same after resuming."""
        return self._noise._derived(purpose)

    def save_state(self, position: int, content: bytes) -> None:
        """Save a solver's checkpoint after `position` events; replaces the previous one."""
        self._check_held()
        framed = self._state_header(position, content) + content
        files.write_file(self.path / STATE, framed, is_private=True, replace=True)

    def read_state(self) -> tuple[int, bytes] | None:
        """Last checkpoint, or None if there is no intact one that fits the ledger.

        Without a checkpoint the run repeats from its beginning, with the same noise.
        """
        self._check_held()
        try:
            header, _, content = (self.path / STATE).read_bytes().partition(b"\n")
        except OSError:
            return None
        number = header.split(b" ")[0]
        position = int(number) if number.isdigit() and len(number) < 16 else -1
        whole = header + b"\n" == self._state_header(position, content)
        return (position, content) if whole and position <= len(self._uses) else None

    def close(self) -> None:
        """Release the lock on the folder, so that the run can be resumed."""
        if self._lock is not None:
            try:
                os.close(self._lock)
            finally:
                self._lock = None  # closed even if an interrupt or an error came

    def erase_key(self) -> None:
        """Erase every secret file and release the lock on the folder; the ledger stays."""
        self._noise.erase()
        if self._lock is not None:
            erase(self.path)
        self.close()

    def delete(self) -> None:
        """Erase every secret file, then delete the folder with its ledger."""
        self._noise.erase()
        if self._lock is not None:
            delete(self.path)
        self.close()

    def _append(self, name: str, *documents: dict[str, Any]) -> None:
        """Append a line for each document; returns when they have reached the disk."""
        content, chain = self._chains[name].extended(*documents)
        path = self.path / name
        with files.reported(path):
            files.append(path, content)
        self._chains[name] = chain

    def _state_header(self, position: int, content: bytes) -> bytes:
        code = hashlib.blake2b(
            b"%d\n" % position, key=self._noise._derived(b"checkpoint"), digest_size=32
        )
        code.update(content)
        return b"%d %s\n" % (position, code.hexdigest().encode())

    def _check_held(self) -> None:
        if self._lock is None:
            raise NoiseReuse(f"the run folder {self.path} was closed; resume the run to continue")


def today() -> date:
    """The current day in UTC."""
    return datetime.now(UTC).date()


def remove_leftover(path: Path) -> None:
    """Remove the draft of a run folder that a killed process left; raises if it is in use."""
    draft = _draft(path)
    if os.path.lexists(draft):
        handle = lock(draft)
        try:
            delete(draft)
        finally:
            os.close(handle)


def _draft(path: Path) -> Path:
    """Name of a run folder while it is created; always the same, so that leftovers are found."""
    return path.with_name(f".{path.name}.new")


def _new_chain(noise: NoiseSource, name: str) -> MacChain:
    return MacChain(key=noise._derived(b"journal"), last=name)


def _uses_from_lines(
    path: Path, ledger: Ledger, documents: Sequence[dict[str, Any]]
) -> dict[int, str]:
    """Uses of the events in order; those of the last release may be missing."""
    header, *lines = documents
    damaged = InvalidDocument(f"{path} is damaged; start a new run")
    if header.get("run") != ledger.run:
        raise damaged
    uses: list[str] = []
    for line in lines:
        together = line.get("uses")
        if not isinstance(together, list) or not 0 < len(together) <= TOGETHER_MAX:
            raise damaged
        if line.get("event") != len(uses):
            raise damaged
        uses += together
    if not len(ledger.events) - TOGETHER_MAX <= len(uses) <= len(ledger.events):
        raise InvalidDocument(
            f"{path} does not match the ledger beside it: one of them lost lines; start a new run"
        )
    return dict(enumerate(uses))
