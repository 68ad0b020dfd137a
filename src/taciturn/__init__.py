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
        FoldInServing,
        GaussianRelease,
        Noise,
        PatternRelease,
        Rows,
    )
    from taciturn.accounting.ledger import Ledger, Status, combine
    from taciturn.accounting.public_inputs import PublicInput
    from taciturn.accounting.units import Unit
    from taciturn.data import load, load_item_features, load_public_ratings
    from taciturn.data.id_lists import with_id_lists, with_item_features
    from taciturn.data.item_features import ItemFeatures
    from taciturn.data.public_ratings import with_public_ratings
    from taciturn.data.ratings import PublicRatings, Ratings
    from taciturn.data.splits import k_fold, leave_last_out, random_split, stratified_split
    from taciturn.errors import NotPersonalised, SignatureNotChecked, TaciturnError, UnknownIds
    from taciturn.evaluate.compare import Comparison, run_comparison
    from taciturn.evaluate.cross_validation import CrossValidation, cross_validate
    from taciturn.evaluate.metrics import (
        Accuracy,
        HeldOutError,
        accuracy,
        coverage,
        held_out_error,
        rmse,
    )
    from taciturn.evaluate.plan import Plan
    from taciturn.mechanisms.noise import InsecureTestNoise
    from taciturn.model.factor_model import FactorModel
    from taciturn.model.profiles import Profiles
    from taciturn.recommend.serve import Recommender
    from taciturn.release.about import About
    from taciturn.release.bundle import Release
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
    from taciturn.solvers.popularity import NonPrivatePopularitySolver, PopularitySolver
    from taciturn.solvers.solver import Solver
    from taciturn.training.outputs import Outputs
    from taciturn.training.train import Trained, save, train

_HOME = {
    "About": "taciturn.release.about",
    "Accounts": "taciturn.accounting.accounts",
    "Accuracy": "taciturn.evaluate.metrics",
    "AlsSolver": "taciturn.solvers.als.solver",
    "BiasSolver": "taciturn.solvers.bias",
    "Budget": "taciturn.accounting.budget",
    "Certificate": "taciturn.accounting.certificate",
    "Comparison": "taciturn.evaluate.compare",
    "CrossValidation": "taciturn.evaluate.cross_validation",
    "ExactRelease": "taciturn.accounting.events",
    "FactorModel": "taciturn.model.factor_model",
    "Fit": "taciturn.solvers.contract",
    "FoldInServing": "taciturn.accounting.events",
    "GaussianRelease": "taciturn.accounting.events",
    "GradientSolver": "taciturn.solvers.gradient",
    "HeldOutError": "taciturn.evaluate.metrics",
    "InputPerturbationSolver": "taciturn.solvers.input_perturbation",
    "InsecureTestNoise": "taciturn.mechanisms.noise",
    "ItemFeatures": "taciturn.data.item_features",
    "Ledger": "taciturn.accounting.ledger",
    "Noise": "taciturn.accounting.events",
    "NonPrivateBiasSolver": "taciturn.solvers.bias",
    "NonPrivateGradientSolver": "taciturn.solvers.gradient",
    "NonPrivatePopularitySolver": "taciturn.solvers.popularity",
    "NonPrivateSolver": "taciturn.solvers.non_private",
    "NotPersonalised": "taciturn.errors",
    "Outputs": "taciturn.training.outputs",
    "PaperSolver": "taciturn.solvers.paper",
    "PatternRelease": "taciturn.accounting.events",
    "Plan": "taciturn.evaluate.plan",
    "PopularitySolver": "taciturn.solvers.popularity",
    "Profiles": "taciturn.model.profiles",
    "PublicInput": "taciturn.accounting.public_inputs",
    "PublicRatings": "taciturn.data.ratings",
    "Ratings": "taciturn.data.ratings",
    "Recommender": "taciturn.recommend.serve",
    "Release": "taciturn.release.bundle",
    "Rows": "taciturn.accounting.events",
    "Scale": "taciturn.scale",
    "Session": "taciturn.solvers.contract",
    "SignatureNotChecked": "taciturn.errors",
    "Solver": "taciturn.solvers.solver",
    "Status": "taciturn.accounting.ledger",
    "TaciturnError": "taciturn.errors",
    "Trained": "taciturn.training.train",
    "Unit": "taciturn.accounting.units",
    "UnknownIds": "taciturn.errors",
    "account": "taciturn.accounting.accounts",
    "accuracy": "taciturn.evaluate.metrics",
    "combine": "taciturn.accounting.ledger",
    "coverage": "taciturn.evaluate.metrics",
    "cross_validate": "taciturn.evaluate.cross_validation",
    "held_out_error": "taciturn.evaluate.metrics",
    "k_fold": "taciturn.data.splits",
    "leave_last_out": "taciturn.data.splits",
    "load": "taciturn.data",
    "load_item_features": "taciturn.data",
    "load_public_ratings": "taciturn.data",
    "load_release": "taciturn.release.read",
    "random_split": "taciturn.data.splits",
    "rmse": "taciturn.evaluate.metrics",
    "run_comparison": "taciturn.evaluate.compare",
    "save": "taciturn.training.train",
    "stratified_split": "taciturn.data.splits",
    "train": "taciturn.training.train",
    "verify_release": "taciturn.release.verify",
    "with_id_lists": "taciturn.data.id_lists",
    "with_item_features": "taciturn.data.id_lists",
    "with_public_ratings": "taciturn.data.public_ratings",
}

__all__ = [
    "About",
    "Accounts",
    "Accuracy",
    "AlsSolver",
    "BiasSolver",
    "Budget",
    "Certificate",
    "Comparison",
    "CrossValidation",
    "ExactRelease",
    "FactorModel",
    "Fit",
    "FoldInServing",
    "GaussianRelease",
    "GradientSolver",
    "HeldOutError",
    "InputPerturbationSolver",
    "InsecureTestNoise",
    "ItemFeatures",
    "Ledger",
    "Noise",
    "NonPrivateBiasSolver",
    "NonPrivateGradientSolver",
    "NonPrivatePopularitySolver",
    "NonPrivateSolver",
    "NotPersonalised",
    "Outputs",
    "PaperSolver",
    "PatternRelease",
    "Plan",
    "PopularitySolver",
    "Profiles",
    "PublicInput",
    "PublicRatings",
    "Ratings",
    "Recommender",
    "Release",
    "Rows",
    "Scale",
    "Session",
    "SignatureNotChecked",
    "Solver",
    "Status",
    "TaciturnError",
    "Trained",
    "Unit",
    "UnknownIds",
    "__version__",
    "account",
    "accuracy",
    "combine",
    "coverage",
    "cross_validate",
    "held_out_error",
    "k_fold",
    "leave_last_out",
    "load",
    "load_item_features",
    "load_public_ratings",
    "load_release",
    "random_split",
    "rmse",
    "run_comparison",
    "save",
    "stratified_split",
    "train",
    "verify_release",
    "with_id_lists",
    "with_item_features",
    "with_public_ratings",
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
