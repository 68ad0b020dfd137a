"""Other accountants: published figures, their order, and agreement with dp-accounting."""

import math
from typing import Any

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import given
from hypothesis import strategies as st

from taciturn.accounting import composition, gaussian, renyi
from taciturn.accounting.accounts import account, steps_of
from taciturn.accounting.paper import paper_account
from taciturn.errors import InvalidParameter

mus = st.floats(math.log(1e-5), math.log(150)).map(math.exp)
deltas = st.floats(math.log(1e-30), math.log(0.5)).map(math.exp)


@pytest.mark.parametrize(
    ("count", "exact", "rdp", "zcdp"), [(10, 2.594, 2.814, 3.235), (100, 9.997, 10.725, 11.597)]
)
def test_accountants_give_known_figures(count: int, exact: float, rdp: float, zcdp: float) -> None:
    accounts = account([steps_of(5, count)], 1e-5)
    assert round(accounts.epsilon_exact, 3) == exact
    assert round(accounts.epsilon_rdp, 3) == rdp
    assert round(accounts.epsilon_zcdp, 3) == zcdp


@pytest.mark.parametrize(
    ("epsilon_i", "iterations", "paper", "alpha", "mu", "exact"),
    [
        (0.4, 300, "13.1837", "3.1523", "2.229502", "11.437993"),
        (0.15, 791, "7.4359", "4.5346", "1.357584", "6.261537"),
        (0.5, 2109, "62.7570", "1.6494", "7.389168", "58.026222"),
        (0.9, 2489, "173.7235", "1.3321", "14.449147", "165.137510"),
    ],
)
def test_the_paper_account_gives_the_published_figures(
    epsilon_i: float, iterations: int, paper: str, alpha: str, mu: str, exact: str
) -> None:
    claimed = paper_account(epsilon_i=epsilon_i, delta_i=0.01, iterations=iterations, delta=1e-5)
    assert f"{claimed.epsilon_paper:.4f}" == paper
    assert f"{claimed.alpha:.4f}" == alpha
    assert f"{claimed.mu:.6f}" == mu
    accounts = account([steps_of(claimed.noise_multiplier, iterations)], 1e-5)
    assert f"{accounts.epsilon_exact:.6f}" == exact
    assert accounts.epsilon_zcdp == pytest.approx(claimed.epsilon_paper, rel=1e-12)
    assert claimed.warnings == ()


@pytest.mark.parametrize("delta_i", [0.01, 1e-5])
def test_the_paper_account_equals_the_printed_formula(delta_i: float) -> None:
    a = 300 * 0.4**2 / (4 * math.log(1.25 / delta_i))
    claimed = paper_account(epsilon_i=0.4, delta_i=delta_i, iterations=300, delta=1e-5)
    assert claimed.epsilon_paper == pytest.approx(a + 2 * math.sqrt(a * math.log(1e5)), rel=1e-12)


@given(deltas, mus)
def test_accountants_are_ordered(delta: float, mu: float) -> None:
    exact = gaussian.epsilon(delta, mu)
    rdp = renyi.epsilon_rdp(delta, mu)
    zcdp = renyi.epsilon_zcdp(delta, mu)
    assert exact <= rdp * (1 + 1e-9)
    assert rdp <= zcdp
    each = [(mu / 10, 100)]
    advanced = composition.epsilon_advanced(delta, each)
    assert exact <= advanced * (1 + 1e-9)
    assert advanced <= composition.epsilon_basic(delta, each)


@given(deltas, mus)
def test_rdp_finds_the_best_order(delta: float, mu: float) -> None:
    orders = 1 + np.geomspace(1e-6, 1e9, 20_000)
    bounds = (
        orders * mu * mu / 2
        + np.log1p(-1 / orders)
        - (math.log(delta) + np.log(orders)) / (orders - 1)
    )
    assert renyi.epsilon_rdp(delta, mu) <= max(0.0, bounds.min()) * (1 + 1e-6) + 1e-12


@given(deltas, mus)
def test_plain_conversion_is_attained_at_the_best_order(delta: float, mu: float) -> None:
    alpha = renyi.best_order(delta, mu)
    at_best = alpha * mu * mu / 2 + math.log(1 / delta) / (alpha - 1)
    assert at_best == pytest.approx(renyi.epsilon_zcdp(delta, mu), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("multiplier", "count"), [(1.0, 1), (5.0, 100), (20.0, 300), (2.0, 50)])
def test_accountants_agree_with_dp_accounting(multiplier: float, count: int) -> None:
    event = SelfComposedDpEvent(GaussianDpEvent(multiplier), count)
    accounts = account([steps_of(multiplier, count)], 1e-5)
    loss_distribution = PLDAccountant().compose(event).get_epsilon(1e-5)
    assert accounts.epsilon_exact == pytest.approx(loss_distribution, rel=2e-3)
    discrete_orders = RdpAccountant().compose(event).get_epsilon(1e-5)
    assert accounts.epsilon_rdp <= discrete_orders * (1 + 1e-9)
    assert accounts.epsilon_rdp == pytest.approx(discrete_orders, rel=0.02)


def test_advanced_composition_equals_its_formula() -> None:
    each = gaussian.epsilon(1e-5 / 200, 0.01)
    expected = 100 * each * math.tanh(each / 2) + each * math.sqrt(200 * math.log(2e5))
    assert composition.epsilon_advanced(1e-5, [(0.01, 100)]) == pytest.approx(expected, rel=1e-12)
    basic = 100 * gaussian.epsilon(1e-5 / 100, 0.01)
    assert composition.epsilon_basic(1e-5, [(0.01, 100)]) == pytest.approx(basic, rel=1e-12)


def test_unequal_steps_compose_like_equal_ones() -> None:
    together = account([steps_of(5, 60), steps_of(5, 40)], 1e-5)
    assert together.epsilon_advanced == pytest.approx(
        account([steps_of(5, 100)], 1e-5).epsilon_advanced, rel=1e-12
    )


@pytest.mark.parametrize("epsilon_i", [1.0, 3.0])
def test_the_paper_account_warns_outside_its_theorem(epsilon_i: float) -> None:
    claimed = paper_account(epsilon_i=epsilon_i, delta_i=0.01, iterations=10, delta=1e-5)
    assert "nor the paper's theorem covers it" in claimed.warnings[0]


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("epsilon_i", 0.0),
        ("epsilon_i", math.nan),
        ("delta_i", 0.0),
        ("delta_i", 1.0),
        ("iterations", 0),
        ("iterations", -3),
        ("iterations", 2.5),
        ("iterations", True),
        ("iterations", 10**13),
        ("delta", 0.0),
        ("delta", math.nan),
    ],
)
def test_bad_parameters_are_named(name: str, bad: float) -> None:
    good: dict[str, Any] = {"epsilon_i": 0.4, "delta_i": 0.01, "iterations": 300, "delta": 1e-5}
    with pytest.raises(InvalidParameter, match=f"^{name} must be"):
        paper_account(**(good | {name: bad}))


@pytest.mark.parametrize("steps", [[(0.1, -1), (1.0, 3)], [(0.0, 1)], [(-1.0, 1)], [], [(1, 1.5)]])
def test_bad_steps_are_refused(steps: list[tuple[float, int]]) -> None:
    with pytest.raises(InvalidParameter):
        account(steps, 1e-5)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, 1e-9, 1e101])
def test_bad_noise_multipliers_are_refused(bad: float) -> None:
    with pytest.raises(InvalidParameter, match="^noise_multiplier must be"):
        steps_of(bad, 1)
