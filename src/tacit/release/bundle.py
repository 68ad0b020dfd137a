"""A release in memory: what anybody may know. It holds no ratings and cannot hold any."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tacit.data.scale import Scale
from tacit.privacy.certificate import Certificate

FORMAT = "tacit-release"
VERSION = 1

CERTIFICATE, CARD = "certificate.json", "card.md"
ITEMS, USERS = "items.parquet", "users.parquet"
SUMS, SIGNATURE = "SHA256SUMS", "signature.json"

REQUIRED = (CERTIFICATE, CARD, SUMS)
OPTIONAL = (ITEMS, USERS, SIGNATURE)


@dataclass(frozen=True, eq=False, kw_only=True)
class Table:
    """Profiles of users or items: ids, biases (n) and factors (n × k)."""

    ids: pl.Series
    biases: npt.NDArray[np.float32]
    factors: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is public about a release beside its guarantee.

    `users` and `items` count profiles; `factors` is their length; `mean` is added to every
    prediction. `user_ids` says what users are called: their ids, pseudonyms, or nothing (none).
    """

    solver: str
    settings: dict[str, Any]
    tacit: str
    scale: Scale
    mean: float
    factors: int
    users: int
    items: int
    user_ids: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Release:
    """A release that was read and checked; `users` or `items` is None if it holds none."""

    path: Path
    certificate: Certificate
    facts: Facts
    users: Table | None
    items: Table | None
