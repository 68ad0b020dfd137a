"""Settings and fixtures shared by all tests."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("taciturn", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("taciturn")

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def real_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Path]:
    """File of real data in TACITURN_DATA; skips the test and names the file if it is missing."""
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

    def run(
        *arguments: object, capture_output: bool = True, timeout: float = 60, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from taciturn.cli import main; main()"]
        return subprocess.run(
            [*command, *map(str, arguments)],
            capture_output=capture_output,
            text=True,
            timeout=timeout,
            check=False,
            **options,
        )

    return run
