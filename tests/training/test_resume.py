"""An interrupted training resumes with the same noise or is refused."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from taciturn.errors import InvalidDocument, NoiseReuse, OutputError
from taciturn.mechanisms.gate import Gate
from taciturn.mechanisms.run_folder import RunFolder
from taciturn.release.read import load_release
from taciturn.solvers import loop
from taciturn.solvers.catalog import CATALOG, make_solver
from taciturn.training.outputs import run_folder
from tests.failures import fail_link
from tests.narrow import present
from tests.solvers.helpers import BUDGET, replaced, same, small_solver
from tests.training.helpers import RATINGS, go, stop_at


def total(name: str) -> int:
    solver = small_solver(name, iterations=6)
    return len(solver.algorithm_for(RATINGS, BUDGET if solver.is_private else None).schedule)


@pytest.mark.parametrize("name", [name for name in CATALOG if total(name) > 1])
@pytest.mark.parametrize("stop", [1, 3])
def test_an_interrupted_run_gives_the_same_release(name: str, stop: int, tmp_path: Path) -> None:
    whole = go(tmp_path / "whole", name)
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "parts", name, progress=stop_at(min(stop, total(name) - 1)))
    assert run_folder(tmp_path / "parts").is_dir() and not (tmp_path / "parts").exists()
    resumed = go(tmp_path / "parts", name, resume=True)
    assert same(present(whole.fit), present(resumed.fit))
    assert present(whole.fit).ledger.events == present(resumed.fit).ledger.events
    assert not run_folder(tmp_path / "parts").exists()


def test_a_checkpoint_saves_the_work_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "parts", progress=stop_at(4))
    seen: list[int] = []
    go(tmp_path / "parts", resume=True, progress=lambda done, total: seen.append(done))
    assert seen == [4, 5, 6]


@pytest.mark.parametrize("damage", [b"", b"junk", b"3 00\njunk"])
def test_a_damaged_checkpoint_costs_time_only(tmp_path: Path, damage: bytes) -> None:
    whole = go(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "parts", progress=stop_at(4))
    (run_folder(tmp_path / "parts") / "state").write_bytes(damage)
    seen: list[int] = []
    resumed = go(tmp_path / "parts", resume=True, progress=lambda done, total: seen.append(done))
    assert seen[0] == 0 and same(present(whole.fit), present(resumed.fit))


def test_checkpoints_are_saved_during_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash saves nothing; earlier checkpoints remain."""
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)

    def crash(done: int, total: int) -> None:
        if done == 5:
            raise RuntimeError("crash")

    whole = go(tmp_path / "whole")
    with pytest.raises(RuntimeError):
        go(tmp_path / "parts", progress=crash)
    seen: list[int] = []
    resumed = go(tmp_path / "parts", resume=True, progress=lambda done, total: seen.append(done))
    assert seen == [5, 6] and same(present(whole.fit), present(resumed.fit))


@pytest.mark.parametrize(
    "change",
    [
        {"ratings": replaced(RATINGS, 4, 1.0 if RATINGS.values()[4] > 1 else 2.0)},
        {"seed": 4},
        {"budget": replace(BUDGET, epsilon=11.0)},
        {"holdout": 0.1},
        {"name": "bias"},
        {"solver": make_solver("gradient", factors=3, iterations=6, step_size=0.2)},
        {"ratings": replace(RATINGS, scale=replace(RATINGS.scale, step=None))},
        {"ratings": replace(RATINGS, user_ids=RATINGS.user_ids + 1)},
        {"ratings": replace(RATINGS, item_ids=RATINGS.item_ids + 1)},
    ],
)
def test_other_data_or_another_configuration_is_refused(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "parts", progress=stop_at(3))
    with pytest.raises(NoiseReuse, match="other data or another configuration"):
        go(tmp_path / "parts", resume=True, **change)
    go(tmp_path / "parts", resume=True)


def test_an_interrupted_run_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "parts", progress=stop_at(3))
    with pytest.raises(OutputError, match="resume=True"):
        go(tmp_path / "parts")
    with pytest.raises(InvalidDocument, match="no interrupted training"):
        go(tmp_path / "other", resume=True)


def test_a_run_can_be_resumed_after_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the release cannot be written, the run folder stays and the run can be resumed."""
    whole = go(tmp_path / "whole")

    with monkeypatch.context() as patch:
        fail_link(patch, "users.parquet")
        with pytest.raises(OutputError, match="parts/users.parquet: No space left"):
            go(tmp_path / "parts")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["parts.run", "whole"]
    seen: list[int] = []
    resumed = go(tmp_path / "parts", resume=True, progress=lambda done, total: seen.append(done))
    assert seen == [6] and same(present(whole.fit), present(resumed.fit))


def test_resume_loses_no_private_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted before the map was moved: resuming without a path for it is refused."""
    private = {"users_out": "pseudonyms", "pseudonyms": tmp_path / "names"}

    def crash(*_: object, **__: object) -> None:
        raise RuntimeError("crash")

    with monkeypatch.context() as patch:
        patch.setattr("taciturn._internal.files.move_private", crash)
        with pytest.raises(RuntimeError):
            go(tmp_path / "r", private=private)
    with pytest.raises(InvalidDocument, match="still holds private output files"):
        go(tmp_path / "r", resume=True)
    with pytest.raises(InvalidDocument, match="still holds private output files"):
        go(tmp_path / "r", resume=True, private=private | {"pseudonyms": tmp_path / "other"})
    with pytest.raises(NoiseReuse, match="another configuration"):
        go(tmp_path / "r", resume=True, private=private, seed=9)
    go(tmp_path / "r", resume=True, private=private)
    assert len(pl.read_parquet(tmp_path / "names")) == RATINGS.shape[0]
    assert not run_folder(tmp_path / "r").exists()


def test_resuming_removes_no_other_folder(tmp_path: Path) -> None:
    go(tmp_path / "release")
    folder = run_folder(tmp_path / "release")
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(OutputError, match="exists already"):
        go(tmp_path / "release", resume=True)
    assert (folder / "thesis.txt").read_text() == "years of work"


def test_a_run_interrupted_inside_a_step_repeats_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted after a release, before the step is done."""
    whole = go(tmp_path / "whole")
    original, calls = Gate.release, []

    def release(self: Gate, *arguments: Any, **options: Any) -> Any:
        result = original(self, *arguments, **options)
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return result

    with monkeypatch.context() as patch:
        patch.setattr(Gate, "release", release)
        with pytest.raises(KeyboardInterrupt):
            go(tmp_path / "parts")
    seen: list[int] = []
    resumed = go(tmp_path / "parts", resume=True, progress=lambda done, total: seen.append(done))
    assert seen[0] == 2 and same(present(whole.fit), present(resumed.fit))


def test_the_folder_of_another_run_is_not_removed(tmp_path: Path) -> None:
    go(tmp_path / "release")
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "other", progress=stop_at(3))
    run_folder(tmp_path / "other").rename(run_folder(tmp_path / "release"))
    with pytest.raises(OutputError, match="exists already"):
        go(tmp_path / "release", resume=True)
    assert (run_folder(tmp_path / "release") / "key.json").exists()


def test_a_run_that_released_nothing_is_no_obstacle(tmp_path: Path) -> None:
    """A kill right after the start: the next training begins anew, with or without --resume."""
    whole = go(tmp_path / "whole")
    folder = run_folder(tmp_path / "release")
    RunFolder.create(folder, data=[b"anything"]).close()
    again = go(tmp_path / "release")
    assert same(present(whole.fit), present(again.fit)) and not folder.exists()
    RunFolder.create(run_folder(tmp_path / "other"), data=[b"anything"]).close()
    (run_folder(tmp_path / "other") / "key.json").write_bytes(
        b"{"
    )  # interrupted while it was erased
    with pytest.raises(InvalidDocument, match="no interrupted training"):
        go(tmp_path / "other", resume=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["release", "whole"]


@pytest.mark.parametrize("resume", [False, True])
def test_a_key_that_a_killed_start_left_is_removed(tmp_path: Path, resume: bool) -> None:
    draft = tmp_path / ".release.run.new"
    RunFolder.create(draft, data=[b"anything"]).close()
    if resume:
        with pytest.raises(InvalidDocument, match="no interrupted training"):
            go(tmp_path / "release", resume=True)
    else:
        go(tmp_path / "release")
    assert not draft.exists()


def test_a_key_of_a_training_that_starts_at_this_moment_is_left_alone(tmp_path: Path) -> None:
    live = RunFolder.create(tmp_path / ".release.run.new", data=[b"anything"])
    with pytest.raises(OutputError, match="another training is writing"):
        go(tmp_path / "release")
    assert (live.path / "key.json").exists()
    live.close()


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_failure_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyboardInterrupt) as stopped:
        go(tmp_path / "early", progress=stop_at(3))
    (note,) = stopped.value.__notes__
    assert "resume=True to continue with the same noise, or delete the folder" in note
    with monkeypatch.context() as patch:
        patch.setattr("taciturn.training.publish._deliver", interrupted)
        with pytest.raises(KeyboardInterrupt) as late:
            go(tmp_path / "late")
    (note,) = late.value.__notes__
    assert "is complete" in note and "delete the folder" not in note


def test_a_resumed_training_has_the_date_of_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("taciturn.mechanisms.run_folder.today", lambda: date(2026, 1, 31))
        with pytest.raises(KeyboardInterrupt):
            go(tmp_path / "release", progress=stop_at(3))
    go(tmp_path / "release", resume=True)
    assert load_release(tmp_path / "release").facts.date == date(2026, 1, 31)
