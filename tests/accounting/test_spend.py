"""Charge for the error of the sampler, rounded towards privacy."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.accounting import gaussian
from taciturn.accounting.spend import Spend
from taciturn.errors import InvalidParameter

mus = st.floats(math.log(1e-3), math.log(30)).map(math.exp)
deltas = st.floats(math.log(1e-20), math.log(0.1)).map(math.exp)
errors = st.just(0.0) | st.floats(math.log(1e-12), math.log(1e-3)).map(math.exp)
tails = st.just(0.0) | st.floats(1e-60, 1e-25)


@given(mus, errors, tails, deltas)
def test_epsilon_covers_the_charged_curve(
    mu: float, error: float, tail: float, delta: float
) -> None:
    epsilon = Spend(mu=mu, error=error, tail=tail).epsilon_upper(delta)
    inner = epsilon - 2 * error
    assert inner >= 0
    assert math.exp(error) * gaussian.delta(inner, mu) + tail <= delta * (1 + 1e-12)
    assert epsilon >= gaussian.epsilon(delta, mu)
    if error == tail == 0:
        assert epsilon <= gaussian.epsilon_upper(delta, mu) * (1 + 1e-12)


@given(mus, errors, tails, st.floats(1e-4, 0.99))
def test_the_attacker_gains_the_charge(mu: float, error: float, tail: float, rate: float) -> None:
    ideal = Spend(mu=mu, error=0.0, tail=0.0).true_positive_rate_upper(rate)
    charged = Spend(mu=mu, error=error, tail=tail).true_positive_rate_upper(rate)
    assert gaussian.true_positive_rate(rate, mu) <= ideal <= charged <= 1
    # Never beyond the bound of the (epsilon, delta) statement.
    spend = Spend(mu=mu, error=error, tail=tail)
    for delta in (1e-3, 1e-6):
        allowed = math.exp(min(spend.epsilon_upper(delta), 700)) * rate + delta
        assert charged <= allowed * (1 + 1e-9)


def test_a_delta_below_the_tail_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="tail"):
        Spend(mu=1.0, error=0.0, tail=1e-10).epsilon_upper(1e-11)
