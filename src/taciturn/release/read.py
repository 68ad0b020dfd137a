"""Reading a release. Every file is checked before it is used."""

import hashlib
import warnings
from dataclasses import replace
from pathlib import Path

import polars as pl
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from taciturn._internal import strict_json, validate
from taciturn._internal.forks import check_fork
from taciturn._internal.spelling import option
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.ledger import Status, check_version
from taciturn.accounting.units import Unit
from taciturn.errors import CheckFailed, InvalidDocument, SignatureNotChecked
from taciturn.release import bundle
from taciturn.release.bundle import Release
from taciturn.release.facts import facts_from_dict
from taciturn.release.sign import PublicKey, as_public_key, check_signature
from taciturn.release.tables import profiles_from_parquet
from taciturn.solvers.catalog import check_solver
from taciturn.solvers.entry import INTEREST_FACTORS_MAX, Entry

SMALL_MAX, TABLE_MAX = 2**20, 2**36
"""Maximum sizes of text files and tables, in bytes; a ledger may be as long as any JSON."""

_LARGEST = {
    bundle.CERTIFICATE: strict_json.SIZE_MAX,
    bundle.ITEMS: TABLE_MAX,
    bundle.USERS: TABLE_MAX,
}


def load_release(path: str | Path, public_key: PublicKey | None = None) -> Release:
    """Read a release, check its files and recompute its certificate from the ledger.

    Raises `CheckFailed` if the release was changed, and `InvalidDocument` if there is no release at
    `path` or it has a newer version. Accepts every status: check `release.certificate.status`.

    Parameters
    ----------
    path
        Folder of the release, or a symbolic link to it, such as `train --latest` sets. The link is
        followed once; `Release.path` is the folder.
    public_key
        Key that must have signed the release, or its file. Without it the signature of a signed
        release is not checked, and a `SignatureNotChecked` warning says so.
    """
    path = followed(path)
    key = None if public_key is None else as_public_key(public_key)
    files = read_files(path)
    check_sums(files)
    if key is not None:
        check_signed(files, key)
    elif bundle.SIGNATURE in files:
        warnings.warn(
            f"the signature of {path} was not checked; pass its owner's public key with "
            f"{option('public_key', 'FILE')}",
            SignatureNotChecked,
            stacklevel=2,
        )
    return parse(path, files)


def followed(path: str | Path) -> Path:
    """Folder that a pointer to the latest release names at this moment; any other path as it is.

    A pointer is followed before the first file is read, so that all files are of one release even
    if the pointer changes meanwhile.
    """
    path = validate.path("path", path)
    try:
        return path.resolve(strict=True) if path.is_symlink() else path
    except FileNotFoundError:
        raise InvalidDocument(f"{path} points to a release that does not exist") from None
    except (OSError, RuntimeError):  # a loop of links
        return path


def read_own_release(path: Path) -> Release:
    """Read and check a release that this user has just written, whatever its signature."""
    files = read_files(path)
    check_sums(files)
    return parse(path, files)


def read_files(path: Path) -> dict[str, bytes]:
    """Contents of the files of a release, by name; any other file in the folder is refused."""
    check_fork()
    try:
        if not path.is_dir():
            problem = "is not a folder" if path.exists() else "does not exist"
            raise InvalidDocument(f"{validate.shown(str(path))} is not a release: it {problem}")
        found = sorted(file.name for file in path.iterdir())
        if bundle.CERTIFICATE not in found:
            raise InvalidDocument(f"{path} is not a release: it has no {bundle.CERTIFICATE}")
        for name in bundle.REQUIRED:
            if name not in found:
                raise CheckFailed(f"the release {path} lacks {name}")
        for name in found:
            file = path / name
            is_plain = file.is_file() and not file.is_symlink()
            if name not in bundle.REQUIRED + bundle.OPTIONAL or not is_plain:
                raise CheckFailed(
                    f"the release {path} contains {name!r}, which is not part of a release"
                )
            if file.stat().st_size > _LARGEST.get(name, SMALL_MAX):
                raise CheckFailed(f"{name} is larger than the format allows")
        return {name: (path / name).read_bytes() for name in found}
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "invalid path"
        raise InvalidDocument(f"cannot read the release {path}: {reason}") from None


def check_sums(files: dict[str, bytes]) -> str:
    """Raise `CheckFailed` unless SHA256SUMS lists every file with its checksum."""
    covered = sorted(files.keys() - {bundle.SUMS, bundle.SIGNATURE})
    stated = files[bundle.SUMS].decode("utf-8", errors="replace").splitlines(keepends=True)
    computed = [f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in covered]
    if stated != computed:
        listed = {line.rstrip("\n").partition("  ")[2] for line in stated}
        missing = sorted((listed & set(bundle.OPTIONAL)) - files.keys())
        if missing:
            raise CheckFailed(f"{missing[0]} is listed in {bundle.SUMS} but is missing")
        names = [
            name for name, line in zip(covered, computed, strict=True) if line not in stated
        ] or [bundle.SUMS]
        raise CheckFailed(f"checksums do not match: {', '.join(names)} was changed")
    return f"{len(covered)} files match their checksums"


def check_signed(files: dict[str, bytes], public_key: Ed25519PublicKey | None) -> str:
    """Raise `CheckFailed` unless the signature is valid, if there is one or a key is given."""
    if bundle.SIGNATURE not in files:
        if public_key is None:
            return "not signed, and no signature was required"
        raise CheckFailed(f"the release is not signed, and {option('public_key')} requires it")
    key = check_signature(files[bundle.SIGNATURE], files[bundle.SUMS], public_key)
    if public_key is not None:
        return "the checksums are signed with the given key"
    return f"the checksums are signed with the key {key}; check whose key it is"


def parse(path: Path, files: dict[str, bytes]) -> Release:
    """Release from files that match their checksums; recomputes the certificate."""
    document = strict_json.loads(_text(files[bundle.CERTIFICATE]), bundle.CERTIFICATE)
    if not isinstance(document, dict) or document.get("format") != bundle.FORMAT:
        raise InvalidDocument(f"{bundle.CERTIFICATE} does not belong to a release")
    check_version("releases", document.get("version"), bundle.VERSION)
    if document.keys() != {"format", "version", "certificate", "facts"}:
        raise InvalidDocument(f"{bundle.CERTIFICATE} has missing or unknown fields")
    facts, model, counts = facts_from_dict(document["facts"])
    certificate = Certificate.from_dict(document["certificate"])
    entry = check_solver(facts.solver, facts.settings, certificate.ledger)
    has_factors = entry.has_factors and not entry.is_of_biases(certificate.ledger)
    if counts["factors"] and not has_factors:
        raise InvalidDocument(f"solver {facts.solver} has no factors, but the release has")
    tables = {}
    for name, role in ((bundle.USERS, "user"), (bundle.ITEMS, "item")):
        count = counts[f"{role}s"]
        if name in files:
            tables[name] = profiles_from_parquet(
                files[name],
                name,
                f"{role}_id",
                count=count,
                width=counts["factors"],
                interest=counts["interest"],
                has_variances=model.residual_variance is not None,
            )
        elif count:
            raise CheckFailed(f"the facts state {count:,} rows in {name}, which is missing")
    if not tables:
        raise CheckFailed("the release has no profiles")
    if certificate.ledger.is_served_by_fold_in and (bundle.USERS in tables or model.prior is None):
        raise CheckFailed("users of the release fold in, so it must have a prior and no users")
    model = replace(model, users=tables.get(bundle.USERS), items=tables.get(bundle.ITEMS))
    release = Release(path=path, certificate=certificate, facts=facts, model=model)
    _check_users(release)
    _check_model(entry, release)
    return release


def _check_users(release: Release) -> None:
    """Raise unless the user table matches the privacy unit and the facts."""
    certificate, users = release.certificate, release.model.users
    protects_users = certificate.unit is Unit.USER and certificate.status is not Status.NONE
    if protects_users and (users is not None or release.model.prior is None):
        raise CheckFailed("a release under unit user must have items and a prior, and no users")
    kind = release.facts.user_ids
    if (users is None) != (kind == "none") or (
        users is not None and kind == "pseudonyms" and users.ids.dtype != pl.String
    ):
        raise CheckFailed(f"facts.user_ids does not match {bundle.USERS}")


def _check_model(entry: Entry, release: Release) -> None:
    """Raise unless the model has the parts that its solver learns, and no others."""
    model = release.model
    if (model.interest is not None) != entry.has_interest(release.facts.settings):
        stated = "learns" if model.interest is None else "does not learn"
        raise CheckFailed(f"the solver of the release {stated} interest, unlike the release")
    if model.interest_count > 1 + INTEREST_FACTORS_MAX[release.certificate.unit]:
        raise CheckFailed("the release has more interest factors than its solver learns")
    if entry.predicts_ratings:
        return
    profiles = [each for each in (model.users, model.items) if each is not None]
    is_constant = model.mean == (model.scale.low + model.scale.high) / 2
    is_constant = is_constant and not any(each.biases.any() for each in profiles)
    if not is_constant or model.factor_count > 0 or model.interest_count != 1:
        raise CheckFailed(
            f"a release of {release.facts.solver} predicts the middle of the scale and has nothing "
            "but popularity"
        )


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidDocument(f"{bundle.CERTIFICATE} is not UTF-8 text") from None
