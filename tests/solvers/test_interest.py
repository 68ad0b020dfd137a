"""Interest beside ratings: what is learnt, what is charged, and what a release may hold."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.events import PatternRelease
from taciturn.accounting.ledger import Ledger
from taciturn.accounting.units import Unit
from taciturn.audit.cases import Case, Pair
from taciturn.audit.checks import check_runs
from taciturn.data import load
from taciturn.data.pattern import Axis
from taciturn.data.ratings import Ratings
from taciturn.data.splits import random_split
from taciturn.errors import BudgetExceeded, InvalidDocument, InvalidParameter
from taciturn.evaluate.matching import match
from taciturn.evaluate.ranking import rank
from taciturn.mechanisms.grid import ValueGrid
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.model.interest import RATING_WEIGHT_MAX
from taciturn.queries import pattern_sums
from taciturn.queries.executor import LocalExecutor
from taciturn.queries.values import ValueView
from taciturn.recommend.serve import Recommender
from taciturn.release.facts import NUMBER_MAX
from taciturn.release.read import load_release
from taciturn.release.verify import verify_release
from taciturn.release.write import UsersOut, write_release
from taciturn.solvers.als.rating import RatingAlgorithm
from taciturn.solvers.als.size import interest_share
from taciturn.solvers.als.solver import AlsSolver
from taciturn.solvers.catalog import check_solver, make_solver
from taciturn.solvers.contract import Algorithm, Fit, PublicFacts, QueryStep, Session
from taciturn.solvers.entry import PATTERN_INTEREST
from taciturn.solvers.interest import rating
from taciturn.solvers.interest.algorithm import WithInterest
from taciturn.solvers.interest.user import UserInterest
from taciturn.solvers.loop import Training
from tests.narrow import gaussian_events
from tests.solvers.helpers import BUDGET

Patch = pytest.MonkeyPatch

WAYS: list[dict[str, Any]] = [
    {"unit": "value"},
    {"unit": "value", "serve": "fold-in"},
    {"unit": "rating"},
    {"unit": "rating", "serve": "fold-in"},
    {"unit": "user"},
]


def two_tastes(users: int = 600, items: int = 80, seed: int = 0) -> Ratings:
    """Even users turn to even items and odd users to odd ones, mostly; ratings are random.

    All items are equally popular, so that only personal interest tells what a user turns to.
    """
    random = np.random.default_rng(seed)
    same = np.equal.outer(np.arange(users) % 2, np.arange(items) % 2)
    rated = random.random((users, items)) < np.where(same, 0.5, 0.05)
    rows, columns = rated.nonzero()
    values = random.integers(1, 6, rows.size).astype(float)
    frame = pl.DataFrame({"user_id": rows, "item_id": columns, "rating": values})
    return load(frame, scale="1:5:1")


TASTES = two_tastes()


def fitted(ratings: Ratings = TASTES, epsilon: float = 20.0, seed: int = 1, **options: Any) -> Fit:
    session = Session(seed=3, noise=InsecureTestNoise(seed))
    return AlsSolver(**options).fit(ratings, Budget.from_epsilon(epsilon, 1e-5), session)


def own_side(fit: Fit) -> float:
    """Fraction of the first five items of all users that are of the user's own kind."""
    model = fit.owner_model
    vectors = model.item_profiles.interests
    assert vectors is not None and model.user_profiles.interests is not None
    scores = model.user_profiles.interests @ vectors.T
    best = np.argsort(-scores, axis=1)[:, :5]
    users = model.user_profiles.ids.to_numpy()[:, None]
    return float((model.item_profiles.ids.to_numpy()[best] % 2 == users % 2).mean())


@pytest.mark.parametrize("way", WAYS)
def test_interest_finds_two_tastes_that_ratings_do_not_show(way: dict[str, Any]) -> None:
    assert own_side(fitted(**way)) > 0.9


@pytest.mark.parametrize("way", WAYS)
def test_interest_is_left_out_if_it_is_not_wanted(way: dict[str, Any]) -> None:
    fit = fitted(**way, interest=False)
    assert fit.model.interest is None
    assert not any("interest" in event.purpose for event in fit.ledger.events)


def test_no_pattern_features_imply_no_interest() -> None:
    assert fitted(unit="value", pattern_features=False).model.interest is None
    with pytest.raises(InvalidParameter, match="interest is a function of the rating pattern"):
        AlsSolver(unit="value", pattern_features=False, interest=True)
    # Under units that protect the pattern, interest has noise and stays.
    fit = fitted(unit="rating", pattern_features=False)
    assert fit.model.interest is not None
    check_solver("als", fit.settings, fit.ledger)


def test_interest_under_value_costs_nothing_and_is_in_the_certificate() -> None:
    fit, alone = fitted(unit="value"), fitted(unit="value", interest=False)
    assert list(fit.ledger.events[:-1]) == list(alone.ledger.events)
    assert fit.ledger.events[-1] == PatternRelease(purpose=PATTERN_INTEREST, unit=Unit.VALUE)
    certificate = Certificate.from_ledger(fit.ledger, 1e-5)
    assert any(PATTERN_INTEREST in line for line in certificate.not_protected)


@pytest.mark.parametrize("unit", [Unit.RATING, Unit.USER])
def test_interest_and_ratings_together_spend_the_budget_and_no_more(unit: Unit) -> None:
    budget = Budget.from_epsilon(20, 1e-5)
    fit = AlsSolver(unit=unit).fit(TASTES, budget, Session(noise=InsecureTestNoise(1)))
    certificate = Certificate.from_ledger(fit.ledger, 1e-5)
    assert certificate.epsilon == pytest.approx(20, rel=1e-6)
    assert certificate.epsilon is not None and certificate.epsilon <= 20
    spent = sum(event.mu**2 for event in gaussian_events(fit.ledger) if "interest" in event.purpose)
    assert spent / budget.mu**2 == pytest.approx(interest_share(unit, budget), rel=1e-3)


@pytest.mark.parametrize("unit", ["rating", "user"])
def test_where_noise_leaves_no_room_interest_is_popularity_alone(unit: str) -> None:
    few = two_tastes(users=40, items=30)
    model = fitted(few, epsilon=0.5, unit=unit).model
    assert model.interest_count == 1
    assert fitted(unit=unit).model.interest_count > 1


def test_without_factors_every_table_by_item_counts_ratings() -> None:
    """Under `rating` nothing moves: tables by user cost groups of ratings more than by item."""
    few = two_tastes(users=40, items=30)
    solver, budget = AlsSolver(unit="rating"), Budget.from_epsilon(0.5, 1e-5)
    algorithm = solver.algorithm(PublicFacts.of(few, Unit.RATING), budget)
    training = Training(algorithm, LocalExecutor(few), Session(noise=InsecureTestNoise(1)))
    noise = [float(np.mean(1 / state.interest.popularity.precision)) for state in states(training)]
    # Counts, then four tables by item with three by user between them.
    assert noise[0] > noise[1] == noise[2] > noise[3] == noise[4] > noise[5] == noise[6] > noise[7]


def states(training: Training[Any]) -> Iterator[Any]:
    """States after the first eight steps."""
    for finished in islice(training.steps(), 8):
        yield finished.after


@pytest.mark.parametrize("epsilon", [0.3, 20.0])
@pytest.mark.parametrize("way", [{"unit": "rating"}, {"unit": "user"}])
def test_groups_of_ratings_cost_what_was_planned(way: dict[str, Any], epsilon: float) -> None:
    few = two_tastes(users=40, items=30)
    solver, budget = AlsSolver(**way), Budget.from_epsilon(epsilon, 1e-5)
    planned, recorded = (
        Certificate.from_ledger(Ledger(events), 1e-5)
        for events in (solver.plan(few, budget), solver.fit(few, budget).ledger.events)
    )
    assert len(planned.group) == len(recorded.group) > 1
    for one, other in zip(planned.group, recorded.group, strict=True):
        assert one.mu == pytest.approx(other.mu, rel=1e-9)


@pytest.mark.parametrize("way", WAYS)
def test_folding_in_gives_the_interest_of_training(way: dict[str, Any]) -> None:
    fit = fitted(**way)
    users = fit.private_users
    if users is None:
        pytest.skip("users are published")
    frame = TASTES.to_frame()
    for row in (0, 7, 99):
        mine = frame.filter(pl.col("user_id") == users.ids[row])
        own = dict(zip(mine["item_id"].to_list(), mine["rating"].to_list(), strict=True))
        found = fit.model.fold_in(own).interest
        assert users.interests is not None and found is not None
        assert np.allclose(found, users.interests[row], atol=1e-3)


@pytest.mark.parametrize(
    ("rank", "reliability", "sign"), [(0, 0.001, 1), (0, 0.2, 0), (0, 0.9, -1), (2, 0.9, 0)]
)
def test_shares_move_to_popularity_that_is_noise_and_from_popularity_that_is_known(
    rank: int, reliability: float, sign: int
) -> None:
    facts = PublicFacts.of(TASTES, Unit.USER)
    view = ValueView(grid=ValueGrid.for_scale(1, 5), axis=Axis.USERS)
    budget, share = Budget.from_epsilon(1, 1e-5), 0.04
    for may_move in (True, False):
        part = UserInterest(facts, budget, share, view, may_move=may_move)
        state = part.initial_state(Session(seed=1).seeds)
        state = replace(state, rank=float(rank), first_reliability=reliability)
        moved = part.moved(state)
        assert np.sign(moved) == (sign if may_move else 0)
        spent = sum(sum(part.shares(step, state)) for step in range(len(part.steps)))
        assert spent == pytest.approx(share + moved)
        assert spent > 0


# Planted bugs.


def neighbours(user: int = 4) -> Pair:
    """Ratings, and the same without one rating of an item."""
    ratings = two_tastes(users=30, items=12, seed=3)
    place = int(np.flatnonzero(ratings.rows() == user)[0])
    rest = ratings.select(np.arange(len(ratings)) != place)
    item = int(ratings.by_user.columns[place])
    return Pair(datasets=(ratings, rest), user=user, item=item, words="one rating")


def failed(solver: AlsSolver, pair: Pair) -> list[str]:
    case = Case(solver=solver, budget=BUDGET, pair=pair)
    return [finding.name for finding in check_runs(case)[0] if not finding.passed]


@pytest.mark.parametrize("serve", ["profiles", "fold-in"])
def test_an_audit_finds_nothing_wrong_with_interest(serve: str) -> None:
    assert failed(AlsSolver(unit="rating", iterations=2, serve=serve), neighbours()) == []


def test_an_audit_catches_features_from_exact_counts(monkeypatch: Patch) -> None:
    """Planted bug: the sign of a user's feature depends on the exact number of their ratings."""
    original = pattern_sums.presence_sums

    def sums(pattern: Any, features: Any, threads: int | None = None) -> Any:
        counts = np.bincount(pattern.columns, minlength=pattern.width)
        return original(pattern, features * np.where(counts % 2, 1, -1)[:, None], threads)

    monkeypatch.setattr(pattern_sums, "presence_sums", sums)
    solver = AlsSolver(unit="rating", iterations=2)
    assert "differences within bounds" in failed(solver, neighbours())


def test_interest_that_is_not_charged_is_refused_by_the_gate(monkeypatch: Patch) -> None:
    """Planted bug: ratings keep the whole budget, and interest has its share on top."""
    original = WithInterest.__init__

    def begin(self: WithInterest, *args: Any, **options: Any) -> None:
        original(self, *args, **options)
        scaled = [
            replace(step, shares=tuple(share / self._left for share in step.shares))
            if isinstance(step, QueryStep) and not is_interest
            else step
            for (is_interest, _), step in zip(self._order, self.schedule, strict=True)
        ]
        self.schedule = tuple(scaled)

    monkeypatch.setattr(WithInterest, "__init__", begin)
    with pytest.raises(BudgetExceeded):
        fitted(unit="rating")


def test_shares_that_move_beyond_the_total_are_refused(monkeypatch: Patch) -> None:
    """Planted bug: what moves to popularity stays with the ratings too."""
    few = two_tastes(users=40, items=30)
    assert fitted(few, epsilon=0.3, unit="user").model.interest_count == 1
    scaled = Algorithm.shares
    monkeypatch.setattr(
        WithInterest,
        "shares",
        lambda self, step, state: (
            self._part.shares(self._order[step][1], state.interest)
            if self._order[step][0]
            else scaled(self, step, state)
        ),
    )
    with pytest.raises(BudgetExceeded):
        fitted(few, epsilon=0.3, unit="user")


def test_shares_that_move_to_tables_of_another_kind_are_refused(monkeypatch: Patch) -> None:
    """Planted bug: the total stays, but the guarantee for groups would depend on the ratings."""
    original = rating.RatingInterest.shares

    def shares(self: Any, step: int, state: Any) -> tuple[float, ...]:
        (share,) = original(self, step, state)
        is_by_item = step % 2 == 0
        return (share * (1.3 if is_by_item else 1 - 0.3 * 4 / 3),)

    monkeypatch.setattr(rating.RatingInterest, "shares", shares)
    with pytest.raises(BudgetExceeded, match="planned for tables of its kind"):
        fitted(unit="rating")


# Ledgers and releases.


@pytest.mark.parametrize("way", WAYS)
def test_a_release_keeps_interest_and_lists(way: dict[str, Any], tmp_path: Path) -> None:
    fit = fitted(**way)
    # Test noise makes no guarantee; tables and the shape of the ledger are checked all the same.
    users_out = UsersOut.NONE if fit.model.users is None else UsersOut.IDS
    certificate = Certificate.from_ledger(fit.ledger, 1e-5)
    write_release(fit, certificate, tmp_path / "release", users_out=users_out)
    assert verify_release(tmp_path / "release", allowed={"void", "none"}).passed
    model = load_release(tmp_path / "release").model
    assert model.interest == fit.model.interest
    assert np.array_equal(
        np.asarray(model.item_profiles.interests), np.asarray(fit.model.item_profiles.interests)
    )


@pytest.mark.parametrize("unit", [Unit.RATING, Unit.USER])
def test_a_ledger_without_the_tables_of_interest_is_refused(unit: Unit) -> None:
    fit = AlsSolver(unit=unit, iterations=2).fit(TASTES, BUDGET)
    check_solver("als", fit.settings, fit.ledger)
    rest = [event for event in fit.ledger.events if "interest" not in event.purpose]
    with pytest.raises(InvalidDocument):
        check_solver("als", fit.settings, Ledger(rest))
    check_solver("als", {**fit.settings, "interest": False}, Ledger(rest))
    earlier = {name: value for name, value in fit.settings.items() if name != "interest"}
    check_solver("als", earlier, Ledger(rest))  # as earlier versions wrote them


def test_the_first_step_is_that_of_the_ratings() -> None:
    facts = PublicFacts.of(TASTES, Unit.RATING)
    algorithm = AlsSolver(unit="rating").algorithm(facts, BUDGET)
    alone = AlsSolver(unit="rating", interest=False).algorithm(facts, BUDGET)
    assert isinstance(algorithm, WithInterest) and isinstance(alone, RatingAlgorithm)
    purposes = [step.queries[0].purpose for step in algorithm.schedule]  # type: ignore[union-attr]
    assert purposes[0] == alone.schedule[0].queries[0].purpose  # type: ignore[union-attr]
    assert "interest" in purposes[1] and "interest" not in purposes[-1]


@pytest.mark.parametrize("way", WAYS)
def test_lists_by_interest_are_better_than_lists_by_rating(way: dict[str, Any]) -> None:
    train, test = random_split(TASTES, 0.2, 1)
    found = [
        rank(match(fitted(train, **way, interest=each), test), train, test, None).ndcg.mean()
        for each in (None, False)
    ]
    assert found[0] > 1.4 * found[1]


def test_options_name_interest_as_the_catalog_does() -> None:
    assert make_solver("als", unit="rating", interest=False).settings["interest"] is False
    with pytest.raises(InvalidParameter, match="interest must be true or false"):
        AlsSolver(interest=1)  # type: ignore[arg-type]


def test_predicted_ratings_weigh_more_where_popularity_is_noise() -> None:
    few = two_tastes(users=40, items=30)
    weights = []
    for epsilon in (0.3, 500.0):
        interest = fitted(few, epsilon=epsilon, unit="user").model.interest
        assert interest is not None
        weights.append(interest.rating_weight)
    assert weights[0] > 2 * weights[1] > 1.5


@pytest.mark.filterwarnings("ignore::taciturn.errors.NotPersonalised")
@pytest.mark.parametrize("width", [1e-14, 1e-37])
@pytest.mark.parametrize("way", WAYS)
def test_releases_on_very_narrow_scales_are_read_and_served(
    way: dict[str, Any], width: float, tmp_path: Path
) -> None:
    frame = two_tastes(users=60, items=20).to_frame()
    frame = frame.with_columns(rating=(pl.col("rating") - 1) / 4 * width)
    fit = fitted(load(frame, scale=f"0:{width}"), epsilon=0.2, **way)
    assert RATING_WEIGHT_MAX == NUMBER_MAX
    users = UsersOut.NONE if fit.model.users is None else UsersOut.IDS
    certificate = Certificate.from_ledger(fit.ledger, 1e-5)
    write_release(fit, certificate, tmp_path / "r", users_out=users)
    recommender = Recommender(load_release(tmp_path / "r"))
    mine = recommender.fold_in({0: width, 1: 0.0})
    best = recommender.recommend_profile(mine.bias, mine.factors, 5, interest=mine.interest)
    assert len(best) == 5 and all(np.isfinite(each.score) for each in best)
