"""Exit of a training: a failure at any system call, then resuming, ends in the same release."""

import errno
from contextlib import suppress
from pathlib import Path

import pytest

from taciturn.errors import TaciturnError
from taciturn.training.publish import publish
from tests.failures import Failure, Injector, Killed, injected
from tests.training.helpers import Outcome, go, known_start, outcome, private_outputs, resume

CHUNKS = 4


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


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, int]:
    """Outcome of an undisturbed training, and the number of system calls of its exit."""
    folder = tmp_path_factory.mktemp("whole")
    injector = Injector(None, counts_reads=True)
    train_with(injector, folder)
    result = outcome(folder)
    assert result["left"] == ["items", "latest", "names", "release"]
    assert result["latest"] == "release"
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
