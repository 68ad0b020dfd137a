"""Serving by folding in under units `value` and `rating`."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

from taciturn._internal.ridge import solve_rows
from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.events import FoldInServing
from taciturn.accounting.ledger import Ledger
from taciturn.accounting.units import Unit
from taciturn.audit.cases import Case, Pair, worst_pair
from taciturn.audit.checks import check_runs
from taciturn.data import load
from taciturn.data.ratings import Ratings
from taciturn.data.splits import random_split
from taciturn.errors import CheckFailed, InvalidDocument, InvalidParameter
from taciturn.evaluate.metrics import rmse
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.queries.executor import LocalExecutor
from taciturn.recommend.serve import Recommender
from taciturn.release.read import load_release
from taciturn.release.write import checksums
from taciturn.solvers.als import fold_in
from taciturn.solvers.als.fold_in import UserPrior, with_prior
from taciturn.solvers.als.rating import RatingAlgorithm
from taciturn.solvers.als.solver import AlsSolver
from taciturn.solvers.catalog import check_solver
from taciturn.solvers.contract import Fit, PublicFacts, Seeds, Session
from taciturn.solvers.descent import in_rating_units
from taciturn.training.train import save
from tests.solvers.contract import ProvenContract, ValueContract
from tests.solvers.helpers import BUDGET, random_ratings

Patch = pytest.MonkeyPatch

UNITS = [Unit.VALUE, Unit.RATING]


class TestFoldInUnderRating(ProvenContract):
    name = "als"
    small: ClassVar = {"factors": 2, "iterations": 4, "serve": "fold-in"}
    unit = Unit.RATING
    fixed_sensitivities = False
    further_proofs = ("interest.md#claim",)


class TestFoldInUnderValue(ValueContract):
    name = "als"
    small: ClassVar = {"factors": 2, "iterations": 2, "serve": "fold-in"}
    fixed_sensitivities = False


def served(unit: Unit, **options: Any) -> AlsSolver:
    return AlsSolver(unit=unit, serve="fold-in", **options)


@pytest.fixture(scope="module", params=UNITS)
def fit(request: Any) -> Fit:
    ratings = random_ratings(1, users=60, items=30, density=0.4)
    return served(request.param, factors=3, iterations=4).fit(ratings, BUDGET)


def test_folding_in_gives_the_profiles_of_training(fit: Fit) -> None:
    ratings = random_ratings(1, users=60, items=30, density=0.4)
    assert fit.model.users is None and fit.private_users is not None
    frame = ratings.to_frame()
    for row in (0, 7, 59):
        mine = frame.filter(pl.col("user_id") == ratings.user_ids[row])
        own = dict(zip(mine["item_id"].to_list(), mine["rating"].to_list(), strict=True))
        found = fit.model.fold_in(own)
        assert found.bias == pytest.approx(float(fit.private_users.biases[row]), abs=1e-4)
        assert np.allclose(found.factors, fit.private_users.factors[row], atol=1e-4)


def test_a_release_serves_users_who_fold_in(fit: Fit, tmp_path: Path) -> None:
    save(fit, tmp_path / "r")
    assert not (tmp_path / "r" / "users.parquet").exists()
    release = load_release(tmp_path / "r")
    assert release.model.prior == fit.model.prior and release.model.users is None
    recommender = Recommender(release)
    own: dict[int | str, float] = {100: 5.0, 101: 1.0, 102: 4.0}
    mine = recommender.fold_in(own)
    best = recommender.recommend_profile(mine.bias, mine.factors, 5, exclude=list(own))
    assert len(best) == 5 and not {each.item_id for each in best} & set(own)
    card = (tmp_path / "r" / "card.md").read_text()
    assert "| served | by folding in" in card and "the joint view of everybody but j" in card


def test_the_certificate_states_joint_privacy(fit: Fit) -> None:
    certificate = Certificate.from_ledger(fit.ledger, 1e-5)
    assert certificate.serving is not None
    assert "the joint view of everybody but j" in certificate.serving
    assert certificate.serving in certificate.to_text()
    assert certificate.to_dict()["statement"]["serving"] == certificate.serving
    assert any("shown to that user only" in each for each in certificate.not_protected)
    assert Certificate.from_dict(json.loads(json.dumps(certificate.to_dict()))) == certificate
    shorter = Ledger([event for event in fit.ledger.events if not isinstance(event, FoldInServing)])
    without = Certificate.from_ledger(shorter, 1e-5)
    assert without.serving is None and "serving" not in without.to_dict()["statement"]
    assert without.mu == certificate.mu


@pytest.mark.parametrize("unit", UNITS)
def test_both_axes_are_queried_and_charged_as_for_published_profiles(unit: Unit) -> None:
    ratings = random_ratings(3)
    plans = [
        AlsSolver(unit=unit, factors=2, iterations=3, serve=serve).plan(ratings, BUDGET)
        for serve in ("profiles", "fold-in")
    ]
    assert plans[0] == plans[1][:-1]
    assert isinstance(plans[1][-1], FoldInServing)


@pytest.mark.parametrize("unit", UNITS)
def test_only_the_output_differs_from_published_profiles(unit: Unit) -> None:
    """The same noise gives the same events and, with a user's own coordinates, the same items."""
    ratings = random_ratings(3)
    published, folded = (
        AlsSolver(unit=unit, factors=2, iterations=3, serve=serve).fit(
            ratings, BUDGET, Session(noise=InsecureTestNoise(7))
        )
        for serve in ("profiles", "fold-in")
    )
    assert published.ledger.events == folded.ledger.events[:-1]
    one, two = (np.linalg.pinv(each.model.item_profiles.factors) for each in (published, folded))
    factors = [each.model.item_profiles.factors for each in (published, folded)]
    assert np.allclose(factors[0] @ (one @ factors[1]), factors[1], atol=1e-3)
    assert np.allclose(factors[1] @ (two @ factors[0]), factors[0], atol=1e-3)


@pytest.mark.parametrize("unit", UNITS)
def test_exact_profiles_do_not_reach_the_model(unit: Unit, monkeypatch: Patch) -> None:
    ratings = random_ratings(3)

    def released() -> Fit:
        session = Session(noise=InsecureTestNoise(7))
        return served(unit, factors=2, iterations=3).fit(ratings, BUDGET, session)

    before, original = released(), solve_rows
    monkeypatch.setattr(fold_in, "solve_rows", lambda *a, **options: 7 + original(*a, **options))
    after = released()
    assert before.private_users is not None and after.private_users is not None
    assert not np.allclose(before.private_users.biases, after.private_users.biases)
    assert np.array_equal(before.model.item_profiles.factors, after.model.item_profiles.factors)
    assert before.model.prior == after.model.prior


def test_coordinates_of_the_prior_keep_predictions() -> None:
    """A user m + A z predicts in the old coordinates what z predicts in the new ones."""
    ratings, random = random_ratings(5), np.random.default_rng(2)
    solver = AlsSolver(unit=Unit.RATING, factors=3, iterations=2, interest=False)
    model = solver.fit(ratings, BUDGET).model
    root = random.normal(size=(3, 3))
    prior = UserPrior(
        residual_variance=0.5,
        mean=np.array([0.2, 0.3, -0.4, 0.1]),
        bias_variance=0.3,
        covariance=root @ root.T,
    )
    found = with_prior(model, prior, np.zeros((len(model.item_profiles), 0)))
    assert found.prior is not None and found.prior.variances == (0.3, 1.0, 1.0, 1.0)
    # Covariances of the scores of all items over users agree.
    one, two = (each.item_profiles.factors.astype(float) for each in (model, found))
    assert np.allclose(one @ prior.covariance @ one.T, two @ two.T, atol=1e-4)
    middle = model.with_user(0.2, [0.3, -0.4, 0.1]), found.with_user(0.0, [0.0, 0.0, 0.0])
    rows = np.arange(len(model.item_profiles))
    scores = [each.score_rows(np.zeros_like(rows), rows) for each in middle]
    assert np.allclose(scores[0], scores[1], atol=1e-4)


@pytest.mark.parametrize(("unit", "epsilon"), [(Unit.RATING, 5), (Unit.VALUE, 1)])
def test_folding_in_predicts_better_than_published_profiles(unit: Unit, epsilon: float) -> None:
    """With the same noise."""
    train, test = random_split(load("synthetic:100k"), 0.1, 1)
    budget = Budget.from_epsilon(epsilon, 1e-5)
    errors = [
        rmse(
            AlsSolver(unit=unit, serve=serve).fit(
                train, budget, Session(seed=1, noise=InsecureTestNoise(1))
            ),
            test,
        )
        for serve in ("profiles", "fold-in")
    ]
    assert errors[1] < errors[0] - 0.002


@pytest.mark.parametrize("unit", UNITS)
def test_little_data_train_too(unit: Unit) -> None:
    """Also where `als` trains biases alone, and where no user has a rating."""
    for epsilon in (0.01, 20.0):
        budget = Budget.from_epsilon(epsilon, 1e-5)
        fit = served(unit).fit(random_ratings(2), budget)
        assert np.isfinite(fit.owner_model.user_profiles.biases).all()
    if unit is Unit.RATING:
        ratings = random_ratings(2)
        nothing = ratings.select(np.zeros(len(ratings), dtype=np.bool_))
        fit = served(unit, factors=1, iterations=2).fit(nothing, BUDGET)
        assert np.isfinite(fit.owner_model.item_profiles.factors).all()
        assert np.array_equal(fit.owner_model.user_profiles.biases, np.zeros(30))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": "user", "serve": "profiles"}, "no user profile can be released"),
        ({"serve": "both"}, "serve must be one of profiles, fold-in"),
        ({"serve": 1}, "serve"),
    ],
)
def test_a_choice_that_cannot_be_served_is_refused(options: Any, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        AlsSolver(**options)


def test_a_scale_too_wide_for_variances_is_refused() -> None:
    frame = random_ratings(2).to_frame().with_columns(pl.col("rating") * 1e9)
    with pytest.raises(InvalidParameter, match="no wider than 1,000,000"):
        served(Unit.RATING).fit(load(frame, scale="0:1e10"), BUDGET)


def test_settings_and_ledger_agree_on_how_users_are_served(fit: Fit) -> None:
    check_solver(fit.solver, fit.settings, fit.ledger)
    for serve in ("profiles", None):
        with pytest.raises(InvalidDocument, match="differ in how users are served"):
            check_solver(fit.solver, {**fit.settings, "serve": serve}, fit.ledger)
    shorter = Ledger(fit.ledger.events[:-1])
    with pytest.raises(InvalidDocument, match="differ in how users are served"):
        check_solver(fit.solver, fit.settings, shorter)
    settings = {name: value for name, value in fit.settings.items() if name != "serve"}
    check_solver(fit.solver, settings, shorter)  # as earlier versions wrote them


def test_a_release_without_its_prior_is_refused(fit: Fit, tmp_path: Path) -> None:
    save(fit, tmp_path / "r")
    path = tmp_path / "r" / "certificate.json"
    document = json.loads(path.read_text())
    del document["facts"]["prior"]
    path.write_text(json.dumps(document))
    (tmp_path / "r" / "SHA256SUMS").write_bytes(checksums(tmp_path / "r"))
    with pytest.raises(CheckFailed, match="must have a prior and no users"):
        load_release(tmp_path / "r")


# A planted bug: exact users in training.


def exact_users(patch: Patch) -> None:
    """User rows in training are solved exactly from the ratings, not released with noise."""
    last: list[Ratings] = []
    init = LocalExecutor.__init__

    def begin(self: LocalExecutor, ratings: Ratings, threads: int | None = None) -> None:
        init(self, ratings, threads)
        last[:] = [ratings]

    def features(self: RatingAlgorithm, state: Any) -> Any:
        (ratings,), unit, steps = last, state.rating_unit, self._steps_at(state)
        width = state.items.shape[1]
        rows = solve_rows(
            ratings.by_user.starts,
            ratings.by_user.columns,
            (ratings.values() - self._middle - state.mean).astype(np.float32),
            in_rating_units(state.items, unit),
            by_count=np.zeros(width),
            fixed=np.full(width, 0.1),
        )
        users = rows / in_rating_units(np.ones((1, width)), unit)
        return (
            steps.pass_features(users, unit, unit, state.mean),
            steps.pass_features(state.items, unit),
        )

    patch.setattr(LocalExecutor, "__init__", begin)
    patch.setattr(RatingAlgorithm, "_features", features)


def change_in_bounds(ratings: Ratings, place: int, items: Any) -> float:
    """Change of the rows of items, in multiples of the bound, if one rating is removed."""
    solver = AlsSolver(unit=Unit.RATING, factors=items.shape[1] - 1, iterations=2, interest=False)
    algorithm = solver.algorithm(PublicFacts.of(ratings, Unit.RATING), BUDGET)
    state = replace(algorithm.initial_state(Seeds()), items=items)
    tables = []
    for keep in (np.ones(len(ratings), dtype=np.bool_), np.arange(len(ratings)) != place):
        executor = LocalExecutor(ratings.select(keep))
        spec = algorithm.query(1, state)
        tables.append(executor.answer(spec).tables[0][ratings.shape[0] :])
    change = np.linalg.norm((tables[0] - tables[1]).astype(float))
    return float(change / spec.queries[0].sensitivity)


def one_direction(count: int) -> tuple[Ratings, Any]:
    """A user who rates `count` items with x = 0 and one more with x = 1, and these items."""
    numbers = np.arange(count + 1)
    values = np.where(numbers % 2 == 0, 5.0, 1.0)
    values[-1] = 5.0
    frame = pl.DataFrame({"user_id": np.zeros_like(numbers), "item_id": numbers, "rating": values})
    items = np.zeros((count + 1, 2))
    items[-1, 1] = 1.0
    return load(frame, scale="1:5:1"), items


def test_exact_users_in_training_move_the_item_table_far_beyond_its_bound(
    monkeypatch: Patch,
) -> None:
    """With 1,000 ratings along x = 0, one rating along x = 1 turns all their contributions."""
    ratings, items = one_direction(1000)
    assert change_in_bounds(ratings, 1000, items) <= 1
    exact_users(monkeypatch)
    assert change_in_bounds(ratings, 1000, items) > 20


@pytest.mark.parametrize("seed", range(8))
def test_noised_users_keep_the_bound_and_exact_users_exceed_it(
    seed: int, monkeypatch: Patch
) -> None:
    """For random ratings, items and removed ratings."""
    ratings, random = random_ratings(seed, users=12, items=40), np.random.default_rng(seed)
    items = random.normal(size=(40, 3))
    places = random.choice(len(ratings), size=20, replace=False).tolist()
    assert max(change_in_bounds(ratings, place, items) for place in places) <= 1
    exact_users(monkeypatch)
    assert max(change_in_bounds(ratings, place, items) for place in places) > 1


def failed(solver: AlsSolver, pair: Pair | None = None) -> list[str]:
    case = Case(solver=solver, budget=BUDGET, pair=pair or worst_pair(solver))
    return [finding.name for finding in check_runs(case)[0] if not finding.passed]


@pytest.mark.parametrize("unit", UNITS)
def test_an_audit_finds_nothing_outside_the_gate(unit: Unit) -> None:
    """Items, prior and mean are functions of the transcript."""
    assert failed(served(unit, factors=1, iterations=2)) == []


def test_an_audit_catches_exact_users_in_training(monkeypatch: Patch) -> None:
    ratings, _ = one_direction(400)
    keep = np.arange(len(ratings)) < 400
    pair = Pair(datasets=(ratings, ratings.select(keep)), user=0, item=400, words="one rating")
    solver = served(Unit.RATING, factors=1, iterations=3)
    assert failed(solver, pair) == []
    exact_users(monkeypatch)
    assert "differences within bounds" in failed(solver, pair)
