"""Simulated disk failures."""

import errno
import os
from pathlib import Path

import pytest


def fail_link(patch: pytest.MonkeyPatch, *names: str) -> None:
    """Make linking files of these names fail as on a full disk."""
    link = os.link

    def full(draft: Path, path: Path) -> None:
        if path.name in names:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        link(draft, path)

    patch.setattr(os, "link", full)
