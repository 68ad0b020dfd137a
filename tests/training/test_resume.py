"""An interrupted training resumes with the same noise or is refused."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from taciturn.accounting.certificate import read_ledger
from taciturn.errors import InvalidDocument, NoiseReuse, OutputError
from taciturn.mechanisms.gate import Gate
from taciturn.mechanisms.run_folder import RunFolder
from taciturn.solvers import loop
from taciturn.solvers.catalog import CATALOG, make_solver
from taciturn.training.outputs import run_folder
from tests.failures import fail_link
from tests.narrow import present
from tests.solvers.contract import same
from tests.solvers.helpers import BUDGET, replaced, small_solver
from tests.training.helpers import RATINGS, go, stop_at


@pytest.mark.parametrize("name", CATALOG)
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


def total(name: str) -> int:
    solver = small_solver(name, iterations=6)
    return len(solver.algorithm_for(RATINGS, BUDGET if solver.is_private else None).schedule)


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
    with pytest.raises(OutputError, match="--resume"):
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


def test_private_files_survive_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After any failure, resuming writes all files."""
    private = {
        "private_items": tmp_path / "items",
        "users_out": "pseudonyms",
        "pseudonyms": tmp_path / "names",
    }

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    for step in ("release", "delivery", "erasure"):
        output = tmp_path / f"release-{step}"
        with monkeypatch.context() as patch:
            if step == "release":
                patch.setattr("taciturn.release.write.write_folder", fail)
            elif step == "delivery":
                fail_link(patch, "items", "names")
            else:
                patch.setattr(RunFolder, "erase_key", fail)
            with pytest.raises((OutputError, OSError)):
                go(output, "paper", private=private)
        go(output, "paper", resume=True, private=private)
        names = pl.read_parquet(tmp_path / "names")["pseudonym"].sort().to_list()
        assert names == pl.read_parquet(output / "users.parquet")["user_id"].to_list()
        for path in ("items", "names"):
            (tmp_path / path).unlink()
        assert not run_folder(output).exists()


def test_resume_loses_no_private_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted before the map was moved: resuming without a path for it is refused."""
    private = {"users_out": "pseudonyms", "pseudonyms": tmp_path / "names"}

    def crash(*_: object) -> None:
        raise RuntimeError("crash")

    with monkeypatch.context() as patch:
        patch.setattr("taciturn.training.workspace.move_private", crash)
        with pytest.raises(RuntimeError):
            go(tmp_path / "r", private=private)
    with pytest.raises(InvalidDocument, match="still holds private output files"):
        go(tmp_path / "r", resume=True)
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


@pytest.mark.parametrize("erased", [False, True])
def test_a_run_interrupted_after_its_release_is_cleaned_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, erased: bool
) -> None:
    """The release is complete; resuming only removes the run folder."""

    def crash(*_: object) -> None:
        raise RuntimeError("crash")

    with monkeypatch.context() as patch:
        if erased:
            patch.setattr(shutil, "rmtree", crash)
        else:
            patch.setattr(RunFolder, "erase_key", crash)
        with pytest.raises(RuntimeError):
            go(tmp_path / "release")
    assert (run_folder(tmp_path / "release") / "key.json").exists() is not erased
    again = go(tmp_path / "release", resume=True)
    assert again.fit is None and again.certificate.run == read_ledger(tmp_path / "release").run
    assert [path.name for path in tmp_path.iterdir()] == ["release"]
    with pytest.raises(OutputError, match="exists already"):
        go(tmp_path / "release", resume=True)


def test_a_draft_in_the_run_folder_is_removed_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while writing a file, resumed, and interrupted again after the release."""

    def crash(*_: object) -> None:
        raise RuntimeError("crash")

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "erase_key", crash)
        with pytest.raises(RuntimeError):
            go(tmp_path / "release")
    (run_folder(tmp_path / "release") / ".0123456789abcdef.tmp").write_text("half a file")
    assert go(tmp_path / "release", resume=True).fit is None
    assert [path.name for path in tmp_path.iterdir()] == ["release"]


def test_the_folder_of_another_run_is_not_removed(tmp_path: Path) -> None:
    go(tmp_path / "release")
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "other", progress=stop_at(3))
    run_folder(tmp_path / "other").rename(run_folder(tmp_path / "release"))
    with pytest.raises(OutputError, match="exists already"):
        go(tmp_path / "release", resume=True)
    assert (run_folder(tmp_path / "release") / "key.json").exists()
