"""Failures of the disk, for tests of what they leave behind."""

import errno
import os
from pathlib import Path

import pytest


def fail_link(patch: pytest.MonkeyPatch, *names: str) -> None:
    """Let a full disk refuse new files of these names, at the last moment."""
    link = os.link

    def full(draft: Path, path: Path) -> None:
        if path.name in names:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        link(draft, path)

    patch.setattr(os, "link", full)
