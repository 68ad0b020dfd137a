"""Recommenders trained under differential privacy, released with a checkable certificate.

The names below are the whole public interface; each is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from tacit._version import __version__

if TYPE_CHECKING:
    from tacit._fold_in import fold_in
    from tacit.data import load
    from tacit.data.ratings import Ratings
    from tacit.data.scale import Scale
    from tacit.data.universe import with_universe
    from tacit.errors import TacitError
    from tacit.evaluate.metrics import rmse
    from tacit.privacy.accounting.accounts import Accounts, account
    from tacit.privacy.budget import Budget
    from tacit.privacy.certificate import Certificate
    from tacit.privacy.events import ExactRelease, GaussianRelease, Noise, PatternRelease, Rows
    from tacit.privacy.ledger import Ledger, Status, combine
    from tacit.privacy.units import Unit
    from tacit.recommend.serve import Recommender
    from tacit.release.read import load_release, verify_release
    from tacit.solvers.als import AlsSolver
    from tacit.solvers.bias import BiasSolver, NonPrivateBiasSolver
    from tacit.solvers.contract import Fit, Session
    from tacit.solvers.gradient import GradientSolver, NonPrivateGradientSolver
    from tacit.solvers.input_perturbation import InputPerturbationSolver
    from tacit.solvers.non_private import NonPrivateSolver
    from tacit.solvers.paper import PaperSolver
    from tacit.training import save, train

_HOME = {
    "Accounts": "tacit.privacy.accounting.accounts",
    "AlsSolver": "tacit.solvers.als",
    "BiasSolver": "tacit.solvers.bias",
    "Budget": "tacit.privacy.budget",
    "Certificate": "tacit.privacy.certificate",
    "ExactRelease": "tacit.privacy.events",
    "Fit": "tacit.solvers.contract",
    "GaussianRelease": "tacit.privacy.events",
    "GradientSolver": "tacit.solvers.gradient",
    "InputPerturbationSolver": "tacit.solvers.input_perturbation",
    "Ledger": "tacit.privacy.ledger",
    "Noise": "tacit.privacy.events",
    "NonPrivateBiasSolver": "tacit.solvers.bias",
    "NonPrivateGradientSolver": "tacit.solvers.gradient",
    "NonPrivateSolver": "tacit.solvers.non_private",
    "PaperSolver": "tacit.solvers.paper",
    "PatternRelease": "tacit.privacy.events",
    "Ratings": "tacit.data.ratings",
    "Recommender": "tacit.recommend.serve",
    "Rows": "tacit.privacy.events",
    "Scale": "tacit.data.scale",
    "Session": "tacit.solvers.contract",
    "Status": "tacit.privacy.ledger",
    "TacitError": "tacit.errors",
    "Unit": "tacit.privacy.units",
    "account": "tacit.privacy.accounting.accounts",
    "combine": "tacit.privacy.ledger",
    "fold_in": "tacit._fold_in",
    "load": "tacit.data",
    "load_release": "tacit.release.read",
    "rmse": "tacit.evaluate.metrics",
    "save": "tacit.training",
    "train": "tacit.training",
    "verify_release": "tacit.release.read",
    "with_universe": "tacit.data.universe",
}

__all__ = [
    "Accounts",
    "AlsSolver",
    "BiasSolver",
    "Budget",
    "Certificate",
    "ExactRelease",
    "Fit",
    "GaussianRelease",
    "GradientSolver",
    "InputPerturbationSolver",
    "Ledger",
    "Noise",
    "NonPrivateBiasSolver",
    "NonPrivateGradientSolver",
    "NonPrivateSolver",
    "PaperSolver",
    "PatternRelease",
    "Ratings",
    "Recommender",
    "Rows",
    "Scale",
    "Session",
    "Status",
    "TacitError",
    "Unit",
    "__version__",
    "account",
    "combine",
    "fold_in",
    "load",
    "load_release",
    "rmse",
    "save",
    "train",
    "verify_release",
    "with_universe",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
