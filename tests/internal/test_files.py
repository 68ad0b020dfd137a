"""Files are written completely or not at all, and existing files are not overwritten."""

import errno
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from taciturn._internal import files
from taciturn._internal.files import (
    append,
    check_absent,
    drafts,
    move_private,
    prepare_folder,
    write_file,
    write_folder,
)
from taciturn.cli.app import run
from taciturn.errors import InvalidInput, OutputError

CONTENT = b"new content " * 1000


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def fails_with(code: int) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


def fill(folder: Path) -> None:
    write_file(folder / "one", b"1")
    write_file(folder / "two", CONTENT)


def test_a_new_file_has_its_content_and_the_usual_permissions(tmp_path: Path) -> None:
    write_file(tmp_path / "new", CONTENT)
    (tmp_path / "usual").touch()
    assert (tmp_path / "new").read_bytes() == CONTENT
    assert mode(tmp_path / "new") == mode(tmp_path / "usual")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["new", "usual"]


@pytest.mark.parametrize("replace", [False, True])
def test_a_private_file_is_readable_by_its_owner_only(tmp_path: Path, replace: bool) -> None:
    write_file(tmp_path / "mine", CONTENT, is_private=True, replace=replace)
    assert mode(tmp_path / "mine") == 0o600


def test_a_private_file_is_never_readable_by_others_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    write = os.write

    def watched(handle: int, content: bytes) -> int:
        modes.append(stat.S_IMODE(os.fstat(handle).st_mode))
        return write(handle, content)

    monkeypatch.setattr(os, "write", watched)
    write_file(tmp_path / "mine", CONTENT, is_private=True)
    assert modes == [0o600]


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_an_existing_path_is_refused_and_unchanged(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "there"
    if kind == "file":
        path.write_text("old")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "nowhere")
    before = path.lstat()
    for write in (
        lambda: write_file(path, CONTENT),
        lambda: write_folder(path, fill),
        lambda: check_absent(path),
    ):
        with pytest.raises(OutputError, match="there exists already and is never overwritten"):
            write()
    after = path.lstat()
    assert (after.st_ino, after.st_mtime_ns, after.st_size) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_size,
    )
    assert list(tmp_path.iterdir()) == [path]


def test_replacing_changes_the_content(tmp_path: Path) -> None:
    for content in (b"old", CONTENT):
        write_file(tmp_path / "file", content, replace=True)
        assert (tmp_path / "file").read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("call", ["write", "fsync"])
@pytest.mark.parametrize("replace", [False, True])
def test_a_full_disk_leaves_no_new_file_and_the_old_one_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, replace: bool
) -> None:
    old = tmp_path / "old"
    old.write_text("old")
    target = old if replace else tmp_path / "new"
    monkeypatch.setattr(os, call, fails_with(errno.ENOSPC))
    with pytest.raises(
        OutputError, match=f"cannot write {target}: No space left on device; make room"
    ):
        write_file(target, CONTENT, replace=replace)
    assert list(tmp_path.iterdir()) == [old] and old.read_text() == "old"


@pytest.mark.parametrize("write", [write_file, append])
def test_a_partial_write_is_undone(tmp_path: Path, write: Callable[[Path, bytes], None]) -> None:
    """The system writes the first bytes and refuses the rest, as on a full disk."""
    target = tmp_path / "file"
    if write is append:
        target.write_bytes(b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(CONTENT) // 2, limits[1]))
    try:
        with pytest.raises((OutputError, OSError), match="File too large"):
            write(target, CONTENT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    if write is append:
        assert target.read_bytes() == b"old"
    else:
        assert not list(tmp_path.iterdir())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(disk)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a disk")
    yield disk
    umount = shutil.which("umount") or "umount"
    subprocess.run([umount, str(disk)], check=True)


def test_a_disk_that_fills_up_keeps_its_old_files(small_disk: Path) -> None:
    write_file(small_disk / "old", b"old")
    big = bytes(100_000)
    writers: tuple[Callable[[], object], ...] = (
        lambda: write_file(small_disk / "new", big),
        lambda: write_file(small_disk / "old", big, replace=True),
        lambda: write_folder(small_disk / "new", lambda draft: write_file(draft / "big", big)),
    )
    for write in writers:
        with pytest.raises(OutputError, match="No space left on device; make room"):
            write()
    assert [file.name for file in small_disk.iterdir()] == ["old"]
    assert (small_disk / "old").read_bytes() == b"old"


CHILD = """
import os, signal, sys
from pathlib import Path
from taciturn._internal import files

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

setattr(os, sys.argv[2], die)
files.write_file(Path(sys.argv[1]), b"new content", replace=True)
"""


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_killed_write_leaves_the_old_file_unchanged(tmp_path: Path, call: str) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    child = subprocess.run([sys.executable, "-c", CHILD, str(target), call], check=False)
    assert child.returncode == -signal.SIGKILL
    assert target.read_text() == "old"
    (left,) = drafts(tmp_path)
    assert {left, target} == set(tmp_path.iterdir())


def test_a_file_system_without_hard_links_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", fails_with(errno.EPERM))
    write_file(tmp_path / "new", CONTENT)
    with pytest.raises(OutputError, match="exists already"):
        write_file(tmp_path / "new", b"")
    assert (tmp_path / "new").read_bytes() == CONTENT
    assert [file.name for file in tmp_path.iterdir()] == ["new"]


def test_a_folder_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    def watched(folder: Path) -> None:
        fill(folder)
        assert not (tmp_path / "new").exists()

    write_folder(tmp_path / "new", watched)
    write_folder(tmp_path / "mine", fill, is_private=True)
    for name in ("new", "mine"):
        assert sorted(file.name for file in (tmp_path / name).iterdir()) == ["one", "two"]
    assert mode(tmp_path / "mine") == 0o700
    assert sorted(file.name for file in tmp_path.iterdir()) == ["mine", "new"]


@pytest.mark.parametrize("error", [ValueError("other"), KeyboardInterrupt(), InvalidInput("other")])
def test_a_folder_that_cannot_be_filled_leaves_nothing(
    tmp_path: Path, error: BaseException
) -> None:
    def broken(folder: Path) -> None:
        fill(folder)
        raise error

    with pytest.raises(type(error)):
        write_folder(tmp_path / "new", broken)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_reported_under_the_final_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "write", fails_with(errno.ENOSPC))
    with pytest.raises(OutputError, match=f"cannot write {tmp_path}/new/one: No space left"):
        write_folder(tmp_path / "new", fill)
    assert not list(tmp_path.iterdir())


def test_a_folder_made_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="exists already"):
        write_folder(tmp_path / "new", lambda draft: (tmp_path / "new").mkdir())
    assert not list((tmp_path / "new").iterdir())


def test_a_draft_left_by_a_crash_is_started_again(tmp_path: Path) -> None:
    draft = tmp_path / "draft"
    draft.mkdir()
    (draft / "half").write_text("of it")
    write_folder(tmp_path / "new", fill, draft=draft)
    assert sorted(file.name for file in (tmp_path / "new").iterdir()) == ["one", "two"]
    assert not draft.exists()


def test_a_private_file_moves_and_stays_private(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(CONTENT)
    move_private(source, target, tag="map")
    assert target.read_bytes() == CONTENT and mode(target) == 0o600 and not source.exists()


def test_a_private_file_that_cannot_move_stays_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(CONTENT)
    monkeypatch.setattr(os, "fsync", fails_with(errno.EIO))
    with pytest.raises(OutputError, match="Input/output error"):
        move_private(source, target, tag="map")
    assert source.read_bytes() == CONTENT and list(tmp_path.iterdir()) == [source]


def test_a_private_file_that_is_there_already_counts_as_moved(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(CONTENT)
    target.write_bytes(CONTENT)
    (tmp_path / ".map.tmp").write_bytes(CONTENT[:3])  # left by the process that was killed
    move_private(source, target, tag="map")
    assert list(tmp_path.iterdir()) == [target] and target.read_bytes() == CONTENT


def test_a_private_file_never_replaces_another(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(CONTENT)
    target.write_bytes(b"something else")
    with pytest.raises(OutputError, match="exists already"):
        move_private(source, target, tag="map")
    assert source.read_bytes() == CONTENT and target.read_bytes() == b"something else"


def test_a_move_that_was_cut_short_without_hard_links_is_finished(tmp_path: Path) -> None:
    """Where a disk has no links, the name is reserved by an empty file first."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(CONTENT)
    target.touch()
    (tmp_path / ".map.tmp").write_bytes(CONTENT)
    move_private(source, target, tag="map")
    assert list(tmp_path.iterdir()) == [target] and target.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("no/file", r"No such file or directory; make its folder first"),
        ("file/new", "its parent is not a folder"),
        ("x" * 300, "choose a shorter name"),
        ("null\0", "null byte"),
        ("folder", "a folder is there"),
    ],
)
def test_an_error_names_the_reason_and_what_to_do(tmp_path: Path, path: str, advice: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match=advice) as caught:
        write_file(tmp_path / path, CONTENT, replace=True)
    assert str(tmp_path / path) in str(caught.value)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_a_folder_without_permission_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(files, "append", fails_with(code))
    with pytest.raises(OutputError, match=f"{os.strerror(code)}; choose a folder that you may"):
        write_file(tmp_path / "new", CONTENT)


def test_a_new_path_needs_its_parent_folder(tmp_path: Path) -> None:
    assert check_absent(tmp_path / "new") == tmp_path / "new"
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="does not exist; make it first"):
        check_absent(tmp_path / "no" / "new")
    with pytest.raises(OutputError, match="is not a folder"):
        check_absent(tmp_path / "file" / "new")


def test_a_folder_for_results_is_made_or_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_folder(tmp_path / "a" / "b")
    assert not list((tmp_path / "a" / "b").iterdir())
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="it is a file"):
        prepare_folder(tmp_path / "file")
    monkeypatch.setattr(Path, "touch", fails_with(errno.EROFS))
    with pytest.raises(OutputError, match="Read-only file system"):
        prepare_folder(tmp_path / "a")


def test_the_command_line_exits_with_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "key").touch()
    assert run(["keygen", "-o", str(tmp_path / "key")]) == 2
    assert capsys.readouterr().err.startswith(f"error: {tmp_path}/key exists already")
