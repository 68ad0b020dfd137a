"""A release is written completely or not at all, wherever its writing ends."""

import contextlib
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import pytest

from taciturn.errors import OutputError
from taciturn.release.verify import verify_release
from taciturn.release.write import write_release
from tests.failures import failing_at, killed_at
from tests.release.helpers import certificate, write_small

WRITER = """
import sys
from pathlib import Path
from taciturn.release.read import load_release
from taciturn.release.write import write_release
from taciturn.solvers.contract import Fit

old = load_release(sys.argv[2])
facts = {"settings": old.facts.settings, "model": old.model}
fit = Fit(solver="gradient", ledger=old.certificate.ledger, **facts)
number = 0
while True:
    write_release(fit, old.certificate, Path(sys.argv[1]) / f"release-{number}")
    number += 1
    if number == 2:
        sys.stdout.write("two written\\n")
        sys.stdout.flush()
"""


def whole_releases(folder: Path) -> int:
    """Number of releases in a folder; raises if one of them is not whole."""
    releases = list(folder.glob("release-*"))
    for release in releases:
        assert verify_release(release).passed
    return len(releases)


def test_a_release_killed_at_any_operation_is_whole_or_absent(tmp_path: Path) -> None:
    fit = write_small(tmp_path / "first")
    for number in count():
        folder = tmp_path / str(number)
        folder.mkdir()
        with killed_at(number) as process:
            write_release(fit, certificate(fit), folder / "release-0")
        written = whole_releases(folder)
        if not process.has_failed:
            break
    assert written == 1 and number > 5 * 5  # five files, each opened, written, synced and linked


def test_a_disk_that_fails_at_any_operation_leaves_a_whole_release_or_nothing(
    tmp_path: Path,
) -> None:
    fit = write_small(tmp_path / "first")
    for number in count():
        folder = tmp_path / str(number)
        folder.mkdir()
        with failing_at(number) as disk, contextlib.suppress(OutputError):
            write_release(fit, certificate(fit), folder / "release-0")
        assert whole_releases(folder) == len(list(folder.iterdir()))
        if not disk.has_failed:
            break
    assert number > 5 * 5


@pytest.mark.slow
def test_a_process_killed_while_writing_leaves_whole_releases(tmp_path: Path) -> None:
    """Real kills of a process that writes release after release."""
    write_small(tmp_path / "first")
    for number in range(4):
        folder = tmp_path / str(number)
        folder.mkdir()
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), str(tmp_path / "first")],
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"two written\n"
            time.sleep(0.004 * number)
            process.kill()
        assert whole_releases(folder) >= 2
