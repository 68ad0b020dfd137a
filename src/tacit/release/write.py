"""Writing a release: whole or not at all, and never over another.

::

    RELEASE/
      certificate.json    the certificate, public facts, and a checksum of every other file
      items.parquet       item_id, bias, profile
      users.parquet       user_id, bias, profile
"""

import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tacit import _json
from tacit._version import __version__
from tacit.errors import InvalidDocument
from tacit.privacy.certificate import Certificate
from tacit.solvers.contract import Fit, Profiles

FORMAT = "tacit-release"
VERSION = 1


def write_release(
    fit: Fit, certificate: Certificate, path: str | Path, *, draft: Path | None = None
) -> Path:
    """Write what may be released of a fit to a new folder.

    It is put together under another name, `draft` if given, and then renamed, so a crash leaves a
    whole release or none. Item profiles that are private stay out.
    """
    path = Path(path).absolute()
    draft = draft or path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    tables = {"users.parquet": _table(fit.users, "user_id")}
    if fit.items is not None:
        tables["items.parquet"] = _table(fit.items, "item_id")

    def fill(draft: Path) -> None:
        for name, table in tables.items():
            table.write_parquet(draft / name)
        document = {
            "format": FORMAT,
            "version": VERSION,
            "certificate": certificate.to_dict(),
            "facts": _facts(fit),
            "files": {name: _checksum(draft / name) for name in sorted(tables)},
        }
        _json.write(draft / "certificate.json", document)

    _write_folder(path, draft, fill)
    return path


def write_private_items(fit: Fit, path: str | Path) -> Path:
    """Write item profiles that were never noised to a new file of the owner's own.

    They depend on the ratings without any protection: whoever gets them gets that too.
    """
    path = Path(path).absolute()
    if fit.private_items is None:
        raise InvalidDocument(f"{fit.solver} has no private item profiles: they are in the release")
    try:
        with path.open("xb") as stream:
            _table(fit.private_items, "item_id").write_parquet(stream)
    except OSError as error:
        raise InvalidDocument(f"cannot write {path}: {error.strerror}") from None
    return path


def check_absent(path: str | Path) -> Path:
    """Return an absolute path to write to, or raise if something is there already."""
    path = Path(path).absolute()
    if os.path.lexists(path):
        raise InvalidDocument(f"{path} exists already, and is never overwritten; choose another")
    if not path.parent.is_dir():
        raise InvalidDocument(f"the folder {path.parent} does not exist; make it first")
    return path


def _write_folder(path: Path, draft: Path, fill: Callable[[Path], None]) -> None:
    """Make a folder that `fill` fills, durably and all at once."""
    try:
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "it exists already")
        if draft.exists():
            shutil.rmtree(draft)  # a crash left it
        draft.mkdir()
        try:
            fill(draft)
            for file in (*draft.iterdir(), draft):
                _sync(file)
            draft.rename(path)
            _sync(path.parent)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    except OSError as error:
        raise InvalidDocument(f"cannot write the release {path}: {error.strerror}") from None


def _table(profiles: Profiles, id_name: str) -> pl.DataFrame:
    width = profiles.factors.shape[1]
    factors = np.ascontiguousarray(profiles.factors, dtype=np.float32)
    return pl.DataFrame(
        {
            id_name: profiles.ids,
            "bias": pl.Series(profiles.biases, dtype=pl.Float32),
            "profile": pl.Series(factors.tolist(), dtype=pl.Array(pl.Float32, width))
            if width == 0
            else pl.Series(factors, dtype=pl.Array(pl.Float32, width)),
        }
    )


def _facts(fit: Fit) -> dict[str, Any]:
    """Return what is public about a release under unit `value`, whose mask is public."""
    return {
        "solver": fit.solver,
        "settings": dict(fit.settings),
        "tacit": __version__,
        "scale": {"low": fit.scale.low, "high": fit.scale.high, "step": fit.scale.step},
        "mean": fit.mean,
        "factors": fit.users.factors.shape[1],
        "users": len(fit.users.ids),
        "items": len((fit.items or fit.private_items or fit.users).ids),
    }


def _checksum(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
