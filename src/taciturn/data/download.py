"""Downloads: resumed where they were interrupted, kept only if the checksum is right."""

import hashlib
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

from taciturn._internal.files import output_error, prepare_folder, sync
from taciturn.errors import DownloadFailed

ATTEMPTS = 4
TIMEOUT = 30.0
CHUNK = 2**18

Progress = Callable[[int, int | None], None]
"""Called with the bytes so far and, if known, the bytes in all."""


def download(
    url: str,
    target: Path,
    *,
    checksums: dict[str, str],
    progress: Progress = lambda done, total: None,
    pause: float = 1.0,
) -> None:
    """Fetch `url` to `target`.

    Bytes are collected beside it in `target`.part, from where an interrupted download goes on, now
    or at the next call. The file appears under its name only when all `checksums`, by the name of
    their algorithm, are right; otherwise nothing is kept. After a full disk it can be resumed too.
    """
    part = target.with_name(target.name + ".part")
    try:
        prepare_folder(target.parent)
        for attempt in range(ATTEMPTS):
            try:
                _fetch(url, part, progress)
                break
            except (TimeoutError, ConnectionError, HTTPException, urllib.error.URLError) as error:
                if isinstance(error, urllib.error.HTTPError) and error.code < 500:
                    part.unlink(missing_ok=True)
                    raise DownloadFailed(
                        f"{url} answered {error.code} {error.reason}; nothing was kept"
                    ) from None
                if attempt == ATTEMPTS - 1:
                    raise DownloadFailed(
                        f"{url} could not be fetched; what came so far is kept: try again later, "
                        "or put the file into a folder named by TACITURN_DATA"
                    ) from None
                time.sleep(pause * 2**attempt)
        for algorithm, expected in checksums.items():
            if file_digest(part, algorithm) != expected:
                part.unlink()
                raise DownloadFailed(
                    f"what {url} sent has another {algorithm} checksum than it should; nothing was "
                    "kept; try again, or put a good archive into a folder named by TACITURN_DATA"
                )
        sync(part)
        part.replace(target)
        sync(target.parent)
    except OSError as error:
        raise output_error(target, error) from None
    except ValueError:
        raise DownloadFailed(f"{url} is no address; check TACITURN_MIRROR") from None


def file_digest(path: Path, algorithm: str) -> str:
    """Return the checksum of a file as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def _fetch(url: str, part: Path, progress: Progress) -> None:
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "taciturn"})  # noqa: S310 our own URLs
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)  # noqa: S310
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # nothing left to fetch, or another file: the checksum tells
            return
        raise
    with response:
        if response.status != 206:
            have = 0  # the server sends everything again
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else None
        with part.open("ab" if have else "wb") as file:
            while chunk := response.read(CHUNK):
                file.write(chunk)
                have += len(chunk)
                progress(have, total)
        if total is not None and have < total:
            raise ConnectionError("the connection ended early")
