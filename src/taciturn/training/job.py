"""Training job: options are checked first, then ratings are read, then it is previewed or run."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from taciturn._internal.files import check_absent
from taciturn._internal.progress import silent
from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import delta_warning
from taciturn.accounting.units import DEFAULT_UNIT, Unit
from taciturn.data import load_source
from taciturn.data.id_lists import IdLists
from taciturn.data.named_features import GivenFeatures
from taciturn.data.options import ReadingOptions
from taciturn.data.public_ratings import GivenPublicRatings
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidParameter
from taciturn.solvers.als.size import size_for_factors
from taciturn.solvers.als.solver import AlsSolver
from taciturn.solvers.catalog import CATALOG, make_solver, solvers_of_all_units
from taciturn.solvers.contract import PublicFacts
from taciturn.solvers.public_inputs import ids_from_ratings
from taciturn.solvers.solver import Solver
from taciturn.training.outputs import Outputs, users_in_release
from taciturn.training.preview import Preview, preview
from taciturn.training.train import Trained, train

Say = Callable[[str], None]
Progress = Callable[[int, int], None]
Reader = Callable[[Any, ReadingOptions], Ratings]


VALUE_INSTEAD = (
    "unit rating protects each rating and the fact that it exists; --unit value would protect only "
    "its value and publish which user rated which item, and is usually more accurate (docs: "
    "choose a unit)"
)
"""Remark of a training under the default unit: what unit `value` would give up and gain."""


FOLD_IN_INSTEAD = (
    "the release holds user profiles, which have noise; if you serve your own users, --serve "
    "fold-in predicts their ratings more accurately at the same guarantee (docs: published "
    "profiles or fold-in)"
)
"""Remark of a training that publishes user profiles: the other way to serve users."""


def ignore(sentence: str) -> None:
    """Discard a remark."""


@dataclass(frozen=True, kw_only=True)
class Budgeted:
    """Solver and its budget; None if the solver is not private or sets its own.

    `is_unit_chosen` is False if the unit is the default.
    """

    solver: Solver
    budget: Budget | None
    delta: float
    is_unit_chosen: bool = True

    @classmethod
    def of(
        cls,
        name: str,
        unit: str | None,
        epsilon: float | None,
        delta: float,
        options: dict[str, Any],
    ) -> "Budgeted":
        """Solver with the given options, and its budget. Options that are None keep defaults."""
        _check_default_unit(name, unit)
        has_own_budget = options.get("epsilon_i") is not None
        if has_own_budget and name in CATALOG and "delta" in CATALOG[name].settings:
            options = options | {"delta": delta}
        solver = make_solver(name, unit=unit, **options)
        if options.get("pattern_features") is False and Unit(solver.unit) is not Unit.VALUE:
            raise InvalidParameter(
                f"unit {solver.unit} publishes no features of the rating pattern; leave out "
                "--no-pattern-features, or pass --unit value"
            )
        if epsilon is not None and not solver.is_private:
            raise InvalidParameter(f"{solver.name} is not private; leave out --epsilon")
        if epsilon is None and solver.is_private and not has_own_budget:
            raise InvalidParameter("a private solver needs a budget; pass --epsilon NUMBER")
        budget = Budget.from_epsilon(epsilon, delta) if epsilon is not None else None
        return cls(solver=solver, budget=budget, delta=delta, is_unit_chosen=unit is not None)


def _check_default_unit(name: str, unit: str | None) -> None:
    """Raise if no unit is chosen and a private solver does not support the default unit."""
    entry = CATALOG.get(name)
    if unit is None and entry and entry.is_private and entry.default_unit is not DEFAULT_UNIT:
        known = " or ".join(f"--solver {each}" for each in solvers_of_all_units())
        raise InvalidParameter(
            f"{name} supports unit value only, which does not protect the fact that a user rated "
            f"an item; pass --unit value to accept this, or use {known}"
        )


@dataclass(frozen=True, kw_only=True)
class Job:
    """Complete specification of a training. Checked when built, before anything is read.

    Attributes
    ----------
    source, reading
        Ratings, and options for reading them.
    trained
        Solver and its budget.
    lists
        Public id lists. Default: the users and items in the ratings.
    features
        Public item features, for a solver that uses them. Default: none.
    public
        Public ratings of the same items, for a solver that uses them. Default: none.
    outputs
        Paths of the release and the private files; not needed for a preview.
    holdout, seed, threads, pattern_is_public
        As in `train`.
    """

    source: object
    reading: ReadingOptions
    trained: Budgeted
    lists: IdLists = field(default_factory=IdLists)
    features: GivenFeatures | None = None
    public: GivenPublicRatings | None = None
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
                "--item-list determines the type of item ids; leave out --item-id-type"
            )
        if self.features is not None and not self.trained.solver.uses_item_features:
            raise InvalidParameter(
                f"{self.trained.solver.name} does not use item features; leave out "
                "--item-features, or use --solver als"
            )
        if self.public is not None and not self.trained.solver.uses_public_ratings:
            raise InvalidParameter(
                f"{self.trained.solver.name} does not use public ratings; leave out "
                "--public-ratings, or use --solver als"
            )

    @property
    def unit(self) -> Unit:
        """Privacy unit of the training."""
        return Unit(self.trained.solver.unit)

    def preview(
        self, *, read: Reader = load_source, note: Say = ignore, warn: Say = ignore
    ) -> Preview:
        """Privacy cost, time and memory of the training. Reads private data, releases nothing."""
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
        self._say_unit(note)
        self._say_serving(note)
        self._say_public(ratings, note)
        self._say_size(ratings, note)
        return seen

    def run(
        self,
        *,
        resume: bool = False,
        read: Reader = load_source,
        note: Say = ignore,
        warn: Say = ignore,
        progress: Callable[[], AbstractContextManager[Progress]] = lambda: nullcontext(silent),
    ) -> Trained:
        """Train and write the release; see `train`. Reads private data.

        Remarks to `note` and `warn` are owner-only. `progress` opens a function that takes the
        iterations done and in total; it is closed before any remarks.
        """
        if self.outputs is None:
            raise InvalidParameter("pass -o DIR to write a release, or --dry-run to preview it")
        ratings = self._ratings(read, note, warn)
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
        except BaseException as error:
            for sentence in getattr(error, "__notes__", ()):
                note(sentence)
            raise
        self._say_unit(note)
        self._say_serving(note)
        self._say_public(ratings, note)
        self._say_size(ratings, note)
        self._say_left_out(trained, self.outputs, note)
        self._say_judged(trained, note)
        return trained

    def _ratings(self, read: Reader, note: Say, warn: Say) -> Ratings:
        """Ratings to train on; makes remarks about their preparation and about δ."""

        def listed() -> Ratings:
            return self.lists.extend(read(self.source, self.reading))

        ratings = listed() if self.features is None else self.features.join(listed)
        if self.public is not None:
            ratings = self.public.join(ratings, licence=note)
        for sentence in ratings.preparation.notes():
            note(sentence)
        # Under unit user the number of users is private, and this remark is owner-only.
        if self.trained.solver.is_private:
            warning = delta_warning(self.trained.delta, ratings.shape[0])
            if warning is not None:
                warn(f"{warning} (owner-only: this line states the exact number of users)")
        return ratings

    def _say_unit(self, note: Say) -> None:
        """State what unit `value` would give up and gain, if the unit was not chosen."""
        if self.unit is Unit.RATING and not self.trained.is_unit_chosen:
            note(VALUE_INSTEAD)

    def _say_serving(self, note: Say) -> None:
        """State that folding in would be more accurate, if the solver can do it."""
        solver = self.trained.solver
        if isinstance(solver, AlsSolver) and not solver.folds_in and solver.serve is None:
            note(FOLD_IN_INSTEAD)

    def _say_public(self, ratings: Ratings, note: Say) -> None:
        """Name the id lists that are taken from the ratings and treated as public."""
        roles = ids_from_ratings(ratings, self.unit)
        if roles:
            options = " and ".join(f"--{role.removesuffix('s')}-list FILE" for role in roles)
            note(
                f"the list of {' and '.join(roles)} is taken from the ratings and treated as "
                f"public; if it is not public, pass {options}"
            )
        if ratings.item_features is not None:
            note(
                f"the item features in {ratings.item_features.source} and the items listed there "
                "are treated as public: no rating may affect them"
            )
        if ratings.public_ratings is not None:
            note(
                f"the ratings in {ratings.public_ratings.source} are treated as public: a user who "
                "is also in them is not protected there"
            )

    def _say_size(self, ratings: Ratings, note: Say) -> None:
        """State the size from which factors help, from public facts.

        Public ratings may bring factors to data of any size.
        """
        if ratings.public_ratings is not None:
            return
        solver, budget = self.trained.solver, self.trained.budget
        if isinstance(solver, AlsSolver) and solver.factors is None and budget is not None:
            unit = Unit(solver.unit)
            note(size_for_factors(PublicFacts.of(ratings, unit), unit, budget))

    def _say_left_out(self, trained: Trained, outputs: Outputs, note: Say) -> None:
        """Name parts that the owner may expect in the release but that it does not have."""
        fit = trained.fit
        if fit is None:
            return
        has_factors = fit.model.factor_count > 0
        if CATALOG[self.trained.solver.name].has_factors and not has_factors:
            ranked = "ranks items the same for every user"
            if trained.is_personalised:
                ranked = "lists items by interest, which depends on the user"
            note(
                f"{'' if trained.is_personalised else 'not personalised: '}at this noise level "
                "factors would not help to predict ratings, so the release predicts from biases "
                f"only and {ranked}; a larger --epsilon or more data would add factors"
            )
        if fit.private_items is not None and outputs.private_items is None:
            note(
                "the item profiles have no noise and are not in the release; pass "
                "--private-items-out FILE to keep them"
            )

    def _say_judged(self, trained: Trained, note: Say) -> None:
        """Say if nothing was judged, or what, if a training on all ratings may differ."""
        if self.holdout is not None and not CATALOG[self.trained.solver.name].predicts_ratings:
            note(
                f"{self.trained.solver.name} predicts no ratings, so there is no error on the "
                "held-out ratings; taciturn compare measures its lists"
            )
        settings = self.trained.solver.settings
        is_free = "factors" in settings and settings["factors"] is None
        if self.holdout is None or self.unit is Unit.VALUE or not is_free:
            return
        same = f"--factors {trained.factors}" if trained.factors else "--solver bias"
        note(
            f"the release and its error are of a training without the held-out ratings, with "
            f"{trained.factors} factors; a training on all ratings may choose another number, "
            f"unless you pass {same}"
        )
