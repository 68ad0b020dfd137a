"""Exit of a training: a fault at any system call, then resuming, ends in the same release."""

import subprocess
import sys
from pathlib import Path

import pytest

from taciturn.errors import TaciturnError
from tests.faults import FAULTS, Faults, interrupt
from tests.training.exit_cases import outcome, resume, train_with

CHUNKS = 4


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], int]:
    """Outcome of a training without a fault, and the number of system calls of its exit."""
    folder = tmp_path_factory.mktemp("whole")
    faults = Faults()
    train_with(faults, folder)
    result = outcome(folder)
    assert result["left"] == ["items", "names", "release"]
    assert len(faults.seen) > 100  # the calls are really seen
    return result, len(faults.seen)


def check_fault(number: int, kind: str, folder: Path, expected: dict[str, object]) -> None:
    """Train with a fault at one call, then resume: nothing is lost, nothing is left behind."""
    folder.mkdir()
    try:
        train_with(Faults(at=number, **FAULTS[kind]), folder)
    except (TaciturnError, OSError, KeyboardInterrupt):
        resume(folder)
    assert outcome(folder) == expected, f"{kind} at call {number}"


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_at_any_system_call_of_the_exit_loses_nothing(
    tmp_path: Path, whole: tuple[dict[str, object], int], kind: str, chunk: int
) -> None:
    expected, calls = whole
    for number in range(chunk, calls, CHUNKS):
        check_fault(number, kind, tmp_path / str(number), expected)


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_at_some_system_calls_of_the_exit_loses_nothing(
    tmp_path: Path, whole: tuple[dict[str, object], int], kind: str
) -> None:
    expected, calls = whole
    for number in range(5, calls, 23):
        check_fault(number, kind, tmp_path / str(number), expected)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_kill_at_any_system_call_of_the_exit_loses_nothing(
    tmp_path: Path, whole: tuple[dict[str, object], int], chunk: int
) -> None:
    expected, _ = whole
    command = [sys.executable, "-m", "tests.training.exit_cases", tmp_path, chunk, CHUNKS]
    result = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == 0, result.stderr
    kills = int(result.stdout)
    assert kills > 15
    for number in range(chunk, chunk + kills * CHUNKS, CHUNKS):
        assert outcome(tmp_path / str(number)) == expected, f"killed at call {number}"


def test_a_second_fault_while_resuming_loses_nothing(
    tmp_path: Path, whole: tuple[dict[str, object], int]
) -> None:
    """The exit is interrupted at its middle, and resuming at every seventh of its own calls."""
    expected, calls = whole
    for number in range(0, 60, 7):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(KeyboardInterrupt):
            train_with(Faults(at=calls // 2, fault=interrupt), folder)
        try:
            with Faults(at=number, fault=interrupt).armed():
                resume(folder)
        except KeyboardInterrupt:
            resume(folder)
        assert outcome(folder) == expected, f"interrupted again at call {number}"
