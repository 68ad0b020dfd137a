"""Settings and fixtures that tests of several parts share."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import settings

settings.register_profile("tacit", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("tacit")

RunTacit = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def tacit() -> RunTacit:
    """Run the installed command line in a process of its own, as a user would."""

    def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from tacit.cli import main; main()"]
        defaults = {"capture_output": True, "text": True, "timeout": 60, "check": False}
        return subprocess.run([*command, *map(str, arguments)], **(defaults | options))

    return run
