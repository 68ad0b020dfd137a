"""Atomic file writing: complete or not at all, and on disk before the call returns.

A file or folder is created under a temporary name beside its destination, synced and renamed.
Existing files are not overwritten unless the caller asks for it, and a failure leaves nothing
behind. A path that cannot be written raises `OutputError`. Only the journal of a run and a
resumable download append to their files; they too use `append` and `output_error`.
"""

import errno
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from taciturn._internal import validate
from taciturn.errors import OutputError

_DRAFT = re.compile(r"\.[0-9a-f]{16}\.tmp")

_CHUNK = 2**20

_PRIVATE_FILE, _PRIVATE_FOLDER = 0o600, 0o700

_ADVICE = {
    errno.ENOENT: "make its folder first",
    errno.ENOTDIR: "choose another path: its parent is not a folder",
    errno.EISDIR: "choose a file name: a folder is there",
    errno.EACCES: "choose a folder that you may write to",
    errno.EPERM: "choose a folder that you may write to",
    errno.EROFS: "choose a folder that you may write to",
    errno.ENOSPC: "make room on that disk, then run the command again",
    errno.EDQUOT: "make room on that disk, then run the command again",
    errno.ENAMETOOLONG: "choose a shorter name",
}


def output_error(path: Path, error: OSError | ValueError) -> OutputError:
    """Error for a path that cannot be written, with the system's reason and advice."""
    code = error.errno if isinstance(error, OSError) else None
    if code == errno.EEXIST:
        return OutputError(f"{path} exists already and is never overwritten; choose another name")
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    advice = _ADVICE.get(code or 0, "choose another path")
    return OutputError(f"cannot write {path}: {reason}; {advice}")


@contextmanager
def reported(path: Path) -> Iterator[None]:
    """Convert system errors into an `OutputError` about `path`."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise output_error(path, error) from None


def check_absent(path: str | Path) -> Path:
    """Absolute path of a new file or folder.

    Raises if it exists, or if its parent folder does not exist or must not be written to.
    """
    path = validate.path("path", path).absolute()
    with reported(path):
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "")
        if not path.parent.is_dir():
            problem = "is not a folder" if path.parent.exists() else "does not exist; make it first"
            raise OutputError(f"cannot write {path}: the folder {path.parent} {problem}")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return path


def prepare_folder(folder: Path) -> None:
    """Create a folder if it does not exist; raise unless files can be written to it."""
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"cannot write to {folder}: it is a file, not a folder; choose another")
    with reported(folder):
        folder.mkdir(parents=True, exist_ok=True)
        probe = _draft_beside(folder / "probe")
        try:
            probe.touch(exist_ok=False)
        finally:
            probe.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until a file, or the list of files in a folder, has reached the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_file(
    path: str | Path, content: bytes, *, is_private: bool = False, replace: bool = False
) -> None:
    """Write a file atomically.

    Parameters
    ----------
    path, content
        The file and all of its bytes.
    is_private
        Make the file readable by its owner only.
    replace
        Replace an existing file, which stays intact until then. Otherwise an existing path is
        refused.
    """
    path = Path(path)
    with reported(path):
        draft = _draft_beside(path)
        try:
            append(draft, content, is_new=True, is_private=is_private)
            if replace:
                draft.replace(path)
            else:
                _link_new(draft, path)
        finally:
            draft.unlink(missing_ok=True)
        sync(path.parent)


def write_folder(
    path: str | Path,
    fill: Callable[[Path], None],
    *,
    draft: Path | None = None,
    is_private: bool = False,
) -> None:
    """Create a folder atomically.

    Parameters
    ----------
    path
        The folder; it must not exist.
    fill
        Called with the draft folder, to write files to it.
    draft
        Path of the draft folder, on the same disk; leftovers of a crash are removed. Default: a
        temporary name beside `path`.
    is_private
        Make the folder accessible to its owner only.
    """
    path = check_absent(path)
    with reported(path):
        draft = draft or _draft_beside(path)
        if draft.exists():
            shutil.rmtree(draft)
        draft.mkdir(mode=_PRIVATE_FOLDER if is_private else 0o777)
    try:
        fill(draft)
        for file in (*draft.iterdir(), draft):
            sync(file)
        check_absent(path)  # a rename would replace an empty folder
        draft.rename(path)
        sync(path.parent)
    except OutputError as error:
        # The user knows the folder by its final name.
        raise OutputError(str(error).replace(str(draft), str(path))) from None
    except OSError as error:
        raise output_error(path, error) from None
    finally:
        if draft.exists():
            shutil.rmtree(draft, ignore_errors=True)


def move_private(source: Path, target: Path, *, tag: str) -> None:
    """Move a finished private file to a new path, which may be on another disk.

    It stays readable by its owner only. `source` is removed once `target` has reached the disk.
    Safe to repeat after a crash: the temporary name follows from `tag`, so a second call removes
    what the first one left, and a target that is complete already counts as moved.
    """
    with reported(target):
        content = source.read_bytes()
        draft = target.with_name(f".{tag}.tmp")
        draft.unlink(missing_ok=True)
        try:
            if not _has_content(target, content):
                append(draft, content, is_new=True, is_private=True)
                if _has_content(target, b""):
                    draft.replace(target)  # the name was reserved; see `_link_new`
                else:
                    _link_new(draft, target)
        finally:
            draft.unlink(missing_ok=True)
        sync(target.parent)
        source.unlink()


def check_pointer(path: Path) -> None:
    """Raise unless `path` is free or a symbolic link, in a folder that may be written to."""
    with reported(path):
        if not path.parent.is_dir():
            raise OutputError(
                f"cannot write {path}: the folder {path.parent} does not exist; make it first"
            )
        if os.path.lexists(path) and not path.is_symlink():
            raise OutputError(
                f"{path} exists and is not a symbolic link, so it is never overwritten; choose "
                "another name"
            )
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def try_link(path: Path) -> None:
    """Raise unless the file system of `path` has symbolic links.

    The temporary name follows from `path`, so that the next call removes what a killed one left.
    """
    probe = path.with_name(f".{path.name}.probe")
    with reported(path):
        try:
            with suppress(FileExistsError):  # then there are links
                probe.symlink_to(path.name)
        finally:
            probe.unlink(missing_ok=True)


def point(path: Path, target: Path, *, tag: str) -> None:
    """Let the symbolic link `path` name `target`, relative to its own folder, atomically.

    Safe to repeat after a crash: the temporary name follows from `tag`.
    """
    with reported(path):
        name = os.path.relpath(target.parent.resolve() / target.name, path.parent.resolve())
        draft = path.with_name(f".{tag}.tmp")
        draft.unlink(missing_ok=True)
        try:
            draft.symlink_to(name)
            if os.path.lexists(path) and not path.is_symlink():
                raise FileExistsError(errno.EEXIST, "")
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        sync(path.parent)


def _has_content(path: Path, content: bytes) -> bool:
    """True if `path` is a regular file with exactly this content."""
    is_plain = path.is_file() and not path.is_symlink()
    return is_plain and path.stat().st_size == len(content) and path.read_bytes() == content


def append(path: Path, content: bytes, *, is_new: bool = False, is_private: bool = False) -> None:
    """Append to an existing or new file and wait until the content has reached the disk.

    If not all of it can be written, the file keeps its former content. Raises `OSError`.
    """
    flags = os.O_WRONLY | os.O_APPEND | (os.O_CREAT | os.O_EXCL if is_new else 0)
    handle = os.open(path, flags, _PRIVATE_FILE if is_private else 0o666)
    try:
        size = os.fstat(handle).st_size
        rest = memoryview(content)
        try:
            while rest:
                rest = rest[os.write(handle, rest) :]
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, size)
            raise
    finally:
        os.close(handle)


def erase_file(file: Path) -> None:
    """Overwrite a file with zeros, then remove it. Raises `OSError`.

    Copies that the file system or the disk made are not reached.
    """
    if not file.is_symlink():
        handle = os.open(file, os.O_WRONLY)
        try:
            rest = os.fstat(handle).st_size
            while rest > 0:
                rest -= os.write(handle, bytes(min(rest, _CHUNK)))
            os.fsync(handle)
        finally:
            os.close(handle)
    file.unlink()


def is_draft(name: str) -> bool:
    """True for the name of a temporary file."""
    return _DRAFT.fullmatch(name) is not None


def drafts(folder: Path) -> list[Path]:
    """Temporary files in a folder; unless a process is writing there, a killed one left them."""
    return [file for file in folder.iterdir() if is_draft(file.name)]


def _draft_beside(path: Path) -> Path:
    return path.with_name(f".{secrets.token_hex(8)}.tmp")


def _link_new(draft: Path, path: Path) -> None:
    """Give a finished file its final name, unless that name exists."""
    try:
        os.link(draft, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP):
            raise
        # A file system without hard links: reserve the name first, then move the file there.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE_FILE))
        draft.replace(path)
