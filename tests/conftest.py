"""Settings and fixtures that tests of several parts share."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("taciturn", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("taciturn")

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def real_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Path]:
    """Return a file of the real data in TACITURN_DATA, or skip the test, naming what it needs."""
    monkeypatch.setenv("TACITURN_CACHE", str(tmp_path / "cache"))

    def find(name: str) -> Path:
        file = Path(os.environ.get("TACITURN_DATA", "")) / name
        if "TACITURN_DATA" not in os.environ or not file.is_file():
            pytest.skip(f"needs {name} in the folder TACITURN_DATA")
        return file

    return find


@pytest.fixture
def taciturn() -> Command:
    """Run the installed command line in a process of its own, as a user would."""

    def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from taciturn.cli import main; main()"]
        defaults = {"capture_output": True, "text": True, "timeout": 60, "check": False}
        return subprocess.run([*command, *map(str, arguments)], **(defaults | options))

    return run
