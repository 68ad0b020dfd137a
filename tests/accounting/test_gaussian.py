"""The exact privacy curve, compared with 80-digit arithmetic and dp-accounting."""

import math
from typing import Any

import mpmath
import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian, get_sigma_gaussian
from hypothesis import given
from hypothesis import strategies as st

from taciturn.accounting import gaussian
from taciturn.accounting.calibration import calibrate, noise_multiplier
from taciturn.errors import InvalidParameter

epsilons = st.floats(math.log(1e-4), math.log(1e4)).map(math.exp)
deltas = st.floats(math.log(1e-30), math.log(0.9)).map(math.exp)
mus = st.floats(math.log(1e-5), math.log(150)).map(math.exp)


def exact_delta(epsilon: float, mu: float) -> mpmath.mpf:
    """Textbook formula with enough digits to survive cancellation."""
    with mpmath.workdps(80):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        first = mpmath.erfc((e / m - m / 2) / mpmath.sqrt(2))
        second = mpmath.exp(e) * mpmath.erfc((e / m + m / 2) / mpmath.sqrt(2))
        return (first - second) / 2


@given(epsilons, deltas, st.floats(0.9, 1.5))
def test_delta_matches_high_precision(epsilon: float, delta: float, factor: float) -> None:
    mu = calibrate(epsilon, delta) * factor
    expected = exact_delta(epsilon, mu)
    relative = abs(mpmath.log(expected) - gaussian.log_delta(epsilon, mu))
    assert relative < gaussian.DELTA_RELATIVE_ERROR


@pytest.mark.parametrize("mu", [1e-3, 0.999, 1.0, 1.001, 3.0])
@pytest.mark.parametrize("a", [-1.001, -1.0, -0.999, 0.0, 49.9, 50.1, 300.0])
def test_delta_is_smooth_across_its_branches(a: float, mu: float) -> None:
    epsilon = mu * (a + mu / 2)
    if epsilon < 0:
        epsilon, mu = 0.0, -2 * a
    expected = mpmath.log(exact_delta(epsilon, mu))
    assert abs(expected - gaussian.log_delta(epsilon, mu)) < 1e-11 * max(1, abs(expected))


@given(deltas, mus)
def test_epsilon_inverts_delta_and_rounds_up(delta: float, mu: float) -> None:
    nearest = gaussian.epsilon(delta, mu)
    upper = gaussian.epsilon_upper(delta, mu)
    assert nearest <= upper <= nearest * (1 + 1e-8) + 1e-12
    assert exact_delta(upper, mu) <= delta
    if nearest > 0:
        assert gaussian.delta(nearest, mu) == pytest.approx(delta, rel=1e-9)
    else:
        assert gaussian.delta(0.0, mu) <= delta


@given(epsilons, deltas)
def test_calibration_lies_on_the_private_side_and_close(epsilon: float, delta: float) -> None:
    mu = calibrate(epsilon, delta)
    assert exact_delta(epsilon, mu) <= delta
    assert exact_delta(epsilon, mu * (1 + 1e-8)) > delta
    assert gaussian.epsilon_upper(delta, gaussian.round_up(mu)) <= epsilon


@given(epsilons, deltas, st.integers(1, 10**6))
def test_noise_multiplier_never_exceeds_the_budget(epsilon: float, delta: float, n: int) -> None:
    mu = calibrate(epsilon, delta)
    spent = gaussian.compose([(1 / noise_multiplier(mu, n), n)])
    assert spent <= mu
    assert gaussian.epsilon_upper(delta, gaussian.round_up(spent)) <= epsilon
    assert spent == pytest.approx(mu, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1, 5, 10, 30])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-8])
def test_the_curve_agrees_with_dp_accounting(epsilon: float, delta: float) -> None:
    mu = calibrate(epsilon, delta)
    assert 1 / mu == pytest.approx(get_sigma_gaussian(epsilon, delta), rel=1e-6)
    assert gaussian.epsilon(delta, mu) == pytest.approx(
        get_epsilon_gaussian(1 / mu, delta, tol=1e-10), rel=1e-6
    )


@given(mus, st.floats(1e-6, 0.999))
def test_attacker_bound_is_dual_to_delta(mu: float, rate: float) -> None:
    """TPR ≤ e^ε FPR + δ(ε) for every ε, with equality for one ε."""
    best = gaussian.true_positive_rate(rate, mu)
    for epsilon in (0.0, 0.1, 1.0, 10.0, 100.0):
        assert best <= math.exp(epsilon) * rate + gaussian.delta(epsilon, mu) + 1e-12
    if best > rate * (1 + 1e-6) and best < 1 - 1e-9:
        # The tangent at this point has slope φ(z + μ)/φ(z), the e^ε that attains equality.
        z = mpmath.findroot(lambda x: mpmath.ncdf(x) - rate, -0.5 if rate < 0.5 else 0.5)
        slope = float(-mu * z - mu * mu / 2)
        if slope >= 0:
            tangent = math.exp(slope) * rate + gaussian.delta(slope, mu)
            assert best == pytest.approx(tangent, rel=1e-6)


def test_delta_at_epsilon_zero_is_the_total_variation() -> None:
    assert gaussian.delta(0.0, 1.0) == pytest.approx(math.erf(1 / math.sqrt(8)), rel=1e-13)
    assert gaussian.epsilon(0.5, 0.1) == 0.0


def test_composition_adds_squares() -> None:
    assert gaussian.compose([(3.0, 1), (2.0, 4)]) == 5.0
    assert gaussian.round_up(5.0) > 5.0


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, -math.inf, "1", None, True, 10**400])
def test_bad_numbers_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameter, match="epsilon must be"):
        calibrate(bad, 1e-5)
    with pytest.raises(InvalidParameter, match="delta must be"):
        calibrate(1, bad)
    with pytest.raises(InvalidParameter, match="mu must be"):
        gaussian.epsilon(1e-5, bad)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1e-10, 1e-5), (1e10, 1e-5), (1, 1.0), (1, 1e-201), (1, 2)]
)
def test_numbers_out_of_range_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidParameter, match="must be"):
        calibrate(epsilon, delta)
