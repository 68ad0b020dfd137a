"""Private files on a disk: what Taciturn left where, how old it is, and deleting it.

Only files that Taciturn wrote are found, by their content: run folders, maps of pseudonyms, item
profiles without noise, caches and reports of comparisons and audits, signing keys, and temporary
files that a killed process left. Ratings are not among them: only their owner knows where they are.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

from taciturn._internal import files, strict_json
from taciturn._internal.cell_cache import AUDIT, CELL_NAME, COMPARISON
from taciturn._internal.encode import PRIVATE, Private
from taciturn.accounting.journal import read_journal
from taciturn.errors import InvalidDocument, InvalidInput, InvalidParameter, NoiseReuse
from taciturn.mechanisms import run_files
from taciturn.release import bundle
from taciturn.training.publish import RUN_NAMES, is_run_folder

LEFTOVER_AGE = timedelta(hours=1)
"""Age from which a temporary file is taken for one that a killed process left."""

_RUN_DRAFT = re.compile(r"\..+\.run\.new")
_DELIVERY = re.compile(r"\.[0-9a-f]{32}-(items\.parquet|pseudonyms\.parquet|latest)\.tmp")
_KEY = b"-----BEGIN PRIVATE KEY-----"
_MAGIC = b"PAR1"
_FOOTER_MAX = 2**20


class Kind(StrEnum):
    """Kind of a private file or folder."""

    RUN = "run"
    PSEUDONYMS = "pseudonyms"
    ITEMS = "items"
    CACHE = "cache"
    REPORT = "report"
    LEFTOVER = "leftover"
    KEY = "key"

    @property
    def words(self) -> str:
        """Description for a list."""
        return _WORDS[self]


_WORDS = {
    Kind.RUN: "run folder",
    Kind.PSEUDONYMS: "map of pseudonyms",
    Kind.ITEMS: "item profiles without noise",
    Kind.CACHE: "cache of a comparison or audit",
    Kind.REPORT: "report of a comparison or audit",
    Kind.LEFTOVER: "temporary file of a killed process",
    Kind.KEY: "signing key",
}


@dataclass(frozen=True, kw_only=True)
class Found:
    """A private file or folder.

    `paths` has the files of a report, or the only path. `kept` says why `clean` does not delete it;
    empty if it does. `detail` is a remark.
    """

    path: Path
    kind: Kind
    size: int
    modified: datetime
    paths: tuple[Path, ...]
    detail: str = ""
    kept: str = ""

    def age(self, now: datetime) -> timedelta:
        """Time since the last change of the file, or of any file in the folder."""
        return max(now - self.modified, timedelta(0))


@dataclass(eq=False)
class Search:
    """Private files under some folders, and folders that could not be read."""

    found: list[Found] = field(default_factory=list)
    unreadable: list[Path] = field(default_factory=list)


def find_private(folders: Iterable[str | Path], *, now: datetime | None = None) -> Search:
    """Private files under the given folders, sorted by path. Symbolic links are not followed."""
    now = now or datetime.now(UTC)
    search = Search()
    known: dict[Path, Found] = {}
    for folder in map(Path, folders):
        if not folder.is_dir():
            raise InvalidParameter(f"{folder} is not a folder; pass folders to search")
        for found in _search(folder, search.unreadable, now):
            known.setdefault(found.path.resolve(), found)
    search.found = sorted(known.values(), key=lambda found: found.path)
    return search


def delete(found: Found) -> str:
    """Overwrite and delete; returns why nothing was deleted, or an empty text.

    A folder is looked at again, under its lock: a training may have begun since it was found.
    """
    if found.kept:
        return found.kept
    if found.kind is Kind.RUN:
        return _delete_run(found.path)
    with files.reported(found.path):
        for path in found.paths:
            for file in [*path.iterdir()] if path.is_dir() else [path]:
                files.erase_file(file)
            if path.is_dir():
                path.rmdir()
        files.sync(found.path.parent)
    return ""


def _delete_run(path: Path) -> str:
    try:
        handle = run_files.lock(path)
    except NoiseReuse:
        return _IN_USE
    except InvalidDocument:
        return "" if not path.exists() else "it cannot be opened"
    try:
        if not _is_run(path):
            return "it has changed and is no run folder any more"
        run_files.delete(path)
    finally:
        os.close(handle)
    return ""


_IN_USE = "a training is using it"


def _search(folder: Path, unreadable: list[Path], now: datetime) -> Iterator[Found]:
    def missed(error: OSError) -> None:
        unreadable.append(Path(str(error.filename)))

    for here, folders, names in os.walk(folder, onerror=missed):
        where = Path(here)
        if {bundle.CERTIFICATE, bundle.SUMS} <= set(names):
            folders.clear()  # a release; everything in it is public
            continue
        try:
            whole = _run(where) or _cache(where, [*folders, *names])
        except OSError:  # it was deleted meanwhile, or may not be read
            unreadable.append(where)
            continue
        if whole is not None:
            folders.clear()
            yield whole
            continue
        for name in names:
            file = where / name
            try:
                found = None if file.is_symlink() else _file(file, now)
            except OSError:
                unreadable.append(file)
            else:
                if found is not None:
                    yield found


def _is_run(path: Path) -> bool:
    """True for a run folder, or for one that was killed while it was created."""
    names = {file.name for file in path.iterdir()}
    if _RUN_DRAFT.fullmatch(path.name):
        return names - {file.name for file in files.drafts(path)} <= RUN_NAMES
    if run_files.LEDGER not in names or not is_run_folder(path):
        return False
    return len(names) > 1 or path.suffix == ".run"  # a ledger alone may be a record to keep


def _run(path: Path) -> Found | None:
    if not _is_run(path):
        return None
    if run_files.is_locked(path):
        return _found(path, Kind.RUN, kept=_IN_USE)
    return _found(path, Kind.RUN, detail=_progress(path))


def _progress(path: Path) -> str:
    """State of a run that nobody is continuing."""
    try:
        count = len(read_journal(path / run_files.LEDGER).events)
    except InvalidInput:
        return "interrupted"
    if not count:
        return "interrupted before its first noisy answer"
    return f"interrupted; {count:,} noisy answers, which count towards the privacy cost"


def _cache(path: Path, names: Sequence[str]) -> Found | None:
    is_cache = path.name in (COMPARISON, AUDIT) and any(map(CELL_NAME.fullmatch, names))
    if not is_cache or not all(CELL_NAME.fullmatch(name) or _is_draft(name) for name in names):
        return None
    return _found(path, Kind.CACHE, detail=f"{len(names):,} files")


def _is_draft(name: str) -> bool:
    return files.is_draft(name) or _DELIVERY.fullmatch(name) is not None


def _file(file: Path, now: datetime) -> Found | None:
    """Private file by its content; None for any other file."""
    if _is_draft(file.name):
        found = _found(file, Kind.LEFTOVER)
        return found if found.age(now) >= LEFTOVER_AGE else None
    if file.name in ("compare.json", "audit.json"):
        return _report(file)
    if not file.is_file() or file.stat().st_size < len(_KEY):
        return None
    with file.open("rb") as stream:
        start = stream.read(len(_KEY))
        if start == _KEY and file.with_name(f"{file.name}.pub").exists():
            kept = "without it, later releases cannot be signed; delete it yourself"
            return _found(file, Kind.KEY, kept=kept)
        if start[:4] != _MAGIC:
            return None
        size = stream.seek(-8, os.SEEK_END)
        length = int.from_bytes(stream.read(4), "little")
        if length > min(size, _FOOTER_MAX):
            return None
        stream.seek(size - length)
        footer = stream.read(length)
    if PRIVATE.encode() not in footer:
        return None
    kinds = {Private.PSEUDONYMS: Kind.PSEUDONYMS, Private.ITEMS: Kind.ITEMS}
    marked = [kind for mark, kind in kinds.items() if mark.value.encode() in footer]
    return _found(file, marked[0]) if marked else None


def _report(file: Path) -> Found | None:
    """Report of a comparison or audit, with its drawings and its page."""
    try:
        document = strict_json.read(file)
    except InvalidInput:
        return None
    if not isinstance(document, dict) or document.get("view") != "owner":
        return None
    parts = [file.with_suffix(f".{ending}") for ending in ("json", "png", "svg", "html")]
    present = tuple(part for part in parts if part.is_file() and not part.is_symlink())
    names = ", ".join(part.name for part in present)
    return _found(file, Kind.REPORT, paths=present, detail=f"owner-only: {names}")


def _found(
    path: Path,
    kind: Kind,
    *,
    paths: tuple[Path, ...] | None = None,
    detail: str = "",
    kept: str = "",
) -> Found:
    paths = paths or (path,)
    whole = [each for top in paths for each in (top, *top.rglob("*"))]
    stats = [each.lstat() for each in whole]
    modified = datetime.fromtimestamp(max(stat.st_mtime for stat in stats), UTC)
    size = sum(stat.st_size for each, stat in zip(whole, stats, strict=True) if each.is_file())
    return Found(
        path=path,
        kind=kind,
        size=size,
        modified=modified,
        paths=paths,
        detail=detail,
        kept=kept,
    )
