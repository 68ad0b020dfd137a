"""Releases to mutate: the same bytes every time, with proven certificates."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from taciturn.accounting.certificate import Certificate
from taciturn.mechanisms.noise import SecureNoise
from taciturn.release.write import UsersOut, write_release
from taciturn.solvers.catalog import make_solver
from taciturn.solvers.contract import Session
from tests import noise_keys
from tests.solvers.helpers import BUDGET, random_ratings

DAY = date(2026, 1, 31)

RELEASES: dict[str, tuple[str, dict[str, Any]]] = {
    "gradient": ("gradient", {"factors": 2, "iterations": 2}),
    "uncertain": ("als", {"unit": "value", "factors": 2, "iterations": 2, "uncertainty": True}),
    "rating": ("als", {"factors": 2, "iterations": 2, "unit": "rating"}),
    "user": ("als", {"factors": 2, "iterations": 2, "unit": "user"}),
    "bias": ("bias", {"unit": "value"}),
    "paper": ("paper", {"factors": 2, "iterations": 2}),
}
"""Solver and settings of each original release."""


def owner_key(name: str = "owner") -> Ed25519PrivateKey:
    """Private key derived from a name, by default that of the owner."""
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())


@contextmanager
def repeatable() -> Iterator[None]:
    """Fixed keys and names of runs, so that trainings write the same files every time.

    Noise is drawn as in a real training, from a key that only this test knows.
    """
    numbers = count()

    def fixed(size: int) -> bytes:
        return hashlib.shake_256(b"%d" % next(numbers)).digest(size)

    with (
        noise_keys.fresh(),  # drawn from the fixed numbers below
        patch("taciturn.mechanisms.noise.os.urandom", fixed),
        patch("taciturn.accounting.ledger.secrets.token_hex", lambda size: fixed(size).hex()),
        patch("taciturn.mechanisms.run_folder.secrets.randbits", lambda bits: 1),
        patch("taciturn.mechanisms.run_folder.today", lambda: DAY),
    ):
        yield


def write_original(name: str, path: Path) -> None:
    """Write a signed release of `RELEASES`."""
    solver_name, settings = RELEASES[name]
    with repeatable():
        solver = make_solver(solver_name, **settings)
        ratings = random_ratings(users=6, items=5)
        fit = solver.fit(ratings, BUDGET, Session(noise=SecureNoise(), threads=1))
    certificate = Certificate.from_ledger(fit.ledger, 1e-5)
    users = UsersOut.NONE if fit.model.users is None else UsersOut.IDS
    write_release(fit, certificate, path, users_out=users, key=owner_key(), date=DAY)
