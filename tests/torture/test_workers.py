"""Workers report planted faults, and go on with the next input."""

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from tests.torture.planted import Aborting, Busy, Guarded, Hanging, Hungry, Raising, Talking
from tests.torture.target import Target
from tests.torture.workers import GUARDED, Chunk, Result, try_inputs


@pytest.fixture(autouse=True)
def own_environment() -> Iterator[None]:
    """Settings of workers do not stay in this process."""
    with patch.dict("os.environ"):
        yield


@pytest.mark.slow
def test_workers_report_every_planted_fault_and_go_on() -> None:
    planted: list[type[Target]] = [Raising, Talking, Aborting, Hungry, Guarded]
    found: list[Result] = []
    replaced = try_inputs(iter([Chunk(target, 0, 2) for target in planted]), 1, 2, found.append)
    assert sorted((result.name, result.index) for result in found) == sorted(
        (target.name, index) for target in planted for index in range(2)
    )
    said = {result.name: result.finding or result.outcome for result in found}
    assert "KeyError: 'planted'" in said["raising"]
    assert "other than one line" in said["talking"]
    assert "exit code -6" in said["aborting"]
    assert "MemoryError" in said["hungry"]
    assert said["guarded"] == GUARDED
    assert replaced == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "limits", "said"),
    [
        (Hanging, {"silence": 5.0}, "reported nothing for 5 seconds"),
        (Busy, {"seconds": 1}, "exit code -24: more than the allowed processor time"),
    ],
)
def test_an_input_without_end_is_reported(
    target: type[Target], limits: dict[str, int], said: str
) -> None:
    found: list[Result] = []
    try_inputs(iter([Chunk(target, 0, 3)]), 1, 1, found.append, **limits)
    assert [result.outcome for result in found] == [
        *("refused: in time", "ended the process", "refused: in time")
    ]
    assert said in (found[1].finding or "")
