"""A release in memory: what anybody may know. It holds no ratings and cannot hold any."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from taciturn.accounting.certificate import Certificate
from taciturn.model.fold_in import Prior
from taciturn.scale import Scale

FORMAT = "taciturn-release"
VERSION = 1

CERTIFICATE, CARD = "certificate.json", "card.md"
ITEMS, USERS = "items.parquet", "users.parquet"
SUMS, SIGNATURE = "SHA256SUMS", "signature.json"

REQUIRED = (CERTIFICATE, CARD, SUMS)
OPTIONAL = (ITEMS, USERS, SIGNATURE)


@dataclass(frozen=True, eq=False, kw_only=True)
class Table:
    """Profiles of users or items: ids, biases (n) and factors (n × k).

    Where the release tells how sure they are, with the variances of both.
    """

    ids: pl.Series
    biases: npt.NDArray[np.float32]
    factors: npt.NDArray[np.float32]
    bias_variances: npt.NDArray[np.float32] | None = None
    variances: npt.NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is public about a release beside its guarantee.

    `users` and `items` count profiles; `factors` is their length; `mean` is added to every
    prediction. `user_ids` says what users are called: their ids, pseudonyms, or nothing (none).
    `residual_variance` is the variance of a rating's own error, where tables have variances.
    `prior` is what may be assumed of a person who folds in, where there are no users.
    """

    solver: str
    settings: dict[str, Any]
    taciturn: str
    scale: Scale
    mean: float
    factors: int
    users: int
    items: int
    user_ids: str
    residual_variance: float | None = None
    prior: Prior | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as JSON types; those that are not there are left out."""
        facts = asdict(self)
        for name in ("residual_variance", "prior"):
            if facts[name] is None:
                del facts[name]
        if self.prior is not None:
            facts["prior"]["variances"] = list(self.prior.variances)
        return facts


@dataclass(frozen=True, eq=False, kw_only=True)
class Release:
    """A release that was read and checked; `users` or `items` is None if it holds none."""

    path: Path
    certificate: Certificate
    facts: Facts
    users: Table | None
    items: Table | None
