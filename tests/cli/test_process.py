"""Start and end of the process: closed streams, broken pipes, interrupts."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from taciturn.cli.interrupts import raise_outside_imports
from taciturn.cli.start import BROKEN_PIPE, INTERRUPTED
from taciturn.release.read import load_release

MAIN = [sys.executable, "-c", "from taciturn.cli import main; main()"]

RATINGS = "user_id,item_id,rating\n" + "".join(
    f"{user},{item},{1 + (user + item) % 5}\n" for user in range(30) for item in range(20)
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with ratings.csv and a release of them."""
    folder = tmp_path_factory.mktemp("process")
    (folder / "ratings.csv").write_text(RATINGS)
    subprocess.run([*MAIN, *_train("release")], cwd=folder, check=True, capture_output=True)
    return folder


def _train(output: str) -> list[str]:
    return [*"train ratings.csv --scale 1:5 --epsilon 10 --solver bias -o".split(), output]


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["2>&-", ">&-", "<&-", "<&- >&- 2>&-"])
def test_a_closed_stream_loses_nothing(folder: Path, closed: str) -> None:
    output = "".join(str(ord(char)) for char in closed)
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", *MAIN, *_train(output)]
    result = subprocess.run(command, cwd=folder, capture_output=True, timeout=60, check=False)
    assert result.returncode == 0
    assert ("status" in result.stdout.decode()) is (">&-" not in closed.replace("2>&-", ""))
    assert load_release(folder / output).certificate.status == "proven"


def test_a_file_never_takes_the_place_of_a_closed_stream() -> None:
    code = (
        "import os\n"
        "from taciturn.cli.streams import replace_streams\n"
        "replace_streams()\n"
        "assert os.open('/dev/zero', os.O_RDONLY) > 2\n"
    )
    command = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", code]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    ["verify release", "doctor --json", "--help", "--version", "predict release --user 3 --item 2"],
)
def test_a_broken_pipe_ends_quietly(folder: Path, command: str) -> None:
    process = subprocess.Popen(
        [*MAIN, *command.split()], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (BROKEN_PIPE, b"")


def test_a_failed_check_is_reported_without_a_reader_too(folder: Path) -> None:
    process = subprocess.Popen(
        [*MAIN, "verify", "release", "--max-epsilon", "1"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1 and b"failed verification: limits" in errors


@pytest.mark.slow
def test_a_training_without_a_reader_is_finished(folder: Path) -> None:
    process = subprocess.Popen(
        [*MAIN, *_train("unread")], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=60) == BROKEN_PIPE
    assert load_release(folder / "unread").certificate.status == "proven"


IMPORT_FAILS = """
import sys
from taciturn.cli import main

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
main(sys.argv[2:])
"""


@pytest.mark.parametrize(
    "module", ["signal", "taciturn.cli.streams", "typer", "taciturn.cli.app", "polars"]
)
def test_an_interrupted_import_is_one_line(module: str) -> None:
    command = [sys.executable, "-c", IMPORT_FAILS, module, *"data info synthetic:10k".split()]
    result = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (INTERRUPTED, b"error: interrupted\n")


# A line on stdout when the handler of interrupts is in place.
SAYS_READY = """
import os, sys
from taciturn.cli import main

class Ready:
    def find_spec(self, name, path=None, target=None):
        if name == "taciturn.cli.streams":
            os.write(1, b"ready\\n")

sys.meta_path.insert(0, Ready())
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 0.03, 0.1, 0.3, 0.6])
def test_an_interrupt_at_any_moment_is_one_line(delay: float) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SAYS_READY, *"data info synthetic:10m".split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (INTERRUPTED, b"error: interrupted\n")


@pytest.fixture
def handler() -> Iterator[None]:
    """Install the handler of the command for one test."""
    before = signal.signal(signal.SIGINT, raise_outside_imports)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("handler")
def test_an_interrupt_waits_for_the_end_of_an_import(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Like a callback of the interpreter, the module drops every exception.
    (tmp_path / "interrupted_module.py").write_text(
        "import os, signal, time\n"
        "is_whole = True\n"
        "try:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(0.1)\n"
        "except KeyboardInterrupt:\n"
        "    is_whole = False\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    module = None
    with pytest.raises(KeyboardInterrupt):
        module = import_module("interrupted_module")
        time.sleep(30)
    assert module is not None and module.is_whole


@pytest.mark.usefixtures("handler")
def test_an_interrupt_outside_imports_comes_at_once() -> None:
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(30)
