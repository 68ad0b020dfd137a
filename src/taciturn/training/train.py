"""Training by a data owner: from ratings to a release with its certificate."""

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from taciturn._internal import validate
from taciturn._internal.files import check_absent
from taciturn._internal.progress import Progress
from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.data.ratings import Ratings
from taciturn.data.splits import random_split
from taciturn.evaluate.metrics import rmse
from taciturn.release.about import About
from taciturn.release.read import read_own_release
from taciturn.release.write import UsersOut, write_release
from taciturn.solvers.als.solver import AlsSolver
from taciturn.solvers.contract import Fit, Session
from taciturn.solvers.solver import DELTA, Solver
from taciturn.training.checks import check_arguments, check_pattern, check_within
from taciturn.training.memory import check_memory
from taciturn.training.outputs import Outputs, Targets, make_targets
from taciturn.training.publish import finish_interrupted
from taciturn.training.workspace import make_binding, open_workspace

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Trained:
    """Result of a training: the release, and owner-only facts.

    `rmse_train` and `rmse_test` are errors of the released model, with the private profiles that it
    lacks. They are exact functions of private data, so they are owner-only. `fit` is None if a
    resumed training had already finished. `factors` is the number of factors in a released profile,
    and `interest` that of entries of its interest vector, popularity first. `latest` is the pointer
    that names the release.
    """

    fit: Fit | None
    certificate: Certificate
    release: Path
    factors: int
    interest: int
    seconds: float
    latest: Path | None = None
    rmse_train: float | None = None
    rmse_test: float | None = None

    @property
    def is_personalised(self) -> bool:
        """True if lists depend on the user: there are factors of ratings or of interest."""
        return self.factors > 0 or self.interest > 1

    def __repr__(self) -> str:
        # Times and errors are owner-only.
        return f"Trained(release={str(self.release)!r}, certificate={self.certificate!r})"


def train(
    ratings: Ratings,
    solver: Solver | None = None,
    budget: Budget | None = None,
    *,
    output: str | Path | Outputs,
    holdout: float | None = None,
    seed: int = 0,
    threads: int | None = None,
    resume: bool = False,
    pattern_is_public: bool = False,
    progress: Progress = False,
) -> Trained:
    """Train and write a release. Reads private data; only the release may be published.

    Parameters
    ----------
    ratings, solver, budget
        Ratings to train on, the solver (`AlsSolver()` when None) and the privacy budget.
    output
        Folder of the release, which must not exist; or `Outputs`, to choose how users appear in it,
        to sign it, or to keep private files.
    holdout
        Fraction of the ratings to hold out and measure the (owner-only) error on. The release is
        the model that is measured, trained on the other ratings.
    seed
        Public seed of the split and the initial profiles; noise never uses it.
    threads
        Number of threads; does not affect the result. Default: one for each processor.
    resume
        Resume an interrupted training with the same data, configuration and noise.
    pattern_is_public
        Declare the rating pattern public even though it depends on rating values (unit `value`).
    progress
        True to draw a bar on stderr, or a function of the steps done and in total.
    """
    start = perf_counter()
    solver = AlsSolver() if solver is None else solver
    check_arguments(ratings, solver, budget, resume=resume, pattern_is_public=pattern_is_public)
    check_pattern(ratings, solver, pattern_is_public)
    # Built first: it raises before anything is created.
    session = Session(seed=seed, threads=threads, progress=progress)
    outputs = output if isinstance(output, Outputs) else Outputs(release=output)
    targets = make_targets(outputs, solver)
    test = None
    if holdout is not None:
        holdout = validate.probability("holdout", holdout, "0.1 holds a tenth out")
        ratings, test = random_split(ratings, holdout, seed)
    binding = make_binding(ratings, solver, budget, seed=seed, holdout=holdout, targets=targets)
    if resume and (certificate := finish_interrupted(targets, binding)) is not None:
        return _finished_before(targets, certificate)
    targets.check_absent()
    check_memory(ratings, solver)
    with open_workspace(targets, binding, resume=resume) as workspace:
        session = replace(session, user_seed=workspace.user_seed, folder=workspace.folder)
        fit = solver.fit(ratings, budget, session)
        certificate = Certificate.from_ledger(fit.ledger, solver.stated_delta(budget))
        check_within(certificate, budget)
        workspace.publish(fit, certificate)
    _logger.info("wrote the release %s", targets.release)
    is_judged = test is not None and fit.model.predicts_ratings
    return Trained(
        fit=fit,
        certificate=certificate,
        release=targets.release,
        factors=fit.model.factor_count,
        interest=fit.model.interest_count,
        seconds=perf_counter() - start,
        latest=targets.latest,
        rmse_train=rmse(fit, ratings) if is_judged else None,
        rmse_test=rmse(fit, test) if is_judged and test is not None else None,
    )


def _finished_before(targets: Targets, certificate: Certificate) -> Trained:
    """Result of a training that had already published its release when it was resumed."""
    model = read_own_release(targets.release).model
    return Trained(
        fit=None,
        certificate=certificate,
        release=targets.release,
        factors=model.factor_count,
        interest=model.interest_count,
        seconds=0.0,
        latest=targets.latest,
    )


def save(fit: Fit, path: str | Path, *, delta: float = DELTA, about: About | None = None) -> Path:
    """Write the publishable part of a fit to a new folder, with its certificate at `delta`."""
    validate.instance("fit", fit, Fit, "pass the result of a solver's fit")
    if about is not None:
        validate.instance("about", about, About, "build one, such as About(name='films')")
    certificate = Certificate.from_ledger(fit.ledger, delta)
    users_out = UsersOut.NONE if fit.model.users is None else UsersOut.IDS
    return write_release(fit, certificate, check_absent(path), users_out=users_out, about=about)
