"""A training as its owner orders it: checked first, then read, then previewed or run."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from taciturn._internal.files import check_absent
from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import delta_warning
from taciturn.accounting.units import Unit
from taciturn.data import load_source
from taciturn.data.id_lists import IdLists
from taciturn.data.options import ReadingOptions
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter, TaciturnError
from taciturn.solvers.catalog import CATALOG, make_solver
from taciturn.solvers.contract import silent
from taciturn.solvers.solver import Solver
from taciturn.training.outputs import Outputs, run_folder, users_in_release
from taciturn.training.preview import Preview, preview
from taciturn.training.train import Trained, train

Say = Callable[[str], None]
Progress = Callable[[int, int], None]
Reader = Callable[[Any, ReadingOptions], Ratings]


def nobody(sentence: str) -> None:
    """Say a sentence to nobody."""


@dataclass(frozen=True, kw_only=True)
class Budgeted:
    """A solver and the budget that it spends, None if it is not private or has its own."""

    solver: Solver
    budget: Budget | None
    delta: float

    @classmethod
    def of(
        cls, name: str, unit: str, epsilon: float | None, delta: float, options: dict[str, Any]
    ) -> "Budgeted":
        """Solver of a name with options, those that are None left to it, and a budget to match."""
        has_own_budget = options.get("epsilon_i") is not None
        if has_own_budget and name in CATALOG and "delta" in CATALOG[name].settings:
            options = options | {"delta": delta}
        solver = make_solver(name, unit=unit, **options)
        if epsilon is not None and not solver.is_private:
            raise InvalidParameter(f"{solver.name} is not private; leave out --epsilon")
        if epsilon is None and solver.is_private and not has_own_budget:
            raise InvalidParameter("a private solver needs a budget: --epsilon E")
        budget = Budget.from_epsilon(epsilon, delta) if epsilon is not None else None
        return cls(solver=solver, budget=budget, delta=delta)


@dataclass(frozen=True, kw_only=True)
class Job:
    """A training with everything that decides it. Checked when built, before anything is read.

    Attributes
    ----------
    source, reading
        The ratings, and how to read them.
    trained
        The solver and its budget.
    lists
        Public id lists, which take the place of the users and items in the ratings.
    outputs
        Where the release and private files go; a preview needs none.
    holdout, seed, threads, pattern_is_public
        As in `train`.
    """

    source: object
    reading: ReadingOptions
    trained: Budgeted
    lists: IdLists = field(default_factory=IdLists)
    outputs: Outputs | None = None
    holdout: float | None = None
    seed: int = 0
    threads: int | None = None
    pattern_is_public: bool = False

    def __post_init__(self) -> None:
        users_out = self.outputs.users_out if self.outputs is not None else None
        users_in_release(self.trained.solver, users_out)
        if self.unit is Unit.USER and self.lists.users is not None:
            raise InvalidParameter("unit user releases no list of users; leave out --user-list")
        if self.lists.items is not None and self.reading.item_id_type is not None:
            raise InvalidParameter(
                "the item list decides the type of item ids; leave out --item-id-type"
            )

    @property
    def unit(self) -> Unit:
        """What the training protects."""
        return self.trained.solver.unit

    def preview(
        self, *, read: Reader = load_source, note: Say = nobody, warn: Say = nobody
    ) -> Preview:
        """What the training would spend and take. Reads private data and releases nothing."""
        ratings = self._ratings(read, note, warn)
        if self.outputs is not None:
            check_absent(self.outputs.release)
        seen = preview(
            ratings,
            self.trained.solver,
            self.trained.budget,
            holdout=self.holdout,
            threads=self.threads,
            pattern_is_public=self.pattern_is_public,
        )
        self._say_public(note)
        return seen

    def run(
        self,
        *,
        resume: bool = False,
        read: Reader = load_source,
        note: Say = nobody,
        warn: Say = nobody,
        progress: Callable[[], AbstractContextManager[Progress]] = lambda: nullcontext(silent),
    ) -> Trained:
        """Train and write the release; see `train`. Reads private data.

        Remarks for the owner go to `note` and `warn` and are owner-only. `progress` opens what is
        called with the iterations done and in all; it is closed before remarks are made.
        """
        if self.outputs is None:
            raise InvalidParameter(
                "say where to write the release: -o DIR; or look first: --dry-run"
            )
        ratings = self._ratings(read, note, warn)
        folder = run_folder(self.outputs.release)
        was_there = folder.exists()
        try:
            with progress() as steps:
                trained = train(
                    ratings,
                    self.trained.solver,
                    self.trained.budget,
                    output=self.outputs,
                    holdout=self.holdout,
                    seed=self.seed,
                    threads=self.threads,
                    resume=resume,
                    pattern_is_public=self.pattern_is_public,
                    progress=steps,
                )
        except KeyboardInterrupt:
            if folder.exists():
                note("interrupted; the same command with --resume goes on, with the same noise")
            raise
        except TaciturnError:
            if folder.exists() and not was_there:
                note(
                    f"what was released so far counts; it is recorded in {folder}: go on with "
                    "--resume, or remove the folder to begin again"
                )
            raise
        self._say_public(note)
        self._say_left_out(trained, self.outputs, note)
        return trained

    def _ratings(self, read: Reader, note: Say, warn: Say) -> Ratings:
        """Ratings to train on, with remarks on how they were prepared and on δ."""
        ratings = self.lists.among(read(self.source, self.reading))
        for sentence in ratings.preparation.notes():
            note(sentence)
        # Under unit user the number of users is private, and this remark is owner-only.
        if self.trained.solver.is_private:
            warning = delta_warning(self.trained.delta, ratings.shape[0])
            if warning is not None:
                warn(f"{warning} (owner-only: this line states the exact number of users)")
        return ratings

    def _say_public(self, note: Say) -> None:
        """Name the lists that the unit protects but that are published from the ratings."""
        roles = [
            role
            for role, path, is_listed in (
                ("user", self.lists.users, self.unit is Unit.RATING),
                ("item", self.lists.items, self.unit is not Unit.VALUE),
            )
            if path is None and is_listed
        ]
        if roles:
            names = " and ".join(f"{role}s" for role in roles)
            options = " and ".join(f"--{role}-list FILE" for role in roles)
            note(
                f"the list of {names} is taken from the ratings and treated as public; if it is "
                f"not public, pass {options}"
            )

    def _say_left_out(self, trained: Trained, outputs: Outputs, note: Say) -> None:
        """Name what the owner may miss in the release."""
        fit = trained.fit
        if fit is None:
            return
        if CATALOG[self.trained.solver.name].has_factors and fit.model.factor_count == 0:
            note(
                "noise leaves no room for factors here: the release has biases only, which rank "
                "items the same for every user; a larger epsilon or more ratings would change that"
            )
        if fit.private_items is not None and outputs.private_items is None:
            note(
                "the item profiles were never noised and are not in the release; "
                "--private-items-out keeps them for you"
            )
