"""Totals of releases under different privacy units."""

import math
from dataclasses import replace

import pytest

from taciturn.accounting.events import ExactRelease, GaussianRelease
from taciturn.accounting.ledger import Ledger
from taciturn.accounting.mixed import mixed_totals
from taciturn.accounting.units import Unit
from taciturn.errors import InvalidParameter
from tests.accounting.test_ledger import ITEMS, MEAN, USERS


def ledger(unit: Unit, *events: GaussianRelease) -> Ledger:
    return Ledger([replace(event, unit=unit) for event in events])


VALUE, RATING, USER = (ledger(unit, ITEMS, USERS, MEAN) for unit in Unit)


def totals(*ledgers: Ledger) -> dict[str, float | None]:
    return {total.words: total.mu for total in mixed_totals(ledgers, 1e-5)}


def of(run: Ledger, group: int = 1, factor: int = 1) -> float:
    return (factor * run.spend(group).mu) ** 2


def test_each_unit_counts_by_the_steps_of_its_own_relation() -> None:
    """The table of docs/proofs/group-privacy.md, without the code that implements it."""
    known = {
        "the value of one rating": of(VALUE) + of(RATING, factor=2) + of(USER, factor=2),
        "the values of 10 ratings of one user": of(VALUE, 10)
        + of(RATING, 10, factor=2)
        + of(USER, factor=2),
        "the values of 100 ratings of one user": of(VALUE, 100)
        + of(RATING, 100, factor=2)
        + of(USER, factor=2),
        "one rating and the fact that it exists": None,
        "all ratings of one user, however many": None,
    }
    found = totals(VALUE, RATING, USER)
    assert found.keys() == known.keys()
    for words, square in known.items():
        expected = None if square is None else pytest.approx(math.sqrt(square), rel=1e-12)
        assert found[words] == expected


def test_without_value_one_rating_and_one_user_have_totals() -> None:
    found = totals(RATING, USER)
    known = {
        "the value of one rating": of(RATING, factor=2) + of(USER, factor=2),
        "one rating and the fact that it exists": of(RATING) + of(USER, factor=2),
        "all ratings of one user who has at most 10": of(RATING, 10) + of(USER),
        "all ratings of one user who has at most 100": of(RATING, 100) + of(USER),
    }
    for words, square in known.items():
        assert found[words] == pytest.approx(math.sqrt(square), rel=1e-12)
    assert found["all ratings of one user, however many"] is None


@pytest.mark.parametrize("unit", Unit)
def test_two_steps_cost_twice_the_mu_and_more_of_the_sampler(unit: Unit) -> None:
    noisy = ledger(unit, *(replace(each, sampler_error=1e-6) for each in (ITEMS, USERS, MEAN)))
    one, two = noisy.spend(3), noisy.spend(3, steps=2)
    assert two.mu == pytest.approx(2 * one.mu, rel=1e-12)
    assert two.error >= 2 * one.error and two.tail >= one.tail
    with pytest.raises(InvalidParameter, match="steps"):
        noisy.spend(steps=0)


def test_reasons_name_the_unit_that_says_nothing() -> None:
    for runs, unit in (((VALUE, USER), "value"), ((RATING, USER), "rating")):
        last = mixed_totals(runs, 1e-5)[-1]
        assert last.epsilon is None and last.reason is not None and f"unit {unit}" in last.reason
        assert mixed_totals(runs, 1e-5)[0].reason is None


def test_an_exact_release_has_no_total() -> None:
    exact = Ledger([ExactRelease(purpose="sums", unit=Unit.RATING)])
    with pytest.raises(InvalidParameter, match="no finite total"):
        mixed_totals((USER, exact), 1e-5)
