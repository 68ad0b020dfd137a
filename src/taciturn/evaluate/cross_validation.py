"""Cross-validation of a solver. Exact, so owner-only."""

import logging
import math
from dataclasses import dataclass
from statistics import fmean, stdev

import polars as pl

from taciturn._internal import validate
from taciturn._internal.progress import Progress, as_report
from taciturn.accounting.budget import Budget
from taciturn.data.ratings import Ratings, check_ratings
from taciturn.data.splits import k_fold
from taciturn.errors import InvalidParameter
from taciturn.evaluate.metrics import Accuracy, accuracy
from taciturn.evaluate.plan import predicts_ratings
from taciturn.solvers.contract import Session
from taciturn.solvers.solver import Solver, check_budget, check_solver

_logger = logging.getLogger(__name__)

_LABELS = {
    "rmse": "RMSE",
    "mae": "MAE",
    "ndcg": "NDCG@10",
    "recall": "recall@20",
    "item_coverage": "item coverage@10",
    "novelty": "novelty@10",
}


@dataclass(frozen=True, kw_only=True, repr=False)
class CrossValidation:
    """Accuracy of a solver on each fold. Exact: owner-only.

    Attributes
    ----------
    folds
        Accuracy on the held-out ratings of each fold.
    """

    folds: tuple[Accuracy, ...]

    def mean(self, metric: str = "rmse") -> float | None:
        """Mean of a metric over the folds; None if it is unknown for one of them.

        The metrics are `rmse`, `mae`, `ndcg`, `recall`, `item_coverage` and `novelty`.
        """
        found = self._values(metric)
        return fmean(found) if found else None

    def standard_error(self, metric: str = "rmse") -> float | None:
        """Standard error of the mean, as if the folds were independent."""
        found = self._values(metric)
        return stdev(found) / math.sqrt(len(found)) if found else None

    def _values(self, metric: str) -> list[float]:
        """Values of a metric; empty if one is unknown."""
        if not (isinstance(metric, str) and metric in _LABELS):
            raise InvalidParameter(
                f"metric must be one of {', '.join(_LABELS)}, got {validate.shown(metric)}"
            )
        found = [getattr(each, metric) for each in self.folds]
        return [] if None in found else found

    def to_frame(self) -> pl.DataFrame:
        """Table with one row for each fold: its number and its metrics."""
        rows = [
            {"fold": number, **{name: getattr(each, name) for name in _LABELS}}
            for number, each in enumerate(self.folds, start=1)
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def __repr__(self) -> str:
        parts = [
            f"{label} {mean:.4f} ± {error:.4f}"
            for name, label in _LABELS.items()
            if (mean := self.mean(name)) is not None
            and (error := self.standard_error(name)) is not None
        ]
        return f"CrossValidation({len(self.folds)} folds, owner-only: {', '.join(parts)})"


def cross_validate(
    ratings: Ratings,
    solver: Solver,
    budget: Budget | None = None,
    *,
    folds: int = 5,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress = False,
) -> CrossValidation:
    """Train on all folds but one and measure the errors on that one, for each fold.

    Each fold is a training of its own with the whole budget. Nothing is released, and the fits are
    discarded. The errors are exact functions of private ratings: they are owner-only, and no
    guarantee covers publishing them or choosing by them what to publish.

    Parameters
    ----------
    ratings, solver, budget
        Ratings, the solver, and the budget of each training; None if the solver is not private.
    folds
        Number of folds. Each rating is held out in one of them.
    seed
        Public seed of the folds and of the initial profiles; noise never uses it.
    threads
        Number of threads; does not affect the result. Default: one for each processor.
    progress
        True to draw a bar on stderr, or a function of the folds done and in total.
    """
    check_ratings(ratings)
    check_solver(solver)
    check_budget(budget)
    report = as_report(progress, "folds")
    session = Session(seed=seed, threads=threads)
    found: list[Accuracy] = []
    predicts = predicts_ratings(solver.name)
    for train, test in k_fold(ratings, folds, seed):
        report(len(found), folds)
        _logger.info("fold %d of %d", len(found) + 1, folds)
        fit = solver.fit(train, budget, session)
        found.append(accuracy(fit, train, test, threads, predicts_ratings=predicts))
    report(folds, folds)
    return CrossValidation(folds=tuple(found))
