"""Recommenders trained under differential privacy, released with a checkable certificate.

The names below are the whole public interface; each is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from tacit._version import __version__

if TYPE_CHECKING:
    from tacit.data import load
    from tacit.data.ratings import Ratings
    from tacit.data.scale import Scale
    from tacit.errors import TacitError
    from tacit.privacy.accounting.accounts import Accounts, account
    from tacit.privacy.budget import Budget
    from tacit.privacy.certificate import Certificate
    from tacit.privacy.events import ExactRelease, GaussianRelease, Noise, Rows
    from tacit.privacy.ledger import Ledger, Status, combine
    from tacit.privacy.units import Unit

_HOME = {
    "Accounts": "tacit.privacy.accounting.accounts",
    "Budget": "tacit.privacy.budget",
    "Certificate": "tacit.privacy.certificate",
    "ExactRelease": "tacit.privacy.events",
    "GaussianRelease": "tacit.privacy.events",
    "Ledger": "tacit.privacy.ledger",
    "Noise": "tacit.privacy.events",
    "Ratings": "tacit.data.ratings",
    "Rows": "tacit.privacy.events",
    "Scale": "tacit.data.scale",
    "Status": "tacit.privacy.ledger",
    "TacitError": "tacit.errors",
    "Unit": "tacit.privacy.units",
    "account": "tacit.privacy.accounting.accounts",
    "combine": "tacit.privacy.ledger",
    "load": "tacit.data",
}

__all__ = [
    "Accounts",
    "Budget",
    "Certificate",
    "ExactRelease",
    "GaussianRelease",
    "Ledger",
    "Noise",
    "Ratings",
    "Rows",
    "Scale",
    "Status",
    "TacitError",
    "Unit",
    "__version__",
    "account",
    "combine",
    "load",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
