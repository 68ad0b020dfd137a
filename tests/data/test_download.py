"""Downloads from a local HTTP server that serves a small archive."""

import hashlib
import http.server
import io
import json
import os
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.data import download as module
from taciturn.data.download import download, file_digest
from taciturn.data.named import NAMED_SETS, find_archive, load_named, named_set
from taciturn.errors import DownloadFailed, InvalidDocument, OutputError
from tests.conftest import Command


def archive() -> bytes:
    """A small MovieLens archive with the real layout and format."""
    random = np.random.default_rng(0)
    pairs = [(u, i) for u in range(1, 200) for i in range(1, 60) if random.random() < 0.4]
    lines = [f"{u}::{i}::{random.integers(1, 6)}::97830{i:04}" for u, i in pairs]
    bundle = io.BytesIO()
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("ml-1m/README", "terms of use\n")
        file.writestr("ml-1m/ratings.dat", "\n".join(lines) + "\n")
    return bundle.getvalue()


CONTENT = archive()
CHECKSUMS = {
    "md5": hashlib.md5(CONTENT, usedforsecurity=False).hexdigest(),
    "sha256": hashlib.sha256(CONTENT).hexdigest(),
}


@dataclass
class Server:
    """Behaviour of the server, and the requests that it received."""

    url: str = ""
    content: bytes = CONTENT
    ranges: bool = True
    status: int = 200
    break_after: list[int] = field(default_factory=list)  # bytes after which each response ends
    asked: list[str | None] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            state.asked.append(wanted)
            if state.status != 200:
                self.send_error(state.status)
                return
            begin = 0
            if wanted and state.ranges:
                begin = int(wanted.removeprefix("bytes=").removesuffix("-"))
                if begin >= len(state.content):
                    self.send_error(416)
                    return
            body = state.content[begin:]
            self.send_response(206 if begin else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if state.break_after:
                self.wfile.write(body[: state.break_after.pop(0)])
                self.connection.close()
            else:
                self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        state.url = f"http://127.0.0.1:{listener.server_port}"
        thread = threading.Thread(target=listener.serve_forever)
        thread.start()
        yield state
        listener.shutdown()
        thread.join()


def fetch(server: Server, target: Path, **options: Any) -> None:
    defaults: dict[str, Any] = {"checksums": CHECKSUMS, "pause": 0.0}
    download(f"{server.url}/ml-1m.zip", target, **(defaults | options))


def test_a_download_is_complete_and_reports_progress(server: Server, tmp_path: Path) -> None:
    steps: list[tuple[int, int | None]] = []
    target = tmp_path / "deep" / "er" / "ml-1m.zip"
    fetch(server, target, progress=lambda done, total: steps.append((done, total)))
    assert target.read_bytes() == CONTENT
    assert list(target.parent.iterdir()) == [target]
    assert steps[-1] == (len(CONTENT), len(CONTENT))


def test_an_interrupted_download_is_resumed_within_one_call(server: Server, tmp_path: Path) -> None:
    server.break_after = [1000, 500]
    fetch(server, tmp_path / "a.zip")
    assert (tmp_path / "a.zip").read_bytes() == CONTENT
    assert server.asked == [None, "bytes=1000-", "bytes=1500-"]


def test_an_interrupted_download_resumes_in_the_next_call(server: Server, tmp_path: Path) -> None:
    server.break_after = [1000] + [0] * (module.ATTEMPTS - 1)
    with pytest.raises(DownloadFailed, match="try again"):
        fetch(server, tmp_path / "a.zip")
    assert not (tmp_path / "a.zip").exists()
    assert (tmp_path / "a.zip.part").read_bytes() == CONTENT[:1000]
    fetch(server, tmp_path / "a.zip")
    assert server.asked[-1] == "bytes=1000-"
    assert (tmp_path / "a.zip").read_bytes() == CONTENT


def test_a_server_without_ranges_starts_anew(server: Server, tmp_path: Path) -> None:
    server.ranges = False
    server.break_after = [1000]
    fetch(server, tmp_path / "a.zip")
    assert (tmp_path / "a.zip").read_bytes() == CONTENT


def test_a_complete_partial_file_is_used(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.zip.part").write_bytes(CONTENT)
    fetch(server, tmp_path / "a.zip")
    assert (tmp_path / "a.zip").read_bytes() == CONTENT


@pytest.mark.parametrize("algorithm", ["md5", "sha256"])
def test_a_wrong_checksum_leaves_no_file(server: Server, tmp_path: Path, algorithm: str) -> None:
    server.content = CONTENT[:-1] + b"?"
    with pytest.raises(DownloadFailed, match=f"{algorithm} checksum"):
        fetch(server, tmp_path / "a.zip", checksums={algorithm: CHECKSUMS[algorithm]})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_refusal_is_not_retried(server: Server, tmp_path: Path, status: int) -> None:
    server.status = status
    with pytest.raises(DownloadFailed, match=f"answered {status}"):
        fetch(server, tmp_path / "a.zip")
    assert list(tmp_path.iterdir()) == [] and len(server.asked) == 1


def test_a_server_error_is_retried(server: Server, tmp_path: Path) -> None:
    server.status = 503
    with pytest.raises(DownloadFailed, match="could not be fetched"):
        fetch(server, tmp_path / "a.zip")
    assert len(server.asked) == module.ATTEMPTS


def test_a_server_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed, match="could not be fetched"):
        fetch(Server(url="http://127.0.0.1:9"), tmp_path / "a.zip")


def test_an_invalid_url_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed, match="not a valid URL"):
        fetch(Server(url="foo"), tmp_path / "a.zip")


def test_a_full_disk_is_an_error(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.zip.part").symlink_to("/dev/full")
    with pytest.raises(OutputError, match="No space left on device; make room"):
        fetch(server, tmp_path / "a.zip")
    assert not (tmp_path / "a.zip").exists()


def test_an_unwritable_target_is_an_error(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot write"):
        fetch(server, tmp_path / "file" / "a.zip")


@pytest.fixture
def mirror(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A mirror and an empty cache, with the small archive as the official one."""
    monkeypatch.setenv("TACITURN_MIRROR", server.url)
    monkeypatch.setenv("TACITURN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TACITURN_DATA", raising=False)
    monkeypatch.setitem(NAMED_SETS["ml-1m"].checksums, "md5", CHECKSUMS["md5"])
    monkeypatch.setitem(NAMED_SETS["ml-1m"].checksums, "sha256", CHECKSUMS["sha256"])
    return server


def test_a_named_set_is_fetched_once(mirror: Server, tmp_path: Path) -> None:
    licences: list[str] = []
    first = load_named("ml-1m", licence=licences.append)
    again = load_named("ml-1m", licence=licences.append)
    assert len(mirror.asked) == 1 and len(licences) == 1
    assert "research" in licences[0]
    assert first.to_frame().equals(again.to_frame()) and len(first) > 1000
    assert str(first.scale) == "1:5:1"
    assert file_digest(tmp_path / "cache" / "ml-1m.zip", "sha256") == CHECKSUMS["sha256"]


def test_fetching_can_be_forbidden(mirror: Server) -> None:
    with pytest.raises(InvalidDocument, match="taciturn data get ml-1m"):
        load_named("ml-1m", fetch=False)
    assert mirror.asked == []


def test_the_data_folder_comes_first(
    mirror: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACITURN_DATA", str(tmp_path))
    (tmp_path / "ml-1m.zip").write_bytes(CONTENT)
    assert find_archive(named_set("ml-1m")) == tmp_path / "ml-1m.zip"
    (tmp_path / "ml-1m.zip").write_bytes(CONTENT + b" ")
    with pytest.warns(UserWarning, match="not the official archive"):
        assert find_archive(named_set("ml-1m")) == tmp_path / "ml-1m.zip"
    assert mirror.asked == []


def test_the_command_line_downloads_a_set(
    server: Server, taciturn: Command, real_set: Callable[[str], Path], tmp_path: Path
) -> None:
    """The real MovieLens 1M archive through the real command, with its official checksum."""
    server.content = real_set("ml-1m.zip").read_bytes()
    server.break_after = [2_000_000]
    environment = {name: value for name, value in os.environ.items() if name != "TACITURN_DATA"}
    environment |= {"TACITURN_MIRROR": server.url, "TACITURN_CACHE": str(tmp_path / "cache")}
    result = taciturn("data", "get", "ml-1m", "--json", env=environment)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["bytes"] == len(server.content)
    assert "GroupLens" in result.stderr
    assert server.asked == [None, "bytes=2000000-"]
    shown = taciturn("data", "info", "ml-1m", "--json", env=environment)
    assert json.loads(shown.stdout)["ratings"] == 1_000_209
    server.content = server.content[:-1]
    environment["TACITURN_CACHE"] = str(tmp_path / "other")
    broken = taciturn("data", "get", "ml-1m", env=environment)
    assert broken.returncode == 2 and "checksum" in broken.stderr
