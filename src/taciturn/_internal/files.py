"""Files that must reach the disk, whole or not at all."""

import os
import secrets
import shutil
from pathlib import Path

from taciturn.errors import InvalidDocument, InvalidInput


def prepare_folder(folder: Path) -> None:
    """Make a folder if it is not there, and raise unless files can be written to it."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{folder} is a file, not a folder; choose another place")
    probe = folder / f".{secrets.token_hex(8)}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(f"cannot write to the folder {folder}: {reason}") from None


def sync(path: Path) -> None:
    """Return when a file, or the list of a folder, has reached the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def deliver(source: Path, target: Path) -> None:
    """Put a private file in its place, readable by its owner only, unless something is there."""
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        try:
            draft.touch(mode=0o600, exist_ok=False)
            shutil.copyfile(source, draft)
            sync(draft)
            os.link(draft, target)
        finally:
            draft.unlink(missing_ok=True)
        sync(target.parent)
        source.unlink()
    except OSError as error:
        raise InvalidDocument(f"cannot write {target}: {error.strerror}") from None


def replace_file(path: Path, content: bytes, *, is_private: bool = False) -> None:
    """Write a file in one step, so that an older one of the name stays whole on failure.

    A private one is readable by its owner only.
    """
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        try:
            temporary.touch(mode=0o600 if is_private else 0o666, exist_ok=False)
            temporary.write_bytes(content)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(f"cannot write {path}: {reason}") from None
