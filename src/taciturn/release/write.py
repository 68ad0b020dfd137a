"""Writing a release: whole or not at all, and never over another. See docs/release-format.md."""

import hashlib
import secrets
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

import numpy as np
import polars as pl
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from taciturn._internal import strict_json
from taciturn._internal.encode import parquet_bytes
from taciturn._internal.files import write_file, write_folder
from taciturn._version import __version__
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidDocument
from taciturn.model.profiles import Profiles
from taciturn.release import bundle
from taciturn.release.card import card_text
from taciturn.release.facts import Facts, facts_to_dict
from taciturn.release.sign import signature
from taciturn.release.tables import profiles_to_frame
from taciturn.solvers.catalog import check_solver
from taciturn.solvers.contract import Fit


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
    names = None
    if users_out is UsersOut.PSEUDONYMS and pseudonyms is None:
        raise InvalidDocument("pseudonyms need a private file for their map")
    model = replace(fit.model, users=None)
    if users_out is not UsersOut.NONE:
        users = _released_users(fit)
        if users_out is UsersOut.PSEUDONYMS:
            users, names = _renamed(users)
        model = replace(model, users=users)
    sides = ((bundle.USERS, "user_id", model.users), (bundle.ITEMS, "item_id", model.items))
    tables = {name: (held, id_name) for name, id_name, held in sides if held is not None}
    if not tables:
        raise InvalidDocument(f"{fit.solver} releases users only; nothing is left without them")
    facts = Facts(
        solver=fit.solver,
        settings=dict(fit.settings),
        taciturn=__version__,
        user_ids=users_out.value,
    )
    check_solver(facts.solver, facts.settings, certificate.ledger)  # a reader would refuse it

    def fill(folder: Path) -> None:
        for name, (profiles, id_name) in tables.items():
            write_file(folder / name, parquet_bytes(profiles_to_frame(profiles, id_name)))
        document = {
            "format": bundle.FORMAT,
            "version": bundle.VERSION,
            "certificate": certificate.to_dict(),
            "facts": facts_to_dict(facts, model),
        }
        strict_json.write(folder / bundle.CERTIFICATE, document)
        card = card_text(certificate, facts, model)
        write_file(folder / bundle.CARD, card.encode())
        sums = checksums(folder)
        write_file(folder / bundle.SUMS, sums)
        if key is not None:
            write_file(folder / bundle.SIGNATURE, signature(key, sums).encode())

    if names is not None and pseudonyms is not None:
        write_file(pseudonyms, parquet_bytes(names), is_private=True)
    try:
        write_folder(path, fill, draft=draft)
    except BaseException:
        if names is not None and pseudonyms is not None:
            Path(pseudonyms).unlink()
        raise
    return path


def _released_users(fit: Fit) -> Profiles:
    """Return user profiles that may be released, or say why there are none."""
    if fit.model.users is None or fit.ledger.unit is Unit.USER:
        raise InvalidDocument(NO_USERS)
    return fit.model.users


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
    path = Path(path).absolute()
    content = parquet_bytes(profiles_to_frame(fit.private_items, "item_id"))
    write_file(path, content, is_private=True)
    return path


def _renamed(users: Profiles) -> tuple[Profiles, pl.DataFrame]:
    """Return users under random names, in their order, and the map from ids to names."""
    names = [secrets.token_hex(16) for _ in range(len(users))]
    order = np.argsort(np.array(names))
    pseudonyms = pl.Series(names, dtype=pl.String)
    renamed = replace(users, ids=pseudonyms).take(order)
    return renamed, pl.DataFrame({"user_id": users.ids, "pseudonym": pseudonyms})
