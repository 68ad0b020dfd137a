"""`als` under units `rating` and `user`: neighbours, planted bugs, folding in, accuracy."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

from taciturn.accounting.budget import Budget
from taciturn.accounting.ledger import Ledger, Status
from taciturn.accounting.units import Unit
from taciturn.audit.cases import Case, Pair, worst_pair
from taciturn.audit.checks import check_runs
from taciturn.audit.transcript import play, watch
from taciturn.data import load
from taciturn.data.pattern import Axis
from taciturn.data.ratings import Ratings
from taciturn.data.splits import random_split
from taciturn.errors import InvalidParameter
from taciturn.evaluate.metrics import rmse
from taciturn.mechanisms.query import Answer, Released
from taciturn.queries import per_user, user_sums
from taciturn.queries.error_pass import ErrorPass
from taciturn.queries.executor import LocalExecutor
from taciturn.queries.joint_errors import Balance
from taciturn.recommend.serve import Recommender
from taciturn.release.read import load_release
from taciturn.solvers.als.rating import RatingAlgorithm
from taciturn.solvers.als.solver import AlsSolver
from taciturn.solvers.als.user import UserAlgorithm
from taciturn.solvers.bias import BiasSolver
from taciturn.solvers.contract import Fit, Session
from taciturn.solvers.gradient import GradientSolver
from taciturn.training.train import save
from tests.narrow import gaussian_events
from tests.solvers.contract import LearnsCheckerboard, ProvenContract
from tests.solvers.helpers import BUDGET, random_ratings

Patch = pytest.MonkeyPatch


class TestAlsUnderRating(LearnsCheckerboard, ProvenContract):
    name = "als"
    small: ClassVar = {"factors": 2, "iterations": 4}
    unit = Unit.RATING
    fixed_sensitivities = False
    further_proofs = ("interest.md#claim",)


class TestAlsUnderUser(ProvenContract):
    name = "als"
    small: ClassVar = {"factors": 2, "iterations": 4}
    unit = Unit.USER
    fixed_sensitivities = False
    moves_shares = True
    further_proofs = ("interest.md#whole-users",)


SOLVERS: list[Any] = [
    AlsSolver(unit=Unit.RATING, factors=2, iterations=3),
    AlsSolver(unit=Unit.USER, factors=2, iterations=3),
    AlsSolver(unit=Unit.RATING, iterations=3),
    AlsSolver(unit=Unit.USER, iterations=3),
    BiasSolver(unit=Unit.RATING),
    BiasSolver(unit=Unit.USER),
]


def without(ratings: Ratings, unit: Unit, place: int) -> Ratings:
    """Neighbour without one rating, or without all ratings of its user."""
    keep = np.ones(len(ratings), dtype=np.bool_)
    if unit is Unit.RATING:
        keep[place] = False
    else:
        keep[ratings.rows() == ratings.rows()[place]] = False
    return ratings.select(keep)


def without_user(ratings: Ratings, user: int) -> Ratings:
    """Neighbour in which a user is not listed either."""
    frame = ratings.to_frame()
    rest = frame.filter(pl.col("user_id") != ratings.user_ids[user])
    smaller = load(rest, scale=str(ratings.scale))
    assert smaller.shape == (ratings.shape[0] - 1, ratings.shape[1])
    return smaller


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
def test_neighbours_never_differ_by_more_than_recorded(solver: Any) -> None:
    """Given the same transcript every table keeps its bound, whichever dataset was trained on."""
    ratings = random_ratings(8, users=15, items=10)
    largest = 0.0
    for place in np.random.default_rng(0).choice(len(ratings), size=6, replace=False):
        datasets = [ratings, without(ratings, solver.unit, int(place))]
        if solver.unit is Unit.USER:
            datasets.append(without_user(ratings, int(ratings.rows()[place])))
        for one, two in ((0, 1), (1, 0), *(((0, 2), (2, 1)) if len(datasets) > 2 else ())):
            transcript = watch(solver, datasets[one], BUDGET)
            other = play(transcript, solver, datasets[two], BUDGET)
            for first, second in zip(transcript.tables, other.tables, strict=True):
                difference = (first.sums - second.sums).astype(float)
                change = float(np.linalg.norm(difference))
                assert change <= first.query.sensitivity
                assert np.count_nonzero(difference) <= first.query.coordinates
                largest = max(largest, change / first.query.sensitivity)
    assert largest > 0.9999  # weights and counts attain their bounds


def failed(solver: Any, pair: Pair | None = None) -> list[str]:
    """Checks of single runs that fail on the worst case."""
    case = Case(solver=solver, budget=BUDGET, pair=pair or worst_pair(solver))
    return [finding.name for finding in check_runs(case)[0] if not finding.passed]


def forgotten_share(patch: Patch) -> None:
    """The whole contribution of a user is not clipped."""
    patch.setattr(
        user_sums, "clipping_shares", lambda squares, bound: np.full(squares.shape, 1 << 16)
    )


def forgotten_weight(patch: Patch) -> None:
    patch.setattr(per_user, "weights", lambda counts: np.where(counts > 0, 1 << 26, 0))


def unclipped(patch: Patch) -> None:
    """The kernel does not clip prediction errors, although the recorded bound assumes it."""
    original = ErrorPass.run

    def run(self: Any, *arguments: Any, **options: Any) -> Any:
        threshold, self.threshold = self.threshold, 2 * self.grid.range
        try:
            return original(self, *arguments, **options)
        finally:
            self.threshold = threshold

    patch.setattr(ErrorPass, "run", run)


def exact_products(patch: Patch) -> None:
    """The table of products is released without noise."""
    last: list[Answer] = []
    answer, update = LocalExecutor.answer, UserAlgorithm.update

    def answered(self: LocalExecutor, spec: Any) -> Answer:
        last[:] = [answer(self, spec)]
        return last[0]

    def updated(self: UserAlgorithm, step: int, state: Any, released: Released) -> Any:
        if step:
            exact = last[0].tables[1] * released.spec.queries[1].step
            tables = (released.tables[0], exact, *released.tables[2:])
            released = replace(released, tables=tables)
        return update(self, step, state, released)

    patch.setattr(LocalExecutor, "answer", answered)
    patch.setattr(UserAlgorithm, "update", updated)


def exact_counts(patch: Patch) -> None:
    """Steps are divided by exact numbers of ratings."""
    last: list[Ratings] = []
    init = LocalExecutor.__init__

    def begin(self: LocalExecutor, ratings: Ratings, threads: int | None = None) -> None:
        init(self, ratings, threads)
        last[:] = [ratings]

    def counts(self: RatingAlgorithm, state: Any) -> Any:
        return {axis: last[0].pattern.along(axis).counts for axis in Axis}

    patch.setattr(LocalExecutor, "__init__", begin)
    patch.setattr(RatingAlgorithm, "_counts", counts)


def exact_balance(patch: Patch) -> None:
    """Weights of ratings follow from exact numbers of ratings."""
    last: list[Ratings] = []
    init = LocalExecutor.__init__

    def begin(self: LocalExecutor, ratings: Ratings, threads: int | None = None) -> None:
        init(self, ratings, threads)
        last[:] = [ratings]

    def exact(*_: Any) -> Balance:
        pattern = last[0].pattern
        users, items = (pattern.along(axis).counts.astype(np.uint8) for axis in Axis)
        return Balance(users=users, items=items)

    patch.setattr(LocalExecutor, "__init__", begin)
    patch.setattr(Balance, "of", exact)


@pytest.mark.parametrize(
    ("plant", "unit", "check"),
    [
        (exact_balance, Unit.RATING, "nothing outside the gate"),
        (forgotten_weight, Unit.USER, "differences within bounds"),
        (forgotten_share, Unit.USER, "differences within bounds"),
        (unclipped, Unit.RATING, "differences within bounds"),
        (exact_products, Unit.USER, "nothing outside the gate"),
        (exact_counts, Unit.RATING, "nothing outside the gate"),
    ],
)
def test_planted_violations_are_caught(
    plant: Callable[[Patch], None], unit: Unit, check: str, monkeypatch: Patch
) -> None:
    """By a check of single runs, or because the datasets no longer have the same queries."""
    solver = AlsSolver(unit=unit, factors=1, iterations=3)
    assert failed(solver) == []
    plant(monkeypatch)
    found = failed(solver)
    assert check in found or "same queries" in found


def test_the_plan_does_not_depend_on_the_rating_pattern() -> None:
    for unit in (Unit.RATING, Unit.USER):
        solver = AlsSolver(unit=unit, factors=2, iterations=3)
        plans = [
            solver.plan(random_ratings(seed, users=15, items=10, density=density), BUDGET)
            for seed, density in ((1, 0.2), (2, 0.7))
        ]
        assert plans[0] == plans[1]


@pytest.fixture(scope="module")
def fit() -> Fit:
    ratings = random_ratings(1, users=60, items=30, density=0.4)
    return AlsSolver(unit=Unit.USER, factors=3, iterations=6).fit(ratings, BUDGET)


def test_folding_in_gives_the_profiles_of_training(fit: Fit) -> None:
    """For users with few or many ratings."""
    ratings = random_ratings(1, users=60, items=30, density=0.4)
    assert fit.model.users is None and fit.private_users is not None and fit.model.items is not None
    frame = ratings.to_frame()
    for row in (0, 7, 59):
        mine = frame.filter(pl.col("user_id") == ratings.user_ids[row])
        own = dict(zip(mine["item_id"].to_list(), mine["rating"].to_list(), strict=True))
        found = fit.model.fold_in(own)
        assert found.bias == pytest.approx(float(fit.private_users.biases[row]), abs=1e-4)
        assert np.allclose(found.factors, fit.private_users.factors[row], atol=1e-4)


def test_a_release_of_items_serves_users_who_fold_in(fit: Fit, tmp_path: Path) -> None:
    save(fit, tmp_path / "r")
    assert not (tmp_path / "r" / "users.parquet").exists()
    release = load_release(tmp_path / "r")
    assert release.model.prior == fit.model.prior and release.model.users is None
    recommender = Recommender(release)
    own: dict[int | str, float] = {100: 5.0, 101: 1.0, 102: 4.0}
    mine = recommender.fold_in(own)
    best = recommender.recommend_profile(mine.bias, mine.factors, 5, exclude=list(own))
    assert len(best) == 5 and not {each.item_id for each in best} & set(own)


def test_the_number_of_factors_depends_on_the_noise() -> None:
    """With much noise there are no factors; with little, there are some."""
    ratings = load("synthetic:10k")
    for unit in (Unit.RATING, Unit.USER):
        ranks = [
            AlsSolver(unit=unit)
            .fit(ratings, Budget.from_epsilon(epsilon, 1e-5))
            .model.item_profiles.factors.shape[1]
            for epsilon in (0.1, 1000)
        ]
        assert ranks[0] == 0 and ranks[1] > 0


@pytest.mark.parametrize("unit", [Unit.RATING, Unit.USER])
def test_training_without_any_rating_is_no_error(unit: Unit) -> None:
    """Whether there are users is private: the empty dataset is a neighbour too."""
    ratings = random_ratings(2)
    nothing = ratings.select(np.zeros(len(ratings), dtype=np.bool_))
    fit = AlsSolver(unit=unit, factors=1, iterations=2).fit(nothing, BUDGET)
    assert np.isfinite(fit.owner_model.item_profiles.factors).all()


@pytest.mark.parametrize(
    "solver",
    [
        AlsSolver(unit=Unit.USER, factors=128, iterations=200),
        AlsSolver(unit=Unit.VALUE, factors=64),
        GradientSolver(),
        BiasSolver(unit=Unit.RATING),
    ],
    ids=lambda solver: f"{solver.name}-{solver.unit}",
)
def test_a_budget_too_small_for_all_releases_is_refused_before_the_first(solver: Any) -> None:
    """By the plan and by the fit before its first step, at an ε that the sampler cannot cover."""
    ratings = random_ratings(2, users=4, items=300, density=0.1)
    budget = Budget.from_epsilon(1e-9, 1e-5)
    steps: list[int] = []
    with pytest.raises(InvalidParameter, match="epsilon"):
        solver.plan(ratings, budget)
    with pytest.raises(InvalidParameter, match="epsilon"):
        solver.fit(ratings, budget, Session(progress=lambda done, total: steps.append(done)))
    assert not steps


@pytest.mark.parametrize("unit", [Unit.RATING, Unit.USER])
def test_the_charge_for_the_sampler_is_fixed_in_advance(unit: Unit) -> None:
    """A run without factors is charged like a run with factors."""
    ratings = load("synthetic:10k")
    solver = AlsSolver(unit=unit)
    for epsilon in (0.1, 1000):
        budget = Budget.from_epsilon(epsilon, 1e-5)
        fit, plan = solver.fit(ratings, budget), solver.plan(ratings, budget)
        charges = [
            [event.sampler_charge() for event in gaussian_events(ledger)]
            for ledger in (Ledger(plan), fit.ledger)
        ]
        assert charges[0] == charges[1]
    assert fit.owner_model.item_profiles.factors.shape[1] > 0


@pytest.mark.slow
def test_many_factors_train_within_a_small_budget() -> None:
    fit = AlsSolver(unit=Unit.VALUE, factors=64).fit(
        random_ratings(2), Budget.from_epsilon(1e-4, 1e-5)
    )
    assert fit.ledger.status is Status.PROVEN


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", ["-1e30:1e30", "0:1e-30", "1e29:1e30"])
def test_no_rating_makes_the_profile_of_a_user_unsolvable(scale: str) -> None:
    """An error in solving for users would reveal something about their ratings."""
    low, high = (float(each) for each in scale.split(":"))
    frame = random_ratings(2).to_frame()
    ends = frame.with_columns(rating=pl.when(pl.col("rating") > 3).then(high).otherwise(low))
    ratings = load(ends, scale=scale)
    for seed in range(4):
        fit = AlsSolver(unit=Unit.USER, factors=2, iterations=3).fit(
            ratings, BUDGET, Session(seed=seed)
        )
        assert np.isfinite(fit.owner_model.item_profiles.biases).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "maxima"),
    [
        (Unit.RATING, {1.0: 0.9140, 5.0: 0.8700, 20.0: 0.8560}),
        (Unit.USER, {1.0: 0.9540, 5.0: 0.9050, 20.0: 0.8840}),
    ],
)
def test_errors_on_movielens_are_below_their_maxima(
    unit: Unit, maxima: dict[float, float], real_ratings: Callable[[str], Ratings]
) -> None:
    """One split each; margin of about four standard deviations of the error between splits."""
    train, test = random_split(real_ratings("ml-1m"), 0.1, 21)
    for epsilon, most in maxima.items():
        budget = Budget.from_epsilon(epsilon, 1e-5)
        fit = AlsSolver(unit=unit).fit(train, budget, Session(seed=21))
        assert rmse(fit, test) < most
        if epsilon > 1:
            bias = BiasSolver(unit=unit).fit(train, budget, Session(seed=21))
            assert rmse(fit, test) < rmse(bias, test)


@pytest.mark.slow
def test_factors_help_at_a_large_budget_and_never_hurt_much() -> None:
    train, test = random_split(load("synthetic:100k"), 0.1, 1)
    for unit in (Unit.RATING, Unit.USER):
        for epsilon in (1.0, 20.0):
            budget = Budget.from_epsilon(epsilon, 1e-5)
            errors = [
                rmse(replace(solver, unit=unit).fit(train, budget, Session(seed=1)), test)
                for solver in (AlsSolver(), BiasSolver())
            ]
            helps = unit is Unit.RATING and epsilon > 1
            assert errors[0] < errors[1] + (-0.03 if helps else 0.02)
