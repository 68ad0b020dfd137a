"""Exit of a training: a failure at any system call, then resuming, ends in the same release."""

import errno
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from unittest.mock import patch

import pytest

from taciturn._internal import strict_json
from taciturn.errors import InvalidDocument, TaciturnError
from taciturn.training.publish import publish
from tests.failures import Failure, Injector, Killed, injected
from tests.training.helpers import go

Outcome = dict[str, object]

CHUNKS = 4


def private_outputs(folder: Path) -> dict[str, object]:
    return {
        "private_items": folder / "items",
        "users_out": "pseudonyms",
        "pseudonyms": folder / "names",
    }


def known_start() -> AbstractContextManager[object]:
    """Let users start from known profiles, so that all trainings release the same values."""
    return patch("taciturn.mechanisms.run_folder.secrets.randbits", lambda bits: 1)


def train_with(injector: Injector, folder: Path) -> None:
    """Train with every kind of private output; an operation of the exit fails."""
    folder.mkdir(exist_ok=True)

    def failing(*arguments: object) -> None:
        injector.install(stack)
        publish(*arguments)  # type: ignore[arg-type]  # passed through

    with suppress(Killed), pytest.MonkeyPatch.context() as stack, known_start():
        stack.setattr("taciturn.training.workspace.publish", failing)
        go(folder / "release", "paper", private=private_outputs(folder))
    injector.release()


def resume(folder: Path) -> None:
    """Resume a training; a training that had ended leaves nothing to resume."""
    try:
        with known_start():
            go(folder / "release", "paper", private=private_outputs(folder), resume=True)
    except InvalidDocument as error:
        if "nothing is left to resume" not in str(error):
            raise


def outcome(folder: Path) -> Outcome:
    """Everything that a finished training leaves, but for the random name of its run."""
    release = folder / "release"
    document = strict_json.read(release / "certificate.json")
    document["certificate"]["ledger"].pop("run")
    return {
        "left": sorted(path.name for path in folder.iterdir()),
        "released": sorted(path.name for path in release.iterdir()),
        "certificate": document,
        "tables": [(release / "users.parquet").read_bytes()],
        "private": [(folder / name).read_bytes() for name in ("items", "names")],
        "modes": [(folder / name).stat().st_mode & 0o777 for name in ("items", "names")],
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, int]:
    """Outcome of an undisturbed training, and the number of system calls of its exit."""
    folder = tmp_path_factory.mktemp("whole")
    injector = Injector(None, counts_reads=True)
    train_with(injector, folder)
    result = outcome(folder)
    assert result["left"] == ["items", "names", "release"]
    assert injector.count > 100  # the calls are really seen
    return result, injector.count


def check_failure(number: int, failure: Failure, folder: Path, expected: Outcome) -> None:
    """Train with a failure of one call, then resume: nothing is lost or left behind."""
    code = errno.ENOSPC if failure is Failure.FULL else errno.EIO
    injector = Injector(number, failure, code=code, counts_reads=True)
    with suppress(TaciturnError, OSError, KeyboardInterrupt):
        train_with(injector, folder)
    assert injector.has_failed
    resume(folder)
    assert outcome(folder) == expected, f"{failure}, at call {number}"


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("failure", Failure)
def test_a_failure_at_any_system_call_of_the_exit_loses_nothing(
    tmp_path: Path, whole: tuple[Outcome, int], failure: Failure, chunk: int
) -> None:
    expected, calls = whole
    for number in range(chunk, calls, CHUNKS):
        check_failure(number, failure, tmp_path / str(number), expected)


@pytest.mark.parametrize("failure", Failure)
def test_a_failure_at_some_system_calls_of_the_exit_loses_nothing(
    tmp_path: Path, whole: tuple[Outcome, int], failure: Failure
) -> None:
    expected, calls = whole
    for number in range(7, calls, 31):
        check_failure(number, failure, tmp_path / str(number), expected)


@pytest.mark.slow
@pytest.mark.parametrize("failure", Failure)
def test_a_second_failure_while_resuming_loses_nothing(
    tmp_path: Path, whole: tuple[Outcome, int], failure: Failure
) -> None:
    """The exit fails before and after its commit, and resuming at every fifth of its own calls."""
    expected, calls = whole
    for number in range(0, 80, 5):
        for first in (calls // 4, calls * 3 // 4):
            folder = tmp_path / f"{first}-{number}"
            with pytest.raises(KeyboardInterrupt):
                train_with(Injector(first, Failure.INTERRUPT, counts_reads=True), folder)
            second = Injector(number, failure, code=errno.ENOSPC, counts_reads=True)
            with suppress(TaciturnError, OSError, KeyboardInterrupt), injected(second):
                resume(folder)
            resume(folder)
            assert outcome(folder) == expected, f"{failure}, at call {number} after {first}"
