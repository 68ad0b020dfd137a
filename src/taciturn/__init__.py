"""Recommenders trained under differential privacy and released with a verifiable certificate.

The names below are the complete public interface; each is imported on first use.
"""

from taciturn._version import __version__

# Type checkers know this name. Importing it from `typing` would take longer than all the rest, and
# until the command line is imported an interrupt ends in a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from taciturn.accounting.accounts import Accounts, account
    from taciturn.accounting.budget import Budget
    from taciturn.accounting.certificate import Certificate
    from taciturn.accounting.events import (
        ExactRelease,
        GaussianRelease,
        Noise,
        PatternRelease,
        Rows,
    )
    from taciturn.accounting.ledger import Ledger, Status, combine
    from taciturn.accounting.units import Unit
    from taciturn.data import load
    from taciturn.data.id_lists import with_id_lists
    from taciturn.data.ratings import Ratings
    from taciturn.errors import NotPersonalised, SignatureNotChecked, TaciturnError, UnknownIds
    from taciturn.evaluate.metrics import HeldOutError, held_out_error, rmse
    from taciturn.model.factor_model import FactorModel
    from taciturn.model.profiles import Profiles
    from taciturn.recommend.serve import Recommender
    from taciturn.release.about import About
    from taciturn.release.read import load_release
    from taciturn.release.verify import verify_release
    from taciturn.scale import Scale
    from taciturn.solvers.als.solver import AlsSolver
    from taciturn.solvers.bias import BiasSolver, NonPrivateBiasSolver
    from taciturn.solvers.contract import Fit, Session
    from taciturn.solvers.gradient import GradientSolver, NonPrivateGradientSolver
    from taciturn.solvers.input_perturbation import InputPerturbationSolver
    from taciturn.solvers.non_private import NonPrivateSolver
    from taciturn.solvers.paper import PaperSolver
    from taciturn.training.outputs import Outputs
    from taciturn.training.train import save, train

_HOME = {
    "About": "taciturn.release.about",
    "Accounts": "taciturn.accounting.accounts",
    "AlsSolver": "taciturn.solvers.als.solver",
    "BiasSolver": "taciturn.solvers.bias",
    "Budget": "taciturn.accounting.budget",
    "Certificate": "taciturn.accounting.certificate",
    "ExactRelease": "taciturn.accounting.events",
    "FactorModel": "taciturn.model.factor_model",
    "Fit": "taciturn.solvers.contract",
    "GaussianRelease": "taciturn.accounting.events",
    "GradientSolver": "taciturn.solvers.gradient",
    "HeldOutError": "taciturn.evaluate.metrics",
    "InputPerturbationSolver": "taciturn.solvers.input_perturbation",
    "Ledger": "taciturn.accounting.ledger",
    "Noise": "taciturn.accounting.events",
    "NonPrivateBiasSolver": "taciturn.solvers.bias",
    "NonPrivateGradientSolver": "taciturn.solvers.gradient",
    "NonPrivateSolver": "taciturn.solvers.non_private",
    "NotPersonalised": "taciturn.errors",
    "Outputs": "taciturn.training.outputs",
    "PaperSolver": "taciturn.solvers.paper",
    "PatternRelease": "taciturn.accounting.events",
    "Profiles": "taciturn.model.profiles",
    "Ratings": "taciturn.data.ratings",
    "Recommender": "taciturn.recommend.serve",
    "Rows": "taciturn.accounting.events",
    "Scale": "taciturn.scale",
    "Session": "taciturn.solvers.contract",
    "SignatureNotChecked": "taciturn.errors",
    "Status": "taciturn.accounting.ledger",
    "TaciturnError": "taciturn.errors",
    "Unit": "taciturn.accounting.units",
    "UnknownIds": "taciturn.errors",
    "account": "taciturn.accounting.accounts",
    "combine": "taciturn.accounting.ledger",
    "held_out_error": "taciturn.evaluate.metrics",
    "load": "taciturn.data",
    "load_release": "taciturn.release.read",
    "rmse": "taciturn.evaluate.metrics",
    "save": "taciturn.training.train",
    "train": "taciturn.training.train",
    "verify_release": "taciturn.release.verify",
    "with_id_lists": "taciturn.data.id_lists",
}

__all__ = [
    "About",
    "Accounts",
    "AlsSolver",
    "BiasSolver",
    "Budget",
    "Certificate",
    "ExactRelease",
    "FactorModel",
    "Fit",
    "GaussianRelease",
    "GradientSolver",
    "HeldOutError",
    "InputPerturbationSolver",
    "Ledger",
    "Noise",
    "NonPrivateBiasSolver",
    "NonPrivateGradientSolver",
    "NonPrivateSolver",
    "NotPersonalised",
    "Outputs",
    "PaperSolver",
    "PatternRelease",
    "Profiles",
    "Ratings",
    "Recommender",
    "Rows",
    "Scale",
    "Session",
    "SignatureNotChecked",
    "Status",
    "TaciturnError",
    "Unit",
    "UnknownIds",
    "__version__",
    "account",
    "combine",
    "held_out_error",
    "load",
    "load_release",
    "rmse",
    "save",
    "train",
    "verify_release",
    "with_id_lists",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'taciturn' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
