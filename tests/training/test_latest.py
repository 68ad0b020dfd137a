"""Weekly refresh: the pointer to the latest release, and pseudonyms that stay the same."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from taciturn._internal import files
from taciturn.data.ratings import Ratings
from taciturn.errors import CheckFailed, InvalidDocument, InvalidParameter, NoiseReuse, OutputError
from taciturn.release.read import load_release
from taciturn.release.verify import verify_release
from tests.failures import Failure, Injector, injected
from tests.solvers.helpers import random_ratings
from tests.training.helpers import go, stop_at

GROWN = random_ratings(2, users=44, items=25)


def week(folder: Path, name: str, ratings: Ratings, **private: Any) -> pl.Series:
    """User ids of one week's release."""
    go(folder / name, ratings=ratings, private={"latest": folder / "latest"} | private)
    users = load_release(folder / "latest").model.users
    assert users is not None
    return users.ids


def test_the_pointer_names_the_last_release_relative_to_itself(tmp_path: Path) -> None:
    (tmp_path / "releases").mkdir()
    for name in ("monday", "tuesday"):
        go(tmp_path / "releases" / name, private={"latest": tmp_path / "latest"})
        assert str((tmp_path / "latest").readlink()) == f"releases/{name}"
        loaded = load_release(tmp_path / "latest")
        assert loaded.path == tmp_path.resolve() / "releases" / name
        assert verify_release(tmp_path / "latest").checks[0].passed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest", "releases"]


def test_files_are_read_from_one_release_while_the_pointer_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second"):
        go(tmp_path / name, private={"latest": tmp_path / "latest"})
    read_bytes = Path.read_bytes
    (tmp_path / "latest").unlink()
    (tmp_path / "latest").symlink_to("first")

    def swapped(path: Path) -> bytes:
        content = read_bytes(path)
        if path.name == "certificate.json":
            (tmp_path / "latest").unlink()
            (tmp_path / "latest").symlink_to("second")
        return content

    monkeypatch.setattr(Path, "read_bytes", swapped)
    assert load_release(tmp_path / "latest").path.name == "first"


def test_a_pointer_to_nothing_is_explained(tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to("gone")
    with pytest.raises(InvalidDocument, match="points to a release that does not exist"):
        load_release(tmp_path / "latest")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InvalidDocument, match="is not a release"):
        load_release(tmp_path / "loop")


def test_a_link_inside_a_release_is_still_refused(tmp_path: Path) -> None:
    go(tmp_path / "release")
    card = tmp_path / "release" / "card.md"
    card.rename(tmp_path / "card.md")
    card.symlink_to(tmp_path / "card.md")
    with pytest.raises(CheckFailed, match="not part of a release"):
        load_release(tmp_path / "release")


@pytest.mark.parametrize("kind", ["a file", "a folder"])
def test_only_a_link_is_replaced_by_the_pointer(tmp_path: Path, kind: str) -> None:
    latest = tmp_path / "latest"
    latest.touch() if kind == "a file" else latest.mkdir()
    with pytest.raises(OutputError, match="not a symbolic link"):
        go(tmp_path / "release", private={"latest": latest})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest"]


def test_a_pointer_needs_a_path_and_a_folder_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="does not exist; make it first"):
        go(tmp_path / "release", private={"latest": tmp_path / "none" / "latest"})
    with pytest.raises(InvalidParameter, match="latest must be another path"):
        go(tmp_path / "release", private={"latest": tmp_path / "release"})
    assert list(tmp_path.iterdir()) == []


def test_a_disk_without_links_is_refused_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.symlink", refuse)
    with pytest.raises(OutputError, match="cannot write .*latest: Operation not permitted"):
        go(tmp_path / "release", private={"latest": tmp_path / "latest"})
    assert list(tmp_path.iterdir()) == []


def test_a_finished_run_sets_its_pointer_on_resuming_to_the_same_path(tmp_path: Path) -> None:
    private = {"latest": tmp_path / "latest"}

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("taciturn._internal.files.point", interrupted)
        go(tmp_path / "release", private=private)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["release", "release.run"]
    with pytest.raises(InvalidDocument, match="same output paths"):
        go(tmp_path / "release", resume=True)
    go(tmp_path / "release", private=private, resume=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest", "release"]
    assert str((tmp_path / "latest").readlink()) == "release"


def test_users_keep_their_pseudonyms_from_week_to_week(tmp_path: Path) -> None:
    first = {"users_out": "pseudonyms", "pseudonyms": tmp_path / "map-1.parquet"}
    names = week(tmp_path, "week-1", random_ratings(1, users=40, items=25), **first)
    second = {
        "users_out": "pseudonyms",
        "pseudonyms": tmp_path / "map-2.parquet",
        "pseudonyms_in": tmp_path / "map-1.parquet",
    }
    later = week(tmp_path, "week-2", GROWN, **second)
    before, after = (pl.read_parquet(tmp_path / f"map-{number}.parquet") for number in (1, 2))
    assert len(before) == len(names) == 40 and len(later) == 44
    assert after.head(40).equals(before)
    assert set(later) == set(after["pseudonym"]) > set(names)
    assert later.is_sorted()  # the order tells nothing
    assert (tmp_path / "map-2.parquet").stat().st_mode & 0o777 == 0o600


def test_a_run_resumes_only_with_the_same_map(tmp_path: Path) -> None:
    week(tmp_path, "first", GROWN, users_out="pseudonyms", pseudonyms=tmp_path / "map")
    private = {
        "users_out": "pseudonyms",
        "pseudonyms": tmp_path / "map-2",
        "pseudonyms_in": tmp_path / "map",
    }
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "second", private=private, ratings=GROWN, progress=stop_at(2))
    without = {name: path for name, path in private.items() if name != "pseudonyms_in"}
    with pytest.raises(NoiseReuse, match="other data or another configuration"):
        go(tmp_path / "second", private=without, ratings=GROWN, resume=True)
    go(tmp_path / "second", private=private, ratings=GROWN, resume=True)
    assert pl.read_parquet(tmp_path / "map-2").equals(pl.read_parquet(tmp_path / "map"))


def test_an_earlier_map_needs_pseudonyms_and_ids_of_its_kind(tmp_path: Path) -> None:
    week(tmp_path, "first", GROWN, users_out="pseudonyms", pseudonyms=tmp_path / "map")
    with pytest.raises(InvalidParameter, match="pseudonyms_in needs users_out=.pseudonyms"):
        go(tmp_path / "second", private={"pseudonyms_in": tmp_path / "map"})
    text = pl.read_parquet(tmp_path / "map").with_columns(pl.col("user_id").cast(pl.String))
    text.write_parquet(tmp_path / "text")
    with pytest.raises(InvalidDocument, match="are text and those of the ratings"):
        go(
            tmp_path / "second",
            private={
                "users_out": "pseudonyms",
                "pseudonyms": tmp_path / "new",
                "pseudonyms_in": tmp_path / "text",
            },
        )
    assert not (tmp_path / "second.run").exists()


@pytest.mark.parametrize("failure", Failure)
def test_a_reader_finds_a_complete_release_behind_the_pointer_at_all_times(
    tmp_path: Path, failure: Failure
) -> None:
    """The pointer is swapped while operations fail: it names the old or the new release."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    for number in range(12):
        files.point(tmp_path / "latest", tmp_path / "old", tag="a")
        injector = Injector(number, failure)
        try:
            with injected(injector):
                files.point(tmp_path / "latest", tmp_path / "new", tag="b")
        except (OutputError, KeyboardInterrupt):
            pass
        assert str((tmp_path / "latest").readlink()) in ("old", "new")
        files.point(tmp_path / "latest", tmp_path / "new", tag="b")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["latest", "new", "old"]
    assert not injector.has_failed  # every operation had its turn
