"""Files that must reach the disk, and never replace others."""

import os
import secrets
import shutil
from pathlib import Path

from tacit.errors import InvalidDocument


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
