"""Small fits and releases."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from taciturn.accounting.certificate import Certificate
from taciturn.mechanisms.noise import SecureNoise
from taciturn.release.bundle import SUMS
from taciturn.release.write import checksums, write_release
from taciturn.solvers.catalog import make_solver
from taciturn.solvers.contract import Fit, Session
from taciturn.solvers.solver import Solver
from tests.model.helpers import with_interest
from tests.solvers.helpers import BUDGET, random_ratings


def small_fit(name: str = "gradient") -> Fit:
    """Fit of a solver under unit `value`."""
    options: dict[str, Any] = {} if name == "bias" else {"factors": 2, "iterations": 2}
    solver: Solver = make_solver(name, unit="value", **options)
    session = Session(noise=SecureNoise())
    budget = BUDGET if solver.is_private else None
    return solver.fit(random_ratings(users=6, items=5), budget, session)


def certificate(fit: Fit) -> Certificate:
    return Certificate.from_ledger(fit.ledger, 1e-5)


def write_small(path: Path, name: str = "gradient", **options: Any) -> Fit:
    fit = small_fit(name)
    write_release(fit, certificate(fit), path, **options)
    return fit


def reseal(path: Path) -> None:
    """Recompute the checksums of a changed release, as a forger would."""
    (path / SUMS).write_bytes(checksums(path))


def copy(source: Path, target: Path) -> Path:
    shutil.copytree(source, target)
    return target


def write_with_interest(path: Path, columns: int = 4, **options: Any) -> Fit:
    """Release with random interest vectors."""
    trained = small_fit("als")
    fit = replace(trained, model=with_interest(trained.model, columns))
    write_release(fit, certificate(fit), path, **options)
    return fit
