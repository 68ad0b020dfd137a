"""Total cost of several releases, if they are of the same data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from taciturn.accounting.certificate import Certificate, read_ledger
from taciturn.accounting.ledger import Ledger, Status, check_distinct, combine
from taciturn.accounting.mixed import Total, mixed_totals
from taciturn.errors import InvalidParameter
from taciturn.release.bundle import SUMS
from taciturn.release.read import load_release


@dataclass(frozen=True, kw_only=True)
class Composed:
    """Certificate of each release, in the given order, and their total cost.

    `together` is the certificate of their composition. It is None if their units differ; then
    `totals` states what holds for one rating and for one user, and is empty if something was
    released without noise.
    """

    each: tuple[Certificate, ...]
    together: Certificate | None
    totals: tuple[Total, ...] = ()

    @property
    def status(self) -> Status:
        """Status of the least reliable release."""
        return max((each.status for each in self.each), key=list(Status).index)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Distinct reasons for a status other than `proven`."""
        return tuple(dict.fromkeys(reason for each in self.each for reason in each.reasons))


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
            check_distinct(ledgers)
        except InvalidParameter as error:
            raise InvalidParameter(f"{path}: {error}") from None
    each = tuple(certificates)
    if len({ledger.unit for ledger in ledgers}) == 1:
        return Composed(each=each, together=Certificate.from_ledger(combine(ledgers), delta))
    is_noisy = all(ledger.status is not Status.NONE for ledger in ledgers)
    totals = mixed_totals(ledgers, delta) if is_noisy else []
    return Composed(each=each, together=None, totals=tuple(totals))
