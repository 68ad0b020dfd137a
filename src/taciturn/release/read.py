"""Reading and checking a release. Trusts nothing in it: every file is checked before it is used."""

import hashlib
import io
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from taciturn._internal import strict_json, validate
from taciturn._version import __version__
from taciturn.accounting.certificate import Certificate, delta_warning, rounded_up
from taciturn.accounting.ledger import Status, check_version
from taciturn.accounting.units import Unit
from taciturn.errors import CheckFailed, InvalidDocument, InvalidInput, TaciturnError
from taciturn.model.fold_in import Prior
from taciturn.release import bundle
from taciturn.release.bundle import Facts, Release, Table
from taciturn.release.card import card_text
from taciturn.release.sign import check_signature
from taciturn.scale import Scale
from taciturn.solvers.catalog import check_solver

SMALL_MAX, TABLE_MAX = 2**20, 2**36
"""Largest sizes of a release's texts and tables, in bytes; a ledger may be as long as any JSON."""

_VARIANCES = ["bias_variance", "profile_variance"]

_PART = "(0|[1-9][0-9]{0,3})"
_VERSION = rf"{_PART}\.{_PART}\.{_PART}((?:a|b|rc|\.dev)[0-9]{{1,4}})?"

NUMBER_MAX = 1e15
"""Largest number in a profile: sums of products of such stay finite in 32 bits."""


_LARGEST = {
    bundle.CERTIFICATE: strict_json.SIZE_MAX,
    bundle.ITEMS: TABLE_MAX,
    bundle.USERS: TABLE_MAX,
}


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check of a release: what was looked at, whether it held, and what was seen."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What verifying a release found; `release` is None if it could not be read."""

    checks: tuple[Check, ...]
    release: Release | None
    is_signed: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every check held."""
        return self.release is not None and all(check.passed for check in self.checks)


def load_release(path: str | Path) -> Release:
    """Return a release whose files are whole and whose certificate follows from its ledger.

    Raises `CheckFailed` if it was changed, `InvalidDocument` if it is none or of a newer version.
    Its status may be any: look at `release.certificate.status`. A signature is not looked at:
    `verify_release` does that.
    """
    path = Path(path)
    files = _read_files(path)
    _check_sums(files)
    return _parse(path, files)


def verify_release(
    path: str | Path,
    *,
    allowed: frozenset[Status] = frozenset({Status.PROVEN}),
    public_key: Ed25519PublicKey | None = None,
    max_epsilon: float | None = None,
    max_delta: float | None = None,
    population: int | None = None,
) -> Verdict:
    """Check everything about a release and say what held and what did not.

    Raises `InvalidDocument` only if there is no release at `path` at all.

    Parameters
    ----------
    path
        The folder of the release.
    allowed
        Statuses that pass.
    public_key
        Key that must have signed the release; any, or none, when omitted.
    max_epsilon, max_delta
        Largest ε and δ of the guarantee that pass.
    population
        Number of users in the data, for judging δ; those listed in the release when omitted.
    """
    if max_epsilon is not None:
        validate.positive("max_epsilon", max_epsilon, "the largest epsilon to accept")
    if max_delta is not None:
        validate.probability("max_delta", max_delta, "the largest delta to accept")
    if population is not None:
        validate.positive_integer("population", population, "it counts users")
    path = Path(path)
    checks: list[Check] = []
    release: Release | None = None
    try:
        files = _read_files(path)
    except CheckFailed as error:
        damaged = Check(name="files", passed=False, detail=str(error))
        return Verdict(checks=(damaged,), release=None)

    def check(name: str, look: Any) -> None:
        try:
            checks.append(Check(name=name, passed=True, detail=look()))
        except TaciturnError as error:
            checks.append(Check(name=name, passed=False, detail=str(error)))

    def contents() -> str:
        nonlocal release
        release = _parse(path, files)
        return "the guarantee follows from the ledger, and the tables are what it says"

    check("files", lambda: _check_sums(files))
    if checks[0].passed:  # what is not whole is not parsed
        check("contents", contents)
    check("signature", lambda: _check_signed(files, public_key))
    warnings: tuple[str, ...] = ()
    if release is not None:
        found: Release = release
        check("status", lambda: _check_status(found, allowed))
        if max_epsilon is not None or max_delta is not None:
            check("limits", lambda: _check_limits(found.certificate, max_epsilon, max_delta))
        warnings = tuple(_delta_warnings(found, population))
    return Verdict(
        checks=tuple(checks),
        release=release,
        is_signed=bundle.SIGNATURE in files,
        warnings=warnings,
    )


def _check_limits(
    certificate: Certificate, max_epsilon: float | None, max_delta: float | None
) -> str:
    if certificate.epsilon is None:
        raise CheckFailed("there is no epsilon to keep a limit")
    if max_epsilon is not None and certificate.epsilon > max_epsilon:
        raise CheckFailed(
            f"epsilon is {rounded_up(certificate.epsilon, 6)}, and {max_epsilon:g} is allowed"
        )
    if max_delta is not None and certificate.delta > max_delta:
        raise CheckFailed(f"delta is {certificate.delta:g}, and {max_delta:g} is allowed")
    return "epsilon and delta are within the limits"


def _delta_warnings(release: Release, population: int | None) -> list[str]:
    users = max(population or 0, release.facts.users)
    warning = delta_warning(release.certificate.delta, users) if users else None
    return [warning] if warning else []


def _check_status(release: Release, allowed: frozenset[Status]) -> str:
    status = release.certificate.status
    if status not in allowed:
        raise CheckFailed(f"the status is {status}, which is no guarantee")
    return f"the status is {status}"


def _check_signed(files: dict[str, bytes], public_key: Ed25519PublicKey | None) -> str:
    if bundle.SIGNATURE not in files:
        if public_key is None:
            return "none: nobody vouches for the release"
        raise CheckFailed("none: the release is not signed")
    key = check_signature(files[bundle.SIGNATURE], files[bundle.SUMS], public_key)
    whose = "the key given" if public_key is not None else f"the key {key}; whose it is, find out"
    return f"its checksums are signed with {whose}"


def _read_files(path: Path) -> dict[str, bytes]:
    """Return the bytes of the files of a release; anything else in its folder is refused."""
    try:
        if not path.is_dir():
            kind = "not a folder" if path.exists() else "not there"
            raise InvalidDocument(f"{validate.shown(str(path))} is not a release: it is {kind}")
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
                raise CheckFailed(f"the release {path} has {name!r}, which does not belong there")
            if file.stat().st_size > _LARGEST.get(name, SMALL_MAX):
                raise CheckFailed(f"{name} is larger than that of any release")
        return {name: (path / name).read_bytes() for name in found}
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no such name"
        raise InvalidDocument(f"cannot read the release {path}: {reason}") from None


def _check_sums(files: dict[str, bytes]) -> str:
    covered = sorted(files.keys() - {bundle.SUMS, bundle.SIGNATURE})
    stated = files[bundle.SUMS].decode("utf-8", errors="replace").splitlines(keepends=True)
    computed = [f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in covered]
    if stated != computed:
        listed = {line.rstrip("\n").partition("  ")[2] for line in stated}
        missing = sorted((listed & set(bundle.OPTIONAL)) - files.keys())
        if missing:
            raise CheckFailed(f"{missing[0]} is listed in {bundle.SUMS} but is not there")
        names = [
            name for name, line in zip(covered, computed, strict=True) if line not in stated
        ] or [bundle.SUMS]
        raise CheckFailed(f"checksums do not fit: {', '.join(names)} was changed")
    return f"{len(covered)} files are as their checksums say"


def _parse(path: Path, files: dict[str, bytes]) -> Release:
    document = strict_json.loads(_text(files[bundle.CERTIFICATE]), bundle.CERTIFICATE)
    if not isinstance(document, dict) or document.get("format") != bundle.FORMAT:
        raise InvalidDocument(f"{bundle.CERTIFICATE} is not that of a release")
    check_version("releases", document.get("version"), bundle.VERSION)
    if document.keys() != {"format", "version", "certificate", "facts"}:
        raise InvalidDocument(f"{bundle.CERTIFICATE} has other fields than a release's")
    facts = _facts(document["facts"])
    certificate = Certificate.from_dict(document["certificate"])
    check_solver(facts.solver, facts.settings, certificate.ledger)
    if facts.factors and facts.solver in ("bias", "non-private-bias"):
        raise InvalidDocument(f"{facts.solver} has no factors, and the release has")
    tables = {
        name: _table(files[name], name, id_name, count, facts)
        for name, id_name, count in (
            (bundle.USERS, "user_id", facts.users),
            (bundle.ITEMS, "item_id", facts.items),
        )
        if name in files
    }
    for name, count in ((bundle.USERS, facts.users), (bundle.ITEMS, facts.items)):
        if name not in files and count:
            raise CheckFailed(f"the facts count {count:,} rows of {name}, which is not there")
    if not tables:
        raise CheckFailed("the release has no profiles at all")
    users = tables.get(bundle.USERS)
    hides_people = certificate.unit is Unit.USER and certificate.status is not Status.NONE
    if hides_people and (users is not None or facts.prior is None):
        raise CheckFailed("unit user hides people: such a release has items and a prior, no users")
    if (users is None) != (facts.user_ids == "none") or (
        users is not None and facts.user_ids == "pseudonyms" and users.ids.dtype != pl.String
    ):
        raise CheckFailed("the facts do not say truly what users are called")
    if files[bundle.CARD] != card_text(certificate, facts, list(tables)).encode():
        raise CheckFailed(f"{bundle.CARD} does not say what follows from the certificate")
    return Release(
        path=path,
        certificate=certificate,
        facts=facts,
        users=tables.get(bundle.USERS),
        items=tables.get(bundle.ITEMS),
    )


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidDocument(f"{bundle.CERTIFICATE} is not UTF-8 text") from None


def _facts(document: object) -> Facts:
    damaged = InvalidDocument("the facts of the release are not what they should be")
    names = {"solver", "settings", "taciturn", "scale", "mean", "factors", "users", "items"}
    if not isinstance(document, dict):
        raise damaged
    if document.keys() - {"residual_variance", "prior"} != names | {"user_ids"}:
        raise damaged
    scale, counts = document["scale"], [document[name] for name in ("factors", "users", "items")]
    if not (isinstance(scale, dict) and scale.keys() == {"low", "high", "step"}):
        raise damaged
    if not all(isinstance(count, int) and not isinstance(count, bool) for count in counts):
        raise damaged
    if min(counts) < 0 or document["user_ids"] not in ("ids", "pseudonyms", "none"):
        raise damaged
    if not isinstance(document["settings"], dict):
        raise damaged
    check_taciturn(document["taciturn"])
    try:
        facts: dict[str, Any] = {
            "mean": _bounded(validate.finite("mean", document["mean"], "it is a number")),
            "scale": Scale(**scale),
        }
        if "residual_variance" in document:
            variance = validate.positive("residual_variance", document["residual_variance"], "-")
            facts["residual_variance"] = _bounded(variance)
        if "prior" in document:
            if document["users"] or "residual_variance" in document:
                raise damaged
            facts["prior"] = _prior(document["prior"], document["factors"])
    except InvalidInput:
        raise damaged from None
    return Facts(**(document | facts))


def check_taciturn(version: object) -> str:
    """Version of Taciturn that a release names; raises unless it is known here."""
    found, own = (
        re.fullmatch(_VERSION, each) if isinstance(each, str) else None
        for each in (version, __version__)
    )
    if found is None or own is None or not isinstance(version, str):
        raise InvalidDocument("the release does not name a version of Taciturn, such as 0.2.0")
    named, here = (tuple(int(part) for part in each.groups()[:3]) for each in (found, own))
    if named > here:
        raise InvalidDocument(
            f"the release names Taciturn {version}, and this is {__version__}: check it with that "
            "one"
        )
    return version


def _prior(document: object, factors: int) -> Prior:
    """Return what is assumed of a person, checked."""
    damaged = InvalidDocument("the prior of the release is not what it should be")
    if not (isinstance(document, dict) and document.keys() == {"residual_variance", "variances"}):
        raise damaged
    variances = document["variances"]
    if not (isinstance(variances, list) and len(variances) == 1 + factors):
        raise damaged
    residual, *rest = (
        _bounded(validate.positive("prior", each, "it has variances"))
        for each in (document["residual_variance"], *variances)
    )
    return Prior(residual_variance=residual, variances=tuple(rest))


def _bounded(number: float) -> float:
    if abs(number) > NUMBER_MAX:
        raise InvalidDocument("the mean is larger than any rating")
    return number


def _table(content: bytes, name: str, id_name: str, count: int, facts: Facts) -> Table:
    """Return a table of profiles, checking everything that its readers rely on."""
    damaged = InvalidDocument(f"{name} is not a table of profiles")
    try:
        # The footer says how much there is, before any of it is unpacked.
        lazy = pl.scan_parquet(io.BytesIO(content))
        rows = lazy.select(pl.len()).collect().item()
        columns = [id_name, "bias", "profile"]
        if facts.residual_variance is not None:
            columns += _VARIANCES
        if lazy.collect_schema().names() != columns:
            raise damaged
        if set(pl.read_parquet_metadata(io.BytesIO(content))) - {"ARROW:schema"}:
            raise InvalidDocument(f"{name} carries more than a table")
        if rows != count:
            raise CheckFailed(f"{name} has {rows:,} rows where the facts count {count:,}")
        frame = pl.read_parquet(io.BytesIO(content), use_statistics=False)
    except TaciturnError:
        raise
    except Exception:
        raise damaged from None
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            raise damaged from None
        raise
    return checked_table(frame, id_name, name, width=facts.factors)


def checked_table(frame: pl.DataFrame, id_name: str, name: str, *, width: int) -> Table:
    """Return the profiles in a table with the columns `id_name`, bias and profile.

    And with their variances, if it has columns of those.
    """
    ids = frame[id_name]
    is_number = ids.dtype.is_integer() and ids.dtype != pl.Int128
    if not (is_number or ids.dtype == pl.String):
        raise InvalidDocument(f"the ids in {name} must be whole numbers or text")
    if len(frame) == 0:
        raise InvalidDocument(f"{name} has no rows")
    if ids.has_nulls() or ids.n_unique() != len(ids):
        raise InvalidDocument(f"the ids in {name} must be there, and each only once")
    biases, factors = _numbers(frame["bias"], frame["profile"], name, width)
    table = Table(ids=ids, biases=biases, factors=factors)
    if not set(_VARIANCES) <= set(frame.columns):
        return table
    bias_variances, variances = _numbers(frame[_VARIANCES[0]], frame[_VARIANCES[1]], name, width)
    if min(bias_variances.min(initial=0), variances.min(initial=0)) < 0:
        raise InvalidDocument(f"{name} holds a variance below zero")
    return replace(table, bias_variances=bias_variances, variances=variances)


def _numbers(
    biases: pl.Series, profiles: pl.Series, name: str, width: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return a column of numbers and one of lists of numbers, checked."""
    if profiles.dtype != pl.Array(pl.Float32, width):
        raise InvalidDocument(f"the profiles in {name} must be {width} numbers of 32 bits each")
    if biases.dtype != pl.Float32 or biases.has_nulls() or profiles.has_nulls():
        raise InvalidDocument(f"{name} must have a bias of 32 bits and a profile in every row")
    flat = profiles.explode() if width else pl.Series([], dtype=pl.Float32)
    for numbers in (flat, biases):
        # What is not a number compares as greater.
        if numbers.has_nulls() or not ((numbers.abs() < NUMBER_MAX) & numbers.is_finite()).all():
            raise InvalidDocument(f"{name} holds something that is not a sensible number")
    rows = flat.to_numpy().reshape(len(biases), width)
    return np.ascontiguousarray(biases.to_numpy()), np.ascontiguousarray(rows)
