"""Downloads that resume after an interruption and are discarded if their checksums do not match."""

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
"""Called with the number of bytes so far and the total, or None if the total is unknown."""


def download(
    url: str,
    target: Path,
    *,
    checksums: dict[str, str],
    progress: Progress = lambda done, total: None,
    pause: float = 1.0,
) -> None:
    """Download `url` to `target`.

    Bytes are written to `target`.part. An interrupted download resumes from that file, within this
    call or in the next one, also after the disk was full. The file gets its final name only if all
    `checksums` match, which are given by algorithm name; otherwise it is deleted.
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
                        f"{url} answered {error.code} {error.reason}; nothing was saved"
                    ) from None
                if attempt == ATTEMPTS - 1:
                    raise DownloadFailed(
                        f"{url} could not be fetched; the partial download is kept: try again "
                        "later, or put the file into the folder that TACITURN_DATA names"
                    ) from None
                time.sleep(pause * 2**attempt)
        for algorithm, expected in checksums.items():
            if file_digest(part, algorithm) != expected:
                part.unlink()
                raise DownloadFailed(
                    f"the {algorithm} checksum of {url} does not match, so the file was deleted: "
                    "try "
                    "again, or put the official archive into the folder that TACITURN_DATA names"
                )
        sync(part)
        part.replace(target)
        sync(target.parent)
    except OSError as error:
        raise output_error(target, error) from None
    except ValueError:
        raise DownloadFailed(f"{url} is not a valid URL; check TACITURN_MIRROR") from None


def file_digest(path: Path, algorithm: str) -> str:
    """Checksum of a file in hexadecimal."""
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
        # The file is complete, or it is a different file: the checksum decides.
        if error.code == 416 and have:
            return
        raise
    with response:
        if response.status != 206:
            have = 0  # the server sends the whole file
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else None
        with part.open("ab" if have else "wb") as file:
            while chunk := response.read(CHUNK):
                file.write(chunk)
                have += len(chunk)
                progress(have, total)
        if total is not None and have < total:
            raise ConnectionError("the connection ended early")
