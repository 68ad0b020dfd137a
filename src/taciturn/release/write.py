"""Atomic writing of a release, never over an existing one. See docs/reference/release-format.md."""

import hashlib
from dataclasses import replace
from datetime import UTC, date, datetime
from enum import StrEnum
from pathlib import Path

import numpy as np
import polars as pl
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from taciturn._internal import strict_json, validate
from taciturn._internal.encode import Private, parquet_bytes
from taciturn._internal.files import write_file, write_folder
from taciturn._internal.spelling import option
from taciturn._version import __version__
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidDocument, InvalidParameter
from taciturn.model.factor_model import FactorModel
from taciturn.model.profiles import Profiles
from taciturn.release import bundle
from taciturn.release.about import About
from taciturn.release.card import card_text
from taciturn.release.facts import Configuration, Facts, facts_to_dict
from taciturn.release.pseudonyms import pseudonyms_of
from taciturn.release.sign import signature
from taciturn.release.tables import profiles_to_frame, table_bytes
from taciturn.solvers.catalog import check_solver
from taciturn.solvers.contract import Fit


class UsersOut(StrEnum):
    """Form of users in a release."""

    IDS = "ids"
    PSEUDONYMS = "pseudonyms"
    NONE = "none"


def no_users(unit: Unit) -> str:
    """Message for a release that would contain users, although they fold in."""
    which = f"under {option('serve', 'fold-in')}" if unit is not Unit.USER else "under unit user"
    return (
        f"a release {which} cannot contain users: a user profile is an exact function of "
        f"one user's ratings; pass {option('users_out', 'none')}, and fold users in from their own "
        "ratings"
    )


def write_release(
    fit: Fit,
    certificate: Certificate,
    path: str | Path,
    *,
    users_out: UsersOut = UsersOut.IDS,
    pseudonyms: pl.DataFrame | None = None,
    key: Ed25519PrivateKey | None = None,
    draft: Path | None = None,
    date: date | None = None,
    configuration: Configuration | None = None,
    about: About | None = None,
) -> Path:
    """Write the publishable part of a fit to a new folder.

    The release is written under another name, `draft` if given, and then renamed, so that a crash
    leaves a complete release or none. Private item profiles are left out.

    Parameters
    ----------
    fit, certificate
        Fit to write, and its guarantee.
    path
        Folder of the release; must not exist.
    users_out
        Users appear under their ids, under random pseudonyms, or not at all.
    pseudonyms
        Private map from ids to pseudonyms, with the columns user_id and pseudonym; required for
        pseudonyms. It may have other users too. See `make_pseudonyms`.
    key
        Key to sign the release with.
    date
        Day on which the training began. Default: today (UTC).
    configuration
        Configuration file of the training. Default: it had none.
    about
        Texts of the owner for the card. Default: none.
    """
    path = Path(path).absolute()
    if (users_out is UsersOut.PSEUDONYMS) != (pseudonyms is not None):
        raise InvalidParameter("pass a map of pseudonyms if users appear under them, and only then")
    model = _released_model(fit, users_out, pseudonyms)
    axes = ((bundle.USERS, "user_id", model.users), (bundle.ITEMS, "item_id", model.items))
    tables = {name: (held, id_name) for name, id_name, held in axes if held is not None}
    if not tables:
        raise InvalidDocument(
            f"{fit.solver} releases users only, so {option('users_out', 'none')} would leave "
            "nothing"
        )
    facts = Facts(
        solver=fit.solver,
        settings=dict(fit.settings),
        taciturn=__version__,
        date=datetime.now(UTC).date() if date is None else validate.day("date", date),
        user_ids=users_out.value,
        configuration=configuration,
        ids_from_ratings=fit.ids_from_ratings,
        about=about or About(),
    )
    check_solver(facts.solver, facts.settings, certificate.ledger)  # readers make the same check

    def fill(folder: Path) -> None:
        for name, (profiles, id_name) in tables.items():
            write_file(folder / name, table_bytes(profiles, id_name))
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

    write_folder(path, fill, draft=draft)
    return path


def _released_model(fit: Fit, users_out: UsersOut, pseudonyms: pl.DataFrame | None) -> FactorModel:
    """Model of a fit with its users in the form in which they appear in the release."""
    if users_out is UsersOut.NONE:
        return replace(fit.model, users=None)
    users = _released_users(fit)
    return replace(fit.model, users=users if pseudonyms is None else _renamed(users, pseudonyms))


def _released_users(fit: Fit) -> Profiles:
    """User profiles that may be released; raises if there are none."""
    if fit.model.users is None or fit.ledger.unit is Unit.USER:
        raise InvalidDocument(no_users(fit.ledger.unit))
    return fit.model.users


def checksums(folder: Path) -> bytes:
    """Contents of SHA256SUMS for the files in a folder, in the format of `sha256sum`."""
    names = sorted(
        file.name for file in folder.iterdir() if file.name not in (bundle.SUMS, bundle.SIGNATURE)
    )
    digests = {name: hashlib.sha256((folder / name).read_bytes()) for name in names}
    return "".join(f"{digest.hexdigest()}  {name}\n" for name, digest in digests.items()).encode()


def write_private_items(fit: Fit, path: str | Path) -> Path:
    """Write item profiles without noise to an owner-only file.

    They are exact functions of the ratings and must not be published.
    """
    if fit.private_items is None:
        raise InvalidDocument(
            f"{fit.solver} has no private item profiles; its item profiles are in the release"
        )
    path = Path(path).absolute()
    content = parquet_bytes(profiles_to_frame(fit.private_items, "item_id"), private=Private.ITEMS)
    write_file(path, content, is_private=True, replace=True)
    return path


def _renamed(users: Profiles, pseudonyms: pl.DataFrame) -> Profiles:
    """Users under their pseudonyms, sorted by them, so that the order reveals nothing."""
    names = pseudonyms_of(users.ids, pseudonyms)
    return replace(users, ids=names).take(np.argsort(names.to_numpy()))
