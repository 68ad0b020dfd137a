"""Release in memory. Everything in it is public; it holds no ratings and cannot hold any."""

from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True, eq=False, kw_only=True)
class Release:
    """Release that was read and checked; its model lacks the axes that are not published."""

    path: Path
    certificate: Certificate
    facts: Facts
    model: FactorModel
