"""Data too small for factors: `als` trains biases, and says from which size on it would not."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.events import GaussianRelease
from taciturn.accounting.ledger import Ledger
from taciturn.accounting.units import Unit
from taciturn.data.ratings import Ratings
from taciturn.errors import InvalidDocument
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.model.profiles import Profiles
from taciturn.release.verify import verify_release
from taciturn.release.write import write_release
from taciturn.solvers.als.size import size_for_factors
from taciturn.solvers.catalog import check_solver, make_solver
from taciturn.solvers.contract import Fit, PublicFacts, Session
from taciturn.solvers.descent import NoisyCount, shrunk_counts
from tests.solvers.helpers import random_ratings

ONE = Budget.from_epsilon(1, 1e-5)
SMALL = random_ratings(1)


def fitted(name: str, ratings: Ratings, unit: str, budget: Budget = ONE, **options: Any) -> Fit:
    session = Session(noise=InsecureTestNoise(2))
    fit: Fit = make_solver(name, unit=unit, **options).fit(ratings, budget, session)
    return fit


@pytest.mark.parametrize("unit", ["value", "rating", "user"])
def test_small_data_are_trained_as_by_bias(unit: str) -> None:
    als = fitted("als", SMALL, unit, interest=False).owner_model
    bias = fitted("bias", SMALL, unit).owner_model
    rows = np.zeros(20, dtype=np.int32), np.arange(20, dtype=np.int32)
    assert als.factor_count == 0
    # Under `user`, `als` plans for factors, which costs a little more of the sampler's charge.
    tolerance = 1e-3 if unit == "user" else 1e-5
    np.testing.assert_allclose(als.predict_rows(*rows), bias.predict_rows(*rows), rtol=tolerance)


@pytest.mark.parametrize(
    "chosen", [{"factors": 3}, {"iterations": 2}, {"pattern_features": True}, {"uncertainty": True}]
)
def test_a_setting_that_is_chosen_is_never_ignored(chosen: dict[str, Any]) -> None:
    assert fitted("als", SMALL, "value", **chosen).model.factor_count > 0


def test_the_certificate_of_biases_alone_is_accepted(tmp_path: Path) -> None:
    fit = make_solver("als", unit="value").fit(SMALL, ONE)
    purposes = [e.purpose for e in fit.ledger.events if isinstance(e, GaussianRelease)]
    assert purposes == ["sums of ratings by item", "sums of ratings by user", "sum of ratings"]
    write_release(fit, Certificate.from_ledger(fit.ledger, 1e-5), tmp_path / "release")
    assert verify_release(tmp_path / "release").passed


def test_factors_under_a_certificate_of_biases_are_refused(tmp_path: Path) -> None:
    """Factors that no event of the ledger accounts for."""
    fit = make_solver("als", unit="value", interest=False).fit(SMALL, ONE)
    users, items = (
        Profiles.from_rows(each.ids, np.ones((len(each.ids), 3)))
        for each in (fit.model.user_profiles, fit.model.item_profiles)
    )
    forged = replace(fit, model=replace(fit.model, users=users, items=items))
    write_release(forged, Certificate.from_ledger(fit.ledger, 1e-5), tmp_path / "release")
    verdict = verify_release(tmp_path / "release")
    assert not verdict.passed
    assert any("has no factors, but the release has" in check.detail for check in verdict.checks)


@pytest.mark.parametrize("first", [0, 1])
def test_half_a_ledger_of_biases_is_refused(first: int) -> None:
    fit = fitted("als", SMALL, "value")
    with pytest.raises(InvalidDocument):
        check_solver("als", fit.settings, Ledger([fit.ledger.events[first]]))


@pytest.mark.parametrize(("users", "is_enough"), [(40, False), (60, True)])
def test_the_stated_number_of_ratings_is_where_factors_begin(users: int, is_enough: bool) -> None:
    """Under `value`: 840 ratings for 32 items and at least as many users."""
    ratings = random_ratings(3, users=users, items=32, density=0.55)
    stated = size_for_factors(PublicFacts.of(ratings, Unit.VALUE), Unit.VALUE, ONE)
    assert "from about 840 ratings" in stated
    assert (len(ratings) > 840) == is_enough
    assert (fitted("als", ratings, "value").model.factor_count > 0) == is_enough


def test_fewer_cells_than_factors_need_are_named() -> None:
    facts = PublicFacts.of(SMALL, Unit.RATING)
    assert "whatever they have rated" in size_for_factors(facts, Unit.RATING, ONE)


@pytest.mark.slow
def test_users_with_three_ratings_get_no_factors() -> None:
    """Many users make items precise, but three ratings of a user say nothing about factors."""
    budget = Budget.from_epsilon(20, 1e-5)
    few = random_ratings(0, users=3000, items=30, density=0.07)
    many = random_ratings(0, users=3000, items=30, density=0.8)
    found = [fitted("als", each, "user", budget).model.factor_count for each in (few, many)]
    assert found[0] == 0 < found[1]


def test_counts_of_noise_alone_are_believed_to_be_small() -> None:
    noise, rows = 1000.0, 50
    random = np.random.default_rng(0)
    for _ in range(20):
        counts = random.normal(0, noise, rows)
        whole = NoisyCount(float(counts.sum()), noise * math.sqrt(rows))
        assert shrunk_counts(counts, noise, whole.cautious(rows) / rows).mean() < noise / 20


def test_precise_counts_are_hardly_changed() -> None:
    counts = np.array([5.0, 50, 500])
    np.testing.assert_allclose(shrunk_counts(counts, 0.1, 100.0), counts, rtol=0.01)


def test_train_states_the_size_for_factors(taciturn: Callable[..., Any], tmp_path: Path) -> None:
    lines = ["user,item,rating", *(f"u{n % 7},i{n % 5},{1 + n % 5}" for n in range(35))]
    (tmp_path / "r.csv").write_text("\n".join(lines) + "\n")
    for unit, words in (("value", "als uses factors from about"), ("rating", "uses no factors")):
        done = taciturn(
            "train",
            "r.csv",
            "--scale",
            "1:5:1",
            "--epsilon",
            "1",
            "--unit",
            unit,
            "--dry-run",
            cwd=tmp_path,
        )
        assert words in done.stderr
