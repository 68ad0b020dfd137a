"""Killed trainings resume to the same files: the short form."""

from collections import Counter
from pathlib import Path

import pytest

from tests.torture import kills
from tests.torture.faults import FaultTarget
from tests.torture.kills import Killed, KillLoop
from tests.torture.workers import tried


@pytest.mark.slow
def test_killed_trainings_resume_to_the_same_files(tmp_path: Path) -> None:
    """A handful of real kills."""
    loop, total = KillLoop(tmp_path / "kills", 0, ("paper", "user")), Killed()
    while total.total < 5:
        total.add(loop.torment(total.trainings))
        assert total.findings == []


@pytest.mark.slow
def test_a_training_with_another_result_is_found(tmp_path: Path) -> None:
    loop = KillLoop(tmp_path / "kills", 0, ("user",))
    loop.expected["user"]["release/card.md"] = b"another card"
    assert loop.torment(0).findings == ["training 0 (user) differs in ['release/card.md']"]


@pytest.mark.slow
def test_trainings_with_a_fault_at_a_system_call_resume_to_the_same_files(tmp_path: Path) -> None:
    target = FaultTarget(tmp_path)
    found = [tried(target, 0, index) for index in range(15)]
    assert [result.finding for result in found if result.finding] == []


def test_phases_are_told_by_files(tmp_path: Path) -> None:
    release, run = tmp_path / "release", tmp_path / "release.run"
    seen = Counter([kills.phase(release)])
    run.mkdir()
    seen[kills.phase(release)] += 1
    (run / "outputs.json").touch()
    seen[kills.phase(release)] += 1
    release.mkdir()
    seen[kills.phase(release)] += 1
    (run / "outputs.json").unlink()
    run.rmdir()
    seen[kills.phase(release)] += 1
    assert len(seen) == 5
