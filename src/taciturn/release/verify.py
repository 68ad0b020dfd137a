"""Verifying a release: checks of its files, certificate, signature, status and date.

The certificate is recomputed from the ledger. The card is covered by checksums only, since its
wording may change between versions of Taciturn.
"""

from collections.abc import Collection, Set
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from taciturn._internal import validate
from taciturn._internal.spelling import option
from taciturn.accounting.certificate import Certificate, delta_warning, rounded_up
from taciturn.accounting.ledger import Status
from taciturn.config_file import file_digest
from taciturn.errors import CheckFailed, InvalidParameter, TaciturnError
from taciturn.release import bundle
from taciturn.release.bundle import Release
from taciturn.release.facts import Configuration
from taciturn.release.read import check_signed, check_sums, followed, parse, read_files
from taciturn.release.sign import PublicKey, as_public_key

_DATE_UNSIGNED = (
    "a date counts only with a public key: without one, anyone can change the date of a release"
)


@dataclass(frozen=True, kw_only=True)
class Check:
    """Result of one check of a release; `detail` is a sentence for the reader."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Result of verifying a release; `release` is None if it could not be read."""

    checks: tuple[Check, ...]
    release: Release | None
    is_signed: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """True if every check passed."""
        return self.release is not None and all(check.passed for check in self.checks)


def verify_release(
    path: str | Path,
    *,
    allowed: Collection[Status | str] = frozenset({Status.PROVEN}),
    public_key: PublicKey | None = None,
    max_epsilon: float | None = None,
    max_delta: float | None = None,
    population: int | None = None,
    not_before: date | None = None,
    config: str | Path | None = None,
) -> Verdict:
    """Check the files, certificate, signature, status and date of a release.

    Raises `InvalidDocument` only if there is no release at `path`.

    Parameters
    ----------
    path
        Folder of the release, or a symbolic link to it.
    allowed
        Accepted statuses.
    public_key
        Key that must have signed the release, or its file. Default: any key, or none.
    max_epsilon, max_delta
        Maximum accepted ε and δ. Default: no maximum.
    population
        Number of users in the data, to judge δ. Default: the number of users in the release.
    not_before
        Earliest date accepted, against replay of an older signed release. Default: any date.
    config
        Configuration file that the release must name by its SHA-256. Default: any, or none.
    """
    _check_given(max_epsilon, max_delta, population)
    statuses = _statuses(allowed)
    earliest = None if not_before is None else validate.day("not_before", not_before)
    key = None if public_key is None else as_public_key(public_key)
    wanted = None if config is None else file_digest(config)
    path = followed(path)
    checks: list[Check] = []
    release: Release | None = None
    try:
        files = read_files(path)
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
        release = parse(path, files)
        return "the guarantee follows from the ledger, and the tables match the certificate"

    check("files", lambda: check_sums(files))
    if checks[0].passed:  # damaged files are not parsed
        check("contents", contents)
    check("signature", lambda: check_signed(files, key))
    warnings: list[str] = []
    if release is not None:
        found: Release = release
        check("status", lambda: _check_status(found, statuses))
        if max_epsilon is not None or max_delta is not None:
            check("limits", lambda: _check_limits(found.certificate, max_epsilon, max_delta))
        warnings += _delta_warnings(found, population)
        if earliest is not None:
            check("date", lambda: _check_date(found, earliest))
            if key is None:
                warnings.append(_DATE_UNSIGNED)
        if wanted is not None:
            check("configuration", lambda: _check_configuration(found.facts.configuration, wanted))
    return Verdict(
        checks=tuple(checks),
        release=release,
        is_signed=bundle.SIGNATURE in files,
        warnings=tuple(warnings),
    )


def _statuses(allowed: object) -> frozenset[Status]:
    """Accepted statuses; raises unless they are a set of statuses or their names."""
    if not isinstance(allowed, Set | list | tuple):
        given = validate.shown(allowed)
        raise InvalidParameter(f"allowed must be a set such as {{'proven'}}, got {given}")
    return frozenset(validate.choice("allowed", status, Status) for status in allowed)


def _check_given(
    max_epsilon: float | None, max_delta: float | None, population: int | None
) -> None:
    """Raise unless the limits to check against are valid."""
    if max_epsilon is not None:
        validate.positive("max_epsilon", max_epsilon, "the largest epsilon to accept")
    if max_delta is not None:
        validate.probability("max_delta", max_delta, "the largest delta to accept")
    if population is not None:
        validate.positive_integer("population", population, "it counts users")


def _check_limits(
    certificate: Certificate, max_epsilon: float | None, max_delta: float | None
) -> str:
    if certificate.epsilon is None:
        raise CheckFailed("the release has no epsilon, so no maximum can be met")
    if max_epsilon is not None and certificate.epsilon > max_epsilon:
        raise CheckFailed(
            f"epsilon is {rounded_up(certificate.epsilon, 6)}, above the maximum of {max_epsilon:g}"
        )
    if max_delta is not None and certificate.delta > max_delta:
        raise CheckFailed(f"delta is {certificate.delta:g}, above the maximum of {max_delta:g}")
    return "epsilon and delta are within the given limits"


def _check_date(release: Release, earliest: date) -> str:
    found = release.facts.date
    if found < earliest:
        raise CheckFailed(f"the release is dated {found}, before {earliest}")
    return f"the release is dated {found}, not before {earliest}"


def _check_configuration(found: Configuration | None, wanted: str) -> str:
    if found is None:
        raise CheckFailed(
            f"the release names no configuration file, and {option('config')} requires it"
        )
    if found.sha256 != wanted:
        raise CheckFailed("the release was trained with another configuration file")
    if not found.command_line:
        return "the release names this file, and no option was given beside it"
    names = ", ".join(found.command_line)
    return f"the release names this file; the command line set: {names}"


def _delta_warnings(release: Release, population: int | None) -> list[str]:
    listed = release.model.users
    users = max(population or 0, 0 if listed is None else len(listed))
    warning = delta_warning(release.certificate.delta, users) if users else None
    return [warning] if warning else []


def _check_status(release: Release, allowed: frozenset[Status]) -> str:
    status = release.certificate.status
    if status not in allowed:
        raise CheckFailed(f"the status is {status}, which is not accepted")
    return f"the status is {status}"
