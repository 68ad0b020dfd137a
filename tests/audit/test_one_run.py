"""Audits with one training: canaries, coins and guesses, and attacks on a release."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from taciturn import _core
from taciturn.accounting import gaussian
from taciturn.accounting.budget import Budget
from taciturn.accounting.units import Unit
from taciturn.audit import bounds
from taciturn.audit.attack import attack, mu_between
from taciturn.audit.cases import matching
from taciturn.audit.one_run import (
    SUSPECTED,
    _rows,
    audit_one_run,
    best_guesses,
    choose_canaries,
    own_canaries,
    toss,
)
from taciturn.audit.transcript import play, watch
from taciturn.audit.verdict import Verdict
from taciturn.data import load
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.noise import NoiseSource
from taciturn.solvers.catalog import make_solver
from taciturn.solvers.contract import Session
from tests.audit.helpers import CONFIDENCE
from tests.queries.helpers import user_totals
from tests.solvers.helpers import BUDGET, random_ratings

SOLVERS: dict[str, dict[str, Any]] = {
    "als": {"unit": "value", "factors": 1, "iterations": 2},
    "gradient": {"factors": 2, "iterations": 4},
    "bias": {"unit": "value"},
    "input-perturbation": {"factors": 1, "iterations": 2},
}


def test_no_two_canaries_share_a_user_or_an_item() -> None:
    ratings = random_ratings(1, users=40, items=30)
    places = matching(ratings, 1000, seed=0)
    users, items = ratings.rows()[places], ratings.by_user.columns[places]
    assert len(set(users)) == len(set(items)) == places.size > 20
    assert matching(ratings, 5, seed=0).size == 5
    canaries = choose_canaries(ratings, 1000)
    coins = toss(canaries.places.size)
    dataset = canaries.dataset(coins)
    assert np.array_equal(dataset.values()[canaries.places] == 5, coins)
    rest = np.ones(len(ratings), dtype=np.bool_)
    rest[canaries.places] = False
    assert np.array_equal(dataset.values()[rest], ratings.values()[rest])


def test_coins_are_fair_and_fresh() -> None:
    coins = toss(10_001)
    assert coins.size == 10_001 and abs(coins.mean() - 0.5) < 0.03
    assert not np.array_equal(coins, toss(10_001))


@pytest.mark.parametrize("name", SOLVERS)
def test_sound_solvers_pass_an_audit_of_one_run(name: str) -> None:
    result = audit_one_run(
        make_solver(name, **SOLVERS[name]),
        BUDGET,
        own_canaries(300),
        confidence=CONFIDENCE,
    )
    assert result.verdict is Verdict.NO_EVIDENCE
    # The attack works: far more guesses are correct than by chance.
    assert result.correct > 0.7 * result.guesses
    facts = result.to_dict()
    assert 0 < facts["lower_bound"] < facts["claimed_epsilon"]
    assert facts["lower_bound"] <= facts["lower_bound_gaussian"]


@pytest.mark.parametrize("name", ["als", "bias"])
def test_under_unit_rating_canaries_are_present_or_absent(name: str) -> None:
    options = {"factors": 1, "iterations": 3} if name == "als" else {}
    solver = make_solver(name, unit="rating", **options)
    canaries = own_canaries(300, Unit.RATING)
    none, whole = (canaries.dataset(np.full(300, heads)) for heads in (False, True))
    assert len(whole) - len(none) == 300 and none.shape == whole.shape
    result = audit_one_run(solver, BUDGET, canaries, confidence=CONFIDENCE)
    assert result.verdict is Verdict.NO_EVIDENCE and result.correct > 0.7 * result.guesses
    found = attack(solver, BUDGET, canaries, shadows=1, confidence=CONFIDENCE)
    assert found.verdict is Verdict.NO_EVIDENCE and "under attack" in found.to_dict()["existence"]
    assert found.mu == pytest.approx(found.claim.mu)


def test_too_little_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = _core.Ziggurat
    monkeypatch.setattr(_core, "Ziggurat", lambda sigma: original(sigma / 4))
    result = audit_one_run(
        make_solver("bias", unit="value"),
        Budget.from_epsilon(5, 1e-5),
        own_canaries(1000),
    )
    assert result.verdict is Verdict.VIOLATED


def test_the_highest_and_lowest_scores_are_guessed() -> None:
    result = audit_one_run(
        make_solver("bias", unit="value"), BUDGET, own_canaries(60), guesses=10, confidence=0.9
    )
    scores = np.where(result.coins, 1.0, -1.0) * np.arange(60.0, 0.0, -1.0)
    assert replace(result, scores=scores).correct == 10
    assert replace(result, scores=-scores).correct == 0
    assert 2 <= best_guesses(60, 1.0, 0.95) <= 60


@pytest.mark.parametrize("name", SOLVERS)
def test_attack_rates_are_within_the_bounds_of_the_certificate(name: str) -> None:
    result = attack(
        make_solver(name, **SOLVERS[name]),
        BUDGET,
        own_canaries(400),
        shadows=1,
        confidence=CONFIDENCE,
    )
    assert result.verdict is Verdict.NO_EVIDENCE
    assert 0 < result.advantage < result.advantage_bound + 2 * result.advantage_error
    assert result.true_positive_rate is not None and result.true_positive_rate_error is not None
    assert (
        result.true_positive_rate
        < result.true_positive_rate_bound + 3 * result.true_positive_rate_error
    )
    assert "not protected" in result.to_dict()["existence"]


def test_an_attack_succeeds_without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        NoiseSource, "_integers", lambda self, table, *, count, **address: np.zeros(count, int)
    )
    budget = Budget.from_epsilon(2, 1e-5)
    targets = own_canaries(400)
    result = attack(make_solver("bias", unit="value"), budget, targets, shadows=1)
    assert result.verdict is Verdict.VIOLATED
    assert (
        result.advantage > 0.95
        and result.true_positive_rate is not None
        and result.true_positive_rate > 0.95
    )


@pytest.mark.parametrize("name", ["gradient", "bias", "input-perturbation"])
def test_close_values_are_harder_to_tell_apart(name: str) -> None:
    """Without clipping, μ between values is proportional to their distance."""
    fit = make_solver(name, **SOLVERS[name]).fit(random_ratings(1), BUDGET, Session())
    whole = mu_between(fit.ledger, fit.model.scale, 1.0, 5.0)
    assert whole == pytest.approx(BUDGET.mu, rel=1e-4)
    assert mu_between(fit.ledger, fit.model.scale, 2.0, 3.0) == pytest.approx(whole / 4, rel=1e-9)


def test_close_values_under_clipped_residuals_are_hardly_harder_to_tell_apart() -> None:
    """Within the clipping threshold, a residual moves by the whole change of its rating."""
    ratings = random_ratings(1)
    fit = make_solver("als", **SOLVERS["als"]).fit(ratings, BUDGET, Session())
    whole = mu_between(fit.ledger, fit.model.scale, 1.0, 5.0)
    assert whole == pytest.approx(BUDGET.mu, rel=1e-4)
    assert whole / 4 < mu_between(fit.ledger, fit.model.scale, 2.0, 3.0) < whole
    assert (
        gaussian.true_positive_rate(0.01, mu_between(fit.ledger, fit.model.scale, 2.0, 3.0)) > 0.01
    )


@pytest.mark.parametrize("values", [(2.99, 3.0), (3.02, 3.06), (1.0, 1.01), (2.0, 2.5)])
@pytest.mark.parametrize("name", ["gradient", "bias"])
def test_mu_between_values_includes_rounding(name: str, values: tuple[float, float]) -> None:
    """Rounding values to a grid may increase their distance."""
    ratings = load(random_ratings(1).to_frame(), scale="1:5")
    solver = make_solver(name, **SOLVERS[name])
    first, second = (ratings.replaced(np.array([3]), np.array([value])) for value in values)
    transcript = watch(solver, first, BUDGET)
    other = play(transcript, solver, second, BUDGET)
    shifts = [
        float(np.linalg.norm((one.sums - two.sums).astype(float))) / scale
        for one, two, scale in zip(
            transcript.tables, other.tables, transcript.noise_scales, strict=True
        )
    ]
    bound = mu_between(transcript.fit.ledger, ratings.scale, *values)
    assert np.linalg.norm(shifts) <= bound * (1 + 1e-9)


def test_too_few_targets_give_no_true_positive_rate() -> None:
    result = attack(make_solver("bias", unit="value"), BUDGET, own_canaries(40), shadows=1)
    assert result.true_positive_rate is None and result.to_dict()["true_positive_rate"] is None


@pytest.mark.parametrize(("epsilon", "count"), [(5, 40), (5, 60), (2, 20), (1, 60)])
def test_guesses_can_refute_the_claim(epsilon: float, count: int) -> None:
    """The chosen number of guesses can refute the claim, if any number can."""
    mu = Budget.from_epsilon(epsilon, 1e-5).mu
    guesses = best_guesses(count, SUSPECTED * mu, 0.95, mu)
    assert bounds.one_run_mu(count, guesses, guesses, confidence=0.95) > mu


def test_invalid_arguments_are_refused() -> None:
    ratings = random_ratings(2)
    with pytest.raises(InvalidParameter, match="two-worlds"):
        choose_canaries(ratings, 10, Unit.USER)
    with pytest.raises(InvalidParameter, match="leave out --values"):
        choose_canaries(ratings, 10, Unit.RATING, low=1, high=5)
    with pytest.raises(InvalidParameter, match="smaller first"):
        choose_canaries(ratings, 10, low=5, high=1)
    with pytest.raises(InvalidParameter, match="canaries"):
        choose_canaries(ratings, 0)
    with pytest.raises(InvalidParameter, match="found only"):
        choose_canaries(random_ratings(2, users=4, items=4), 100)
    targets = choose_canaries(ratings, 20)
    with pytest.raises(InvalidParameter, match="guesses"):
        audit_one_run(make_solver("bias", unit="value"), BUDGET, targets, guesses=21)
    with pytest.raises(InvalidParameter, match="shadows"):
        attack(make_solver("bias", unit="value"), BUDGET, targets, shadows=0)
    with pytest.raises(InvalidParameter, match="on the scale"):
        attack(
            make_solver("bias", unit="value"), BUDGET, choose_canaries(ratings, 20, low=1.5, high=3)
        )


def test_contributions_of_whole_users_have_no_row_of_a_rating() -> None:
    """Otherwise every score would be zero, and the audit would find nothing whatever happened."""
    query = user_totals(6, unit=Unit.RATING).queries[0]
    with pytest.raises(InvalidParameter, match="two-worlds"):
        _rows(query, choose_canaries(random_ratings(1), 100, Unit.RATING))
