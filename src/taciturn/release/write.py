"""Writing a release: whole or not at all, and never over another. See docs/release-format.md."""

import errno
import hashlib
import io
import os
import secrets
import shutil
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from taciturn._internal import files, strict_json
from taciturn._version import __version__
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidDocument
from taciturn.release import bundle
from taciturn.release.bundle import Facts
from taciturn.release.card import card_text
from taciturn.release.sign import signature
from taciturn.solvers.catalog import check_solver
from taciturn.solvers.contract import Fit, Profiles


class UsersOut(StrEnum):
    """What users are called in a release."""

    IDS = "ids"
    PSEUDONYMS = "pseudonyms"
    NONE = "none"


NO_USERS = (
    "unit user hides people: a profile would be an exact function of one person's ratings, for "
    "that person alone; release items only, and let people fold in (--users-out none)"
)


def write_release(
    fit: Fit,
    certificate: Certificate,
    path: str | Path,
    *,
    users_out: UsersOut = UsersOut.IDS,
    pseudonyms: str | Path | None = None,
    key: Ed25519PrivateKey | None = None,
    draft: Path | None = None,
) -> Path:
    """Write what may be released of a fit to a new folder.

    It is put together under another name, `draft` if given, and then renamed, so a crash leaves a
    whole release or none. Item profiles that are private stay out.

    Parameters
    ----------
    fit, certificate
        What to write, and its guarantee.
    path
        The folder; it must not exist.
    users_out
        Whether users appear under their ids, under random pseudonyms, or not at all.
    pseudonyms
        A private file for the map from ids to pseudonyms, if there are any.
    key
        Signs the release.
    """
    path = Path(path).absolute()
    draft = draft or path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    items, names = fit.items, None
    if users_out is UsersOut.PSEUDONYMS and pseudonyms is None:
        raise InvalidDocument("pseudonyms need a private file for their map")
    tables: dict[str, tuple[Profiles, str]] = {}
    if users_out is not UsersOut.NONE:
        users = _released_users(fit)
        if users_out is UsersOut.PSEUDONYMS:
            users, names = _renamed(users)
        tables[bundle.USERS] = (users, "user_id")
    if items is not None:
        tables[bundle.ITEMS] = (items, "item_id")
    if not tables:
        raise InvalidDocument(f"{fit.solver} releases users only; nothing is left without them")
    facts = _facts(fit, users_out)
    check_solver(facts.solver, facts.settings, certificate.ledger)  # a reader would refuse it

    def fill(folder: Path) -> None:
        for name, (profiles, id_name) in tables.items():
            (folder / name).write_bytes(_parquet(_frame(profiles, id_name)))
        document = {
            "format": bundle.FORMAT,
            "version": bundle.VERSION,
            "certificate": certificate.to_dict(),
            "facts": facts.to_dict(),
        }
        strict_json.write(folder / bundle.CERTIFICATE, document)
        card = card_text(certificate, facts, list(tables))
        (folder / bundle.CARD).write_text(card, encoding="utf-8")
        sums = checksums(folder)
        (folder / bundle.SUMS).write_bytes(sums)
        if key is not None:
            (folder / bundle.SIGNATURE).write_text(signature(key, sums), encoding="utf-8")

    if names is not None and pseudonyms is not None:
        write_private(names, pseudonyms)
    try:
        _write_folder(path, draft, fill)
    except BaseException:
        if names is not None and pseudonyms is not None:
            Path(pseudonyms).unlink()
        raise
    return path


def _released_users(fit: Fit) -> Profiles:
    """Return user profiles that may be released, or say why there are none."""
    if fit.users is None or fit.ledger.unit is Unit.USER:
        raise InvalidDocument(NO_USERS)
    return fit.users


def checksums(folder: Path) -> bytes:
    """Return what SHA256SUMS says of the files in a folder, in the form of `sha256sum`."""
    names = sorted(
        file.name for file in folder.iterdir() if file.name not in (bundle.SUMS, bundle.SIGNATURE)
    )
    digests = {name: hashlib.sha256((folder / name).read_bytes()) for name in names}
    return "".join(f"{digest.hexdigest()}  {name}\n" for name, digest in digests.items()).encode()


def write_private_items(fit: Fit, path: str | Path) -> Path:
    """Write item profiles that were never noised to a new file of the owner's own.

    They depend on the ratings without any protection: whoever gets them gets that too.
    """
    if fit.private_items is None:
        raise InvalidDocument(f"{fit.solver} has no private item profiles: they are in the release")
    return write_private(_frame(fit.private_items, "item_id"), path)


def write_private(table: pl.DataFrame, path: str | Path) -> Path:
    """Write a table to a new Parquet file that only its owner can read."""
    path = Path(path).absolute()
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(_parquet(table))
                stream.flush()
                os.fsync(stream.fileno())
        except BaseException:
            path.unlink()
            raise
    except OSError as error:
        raise InvalidDocument(f"cannot write {path}: {error.strerror}") from None
    return path


def check_absent(path: str | Path) -> Path:
    """Return an absolute path to write to, or raise if something is there already."""
    path = Path(path).absolute()
    if os.path.lexists(path):
        raise InvalidDocument(f"{path} exists already, and is never overwritten; choose another")
    if not path.parent.is_dir():
        lack = "is not a folder" if path.parent.exists() else "does not exist; make it first"
        raise InvalidDocument(f"the folder {path.parent} {lack}")
    return path


def _renamed(users: Profiles) -> tuple[Profiles, pl.DataFrame]:
    """Return users under random names, in their order, and the map from ids to names."""
    names = [secrets.token_hex(16) for _ in range(len(users.ids))]
    order = np.argsort(np.array(names))
    renamed = Profiles(
        ids=pl.Series([names[place] for place in order], dtype=pl.String),
        biases=users.biases[order],
        factors=users.factors[order],
        bias_variances=None if users.bias_variances is None else users.bias_variances[order],
        variances=None if users.variances is None else users.variances[order],
    )
    return renamed, pl.DataFrame({"user_id": users.ids, "pseudonym": names})


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
                files.sync(file)
            draft.rename(path)
            files.sync(path.parent)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    except OSError as error:
        raise InvalidDocument(f"cannot write the release {path}: {error.strerror}") from None


def _parquet(table: pl.DataFrame) -> bytes:
    """Return a table as a Parquet file; writing it here tells what is wrong with the disk."""
    content = io.BytesIO()
    table.write_parquet(content)
    return content.getvalue()


def _frame(profiles: Profiles, id_name: str) -> pl.DataFrame:
    columns = {
        id_name: profiles.ids,
        "bias": pl.Series(profiles.biases, dtype=pl.Float32),
        "profile": _lists(profiles.factors),
    }
    if profiles.bias_variances is not None and profiles.variances is not None:
        columns["bias_variance"] = pl.Series(profiles.bias_variances, dtype=pl.Float32)
        columns["profile_variance"] = _lists(profiles.variances)
    return pl.DataFrame(columns)


def _lists(rows: npt.NDArray[np.float32]) -> pl.Series:
    # polars reads the shape of an array without columns as a plain list.
    values: Any = np.ascontiguousarray(rows) if rows.shape[1] else [[]] * len(rows)
    return pl.Series(values, dtype=pl.Array(pl.Float32, rows.shape[1]))


def _facts(fit: Fit, users_out: UsersOut) -> Facts:
    """Return what stands beside the certificate: public facts, counts of rows among them."""
    return Facts(
        solver=fit.solver,
        settings=dict(fit.settings),
        taciturn=__version__,
        scale=fit.scale,
        mean=fit.mean,
        factors=fit.known_items.factors.shape[1],
        users=0 if users_out is UsersOut.NONE else len(_released_users(fit).ids),
        items=0 if fit.items is None else len(fit.items.ids),
        user_ids=users_out.value,
        residual_variance=fit.residual_variance,
        prior=fit.prior,
    )
