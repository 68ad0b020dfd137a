"""The command line, called in this process or in one of its own."""

import contextlib
import io
import os
import subprocess
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from taciturn.cli import app

MAIN = (sys.executable, "-c", "from taciturn.cli import main; main()")
"""Command of the installed script, in a fresh interpreter."""

Finished = subprocess.CompletedProcess[str]


DATA_CACHES = {
    "taciturn.reproduction.cells": ("data_digest",),
    "taciturn.reproduction.leak": ("_ratings", "_neighbours"),
    "taciturn.reproduction.runner": ("_ratings",),
}
"""Functions that remember a dataset by its name for as long as the process lives."""


def call(
    *arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Finished:
    """Exit code and output of a command, called in this process.

    Warnings are printed as in a process of its own. Tests of signals, closed streams, the encoding
    of the terminal and imports need `in_process`.
    """
    for module, names in DATA_CACHES.items():
        for name in names if module in sys.modules else ():
            getattr(sys.modules[module], name).cache_clear()
    words = [str(argument) for argument in arguments]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with (
        contextlib.chdir(cwd or Path.cwd()),
        patch.dict(os.environ, env or os.environ, clear=True),
        warnings.catch_warnings(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        warnings.simplefilter("default", UserWarning)
        code = app.run(words)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return subprocess.CompletedProcess(words, code, *texts)


def in_process(*arguments: object, **options: Any) -> Finished:
    """Run a command in a process of its own, as a user would."""
    defaults: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 60, "check": False}
    return subprocess.run([*MAIN, *map(str, arguments)], **(defaults | options))
