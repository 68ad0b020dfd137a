"""Popularity: the most popular items first, from noisy or exact counts."""

from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.events import PatternRelease
from taciturn.accounting.ledger import Ledger, Status
from taciturn.accounting.units import Unit
from taciturn.audit.checks import check_runs
from taciturn.data import load
from taciturn.errors import BudgetExceeded, InvalidDocument, InvalidParameter
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.queries import per_user
from taciturn.queries.totals import COUNT_BITS
from taciturn.solvers import popularity
from taciturn.solvers.catalog import check_solver, make_solver
from taciturn.solvers.contract import Fit, Session
from taciturn.solvers.entry import POPULARITY
from taciturn.solvers.popularity import NoisyCounts, PublicCounts
from tests.audit.helpers import case
from tests.narrow import gaussian_events, present
from tests.solvers.contract import GENEROUS, ProvenContract, SolverContract
from tests.solvers.helpers import BUDGET, random_ratings, same

PRIVATE = [Unit.RATING, Unit.USER]


class RanksByPopularity(SolverContract):
    """Tests of solvers that rank by popularity and predict no ratings."""

    small: ClassVar = {}

    def test_predictions_follow_the_ids(self) -> None:
        """The popularity of items follows the ids."""
        ratings = random_ratings(11, users=60, items=15)
        session = Session(noise=InsecureTestNoise(1))
        fit = self.made().fit(ratings, self.budget(GENEROUS), session)
        items = fit.owner_model.item_profiles
        found = present(fit.owner_model.popularity)
        rows = ratings.to_frame()
        counts = np.array([(rows["item_id"] == item).sum() for item in items.ids])
        assert np.corrcoef(counts, found)[0, 1] > 0.95
        assert found.min() > 0 and found.std() == pytest.approx(1, rel=1e-5)

    def test_every_rating_is_predicted_as_the_middle_of_the_scale(self) -> None:
        ratings = random_ratings(2)
        model = self.run(ratings).owner_model
        assert np.all(model.predict_rows(ratings.rows(), ratings.by_user.columns) == 3)
        assert not model.is_personalised and model.interest_count == 1


class TestPopularityUnderRating(RanksByPopularity, ProvenContract):
    name = "popularity"
    unit = Unit.RATING


class TestPopularityUnderUser(RanksByPopularity, ProvenContract):
    name = "popularity"
    unit = Unit.USER


class TestPopularityUnderValue(RanksByPopularity):
    name = "popularity"
    status = Status.PROVEN

    def test_counts_are_published_and_cost_nothing(self) -> None:
        solver, ratings = self.solver(), random_ratings(1)
        fit = solver.fit(ratings, BUDGET)
        expected = [PatternRelease(purpose=POPULARITY, unit=Unit.VALUE)]
        assert list(fit.ledger.events) == solver.plan(ratings, BUDGET) == expected
        certificate = Certificate.from_ledger(fit.ledger, BUDGET.delta)
        assert certificate.epsilon == 0 and certificate.mu == 0
        counts = ratings.pattern.by_item.counts
        assert np.allclose(present(fit.model.popularity), counts / counts.std())

    def test_other_values_give_the_same_release(self) -> None:
        ratings = random_ratings(1)
        ones = load(ratings.to_frame().with_columns(rating=pl.lit(1.0)), scale="1:5:1")
        assert same(self.run(ratings), self.run(ones))


class TestNonPrivatePopularity(RanksByPopularity):
    name = "non-private-popularity"
    status = Status.NONE


def fit(unit: Unit) -> Fit:
    found: Fit = make_solver("popularity", unit=unit).fit(random_ratings(6), BUDGET)
    return found


@pytest.mark.parametrize("unit", PRIVATE)
def test_the_pattern_is_never_published_where_it_is_protected(unit: Unit) -> None:
    whole = fit(unit)
    assert not whole.ledger.patterns
    published = PatternRelease(purpose=POPULARITY, unit=unit)
    changed = Ledger([*whole.ledger.events, published], run=whole.ledger.run)
    with pytest.raises(InvalidDocument):
        check_solver(whole.solver, whole.settings, changed)


def test_a_noisy_table_is_refused_where_counts_are_public() -> None:
    whole, other = fit(Unit.VALUE), fit(Unit.RATING)
    with pytest.raises(InvalidDocument, match="unit"):
        check_solver(whole.solver, whole.settings, other.ledger)


@pytest.mark.parametrize("unit", PRIVATE)
@pytest.mark.parametrize(("mu", "tables"), [(1, 1), (9.99, 1), (10.01, 2), (30.5, 10), (99, 99)])
def test_a_large_budget_is_divided_among_equal_tables(unit: Unit, mu: float, tables: int) -> None:
    budget, ratings = Budget.from_mu(mu, 1e-5), random_ratings(6, users=60)
    whole: Fit = make_solver("popularity", unit=unit).fit(ratings, budget)
    check_solver(whole.solver, whole.settings, whole.ledger)
    events = gaussian_events(whole.ledger)
    assert len(events) == tables and len({each.noise_scale for each in events}) == 1
    spent = Certificate.from_ledger(whole.ledger, 1e-5)
    assert 0.999 * mu < present(spent.mu) <= mu * (1 + 1e-9)
    if mu > 30 and unit is Unit.RATING:
        counts = ratings.pattern.by_item.counts
        assert np.allclose(present(whole.model.popularity), counts / counts.std(), atol=0.1)
    if tables > 1:
        rest = Ledger([*whole.ledger.events[:-1]], run=whole.ledger.run)
        with pytest.raises(InvalidDocument):
            check_solver(whole.solver, whole.settings, rest)


def test_a_release_under_user_has_a_prior_and_no_users() -> None:
    whole = fit(Unit.USER)
    assert whole.model.users is None and whole.model.prior is not None
    folded = whole.model.fold_in({100: 4.0, 103: 2.0})
    assert present(folded.interest) == pytest.approx([1.0])


@pytest.mark.parametrize("unit", PRIVATE)
def test_an_audit_finds_no_fault(unit: Unit) -> None:
    findings, _ = check_runs(case(f"popularity:{unit}"))
    assert all(each.passed for each in findings), findings


def test_an_audit_where_counts_are_public_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="nothing that unit value protects"):
        case("popularity")


def test_a_second_release_that_is_not_charged_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bug: the counts are released twice, each time with the whole budget."""
    original = NoisyCounts.__init__

    def twice(self: Any, *facts: Any) -> None:
        original(self, *facts)
        self.schedule *= 2

    monkeypatch.setattr(NoisyCounts, "__init__", twice)
    with pytest.raises(BudgetExceeded):
        fit(Unit.RATING)


def test_an_audit_catches_users_with_as_much_weight_as_ratings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planted bug: under unit user, every rating counts 1 instead of 1/√n."""
    monkeypatch.setattr(per_user, "weights", lambda counts: np.full(counts.shape, 1 << COUNT_BITS))
    findings, _ = check_runs(case("popularity:user"))
    assert [each.name for each in findings if not each.passed] == ["differences within bounds"]


def test_exact_counts_cannot_be_used_under_rating(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bug: the algorithm of unit value, whose counts are exact, under unit rating."""
    monkeypatch.setattr(
        popularity, "NoisyCounts", lambda facts, budget, _: PublicCounts(facts, budget)
    )
    with pytest.raises(InvalidParameter, match="rating pattern is private"):
        fit(Unit.RATING)
