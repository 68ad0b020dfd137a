"""Total cost of several releases of the same data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from taciturn.accounting.certificate import Certificate, read_ledger
from taciturn.accounting.ledger import Ledger, combine
from taciturn.errors import InvalidParameter
from taciturn.release.bundle import SUMS
from taciturn.release.read import load_release


@dataclass(frozen=True, kw_only=True)
class Composed:
    """Certificate of each release, in the given order, and of their composition."""

    each: tuple[Certificate, ...]
    together: Certificate


def compose_releases(
    paths: Sequence[Path], delta: float, note: Callable[[str], None] = lambda sentence: None
) -> Composed:
    """Compose release folders, certificates, ledgers or run folders; every file is checked.

    `note` is called with a remark for each unfinished run.
    """
    ledgers: list[Ledger] = []
    certificates: list[Certificate] = []
    for path in paths:
        ledger = read_ledger(path)
        if path.is_dir() and (path / SUMS).is_file():
            ledger = load_release(path).certificate.ledger  # checks every file
        elif path.is_dir() and (path / "key.json").is_file():
            note(f"{path} is an unfinished run: if it is resumed, it may spend its whole budget")
        ledgers.append(ledger)
        try:
            certificates.append(Certificate.from_ledger(ledger, delta))
            total = combine(ledgers)
        except InvalidParameter as error:
            raise InvalidParameter(f"{path}: {error}") from None
    return Composed(each=tuple(certificates), together=Certificate.from_ledger(total, delta))
