"""Release in memory. Everything in it is public; it holds no ratings and cannot hold any."""

from dataclasses import dataclass
from pathlib import Path

from taciturn._internal.html import summary
from taciturn.accounting import text
from taciturn.accounting.certificate import Certificate
from taciturn.model.factor_model import FactorModel
from taciturn.release.facts import Facts

FORMAT = "taciturn-release"
VERSION = 1

CERTIFICATE, CARD = "certificate.json", "card.md"
ITEMS, USERS = "items.parquet", "users.parquet"
SUMS, SIGNATURE = "SHA256SUMS", "signature.json"

REQUIRED = (CERTIFICATE, CARD, SUMS)
OPTIONAL = (ITEMS, USERS, SIGNATURE)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Release:
    """Release that was read and checked; its model lacks the axes that are not published."""

    path: Path
    certificate: Certificate
    facts: Facts
    model: FactorModel

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}: {fact}" for name, fact in self._facts())
        return f"Release({str(self.path)!r}, {facts},\n  {self.certificate!r})"

    def _repr_html_(self) -> str:
        title = f"Release {self.path.name}, status {self.certificate.status}"
        status = text.STATUS[self.certificate.status]
        return summary(title, [*self._facts(), *self.certificate.facts()], [status])

    def _facts(self) -> list[tuple[str, str]]:
        """Short public facts: names and facts, as text."""
        users, items = (
            "none" if profiles is None else f"{len(profiles):,}"
            for profiles in (self.model.users, self.model.items)
        )
        names = f" ({self.facts.user_ids})" if self.model.users is not None else ""
        return [
            ("solver", self.facts.solver),
            ("users", users + names),
            ("items", items),
            ("factors", str(self.model.factor_count)),
            ("scale", str(self.model.scale)),
            ("date", self.facts.date.isoformat()),
        ]
