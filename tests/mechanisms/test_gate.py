"""The gate records events before it draws noise, respects its budget and never reuses noise."""

import copy
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.accounting import sampler
from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.events import Noise, Rows
from taciturn.accounting.ledger import Ledger, Status
from taciturn.accounting.units import Unit
from taciturn.errors import BudgetExceeded, InvalidParameter, NoiseReuse
from taciturn.mechanisms.extent import SMALL, Extent
from taciturn.mechanisms.noise import BLOCK, InsecureTestNoise, SecureNoise
from taciturn.mechanisms.query import Answer
from tests.mechanisms.noise_helpers import (
    FIXED,
    QUERY,
    Direct,
    FixedSums,
    random_values,
    release,
    small_gate,
    weighted_sums,
)
from tests.narrow import gaussian_events, present


def changed(**change: Any) -> FixedSums:
    """The fixed sums with another query."""
    return FixedSums(replace(QUERY, **change), FIXED.sums)


def test_noise_has_the_recorded_scale() -> None:
    sums = weighted_sums(5, rows=4000, columns=20, width=10)
    values = random_values(sums)
    (exact,) = sums.exact(values).tables
    gate = small_gate(noise=SecureNoise())
    released = release(gate, sums, values, share=0.5)
    (event,) = gaussian_events(gate.ledger)
    noise = (released - exact * sums.queries[0].step) / event.noise_scale
    # 40,000 draws: each bound is 8 standard errors, false-positive rate below 1e-14.
    assert abs(noise.mean()) < 8 / math.sqrt(noise.size)
    assert abs(noise.var() - 1) < 8 * math.sqrt(2 / noise.size)
    assert event.mu == pytest.approx(gate.mu * math.sqrt(0.5), rel=1e-12)
    assert event.sensitivity == 4.0
    assert event.coordinates == 10
    assert event.sampler_tail == sampler.TAIL
    assert event.sampler_error == sampler.relative_error(sampler.SIGMA_MIN)


def test_released_numbers_lie_on_the_grid() -> None:
    released = release(small_gate(), FIXED, share=1)
    steps = released / QUERY.step
    assert np.array_equal(steps, np.rint(steps))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("shares", [[1.0], [0.002, 0.3, 0.698], [1 / 500] * 500])
def test_a_spent_budget_is_certified_and_not_exceeded(epsilon: float, shares: list[float]) -> None:
    budget = Budget.from_epsilon(epsilon, 1e-5)
    gate = small_gate(budget=budget, noise=SecureNoise())
    for share in shares:
        release(gate, FIXED, share=share)
    certificate = Certificate.from_ledger(gate.ledger, 1e-5)
    assert certificate.status is Status.PROVEN
    assert present(certificate.epsilon) <= epsilon
    assert certificate.epsilon == pytest.approx(epsilon, rel=5e-5)
    recorded = len(gate.ledger.events)
    with pytest.raises(BudgetExceeded, match="sum to more than"):
        release(gate, FIXED, share=1e-6)
    assert len(gate.ledger.events) == recorded


@pytest.mark.slow
@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=30), st.floats(0.01, 30))
def test_no_sequence_of_shares_exceeds_the_budget(shares: list[float], epsilon: float) -> None:
    budget = Budget.from_epsilon(epsilon, 1e-6)
    gate = small_gate(budget=budget)
    for share in shares:
        try:
            release(gate, FIXED, share=share)
        except (BudgetExceeded, InvalidParameter):
            break
    if gate.ledger.events:
        assert present(Certificate.from_ledger(gate.ledger, 1e-6).epsilon) <= epsilon


def test_the_error_of_the_sampler_is_charged() -> None:
    gate = small_gate(noise=SecureNoise())
    release(gate, FIXED, share=1)
    certificate = Certificate.from_ledger(gate.ledger, 1e-5)
    events = gaussian_events(gate.ledger)
    ideal = [replace(event, sampler_error=0.0, sampler_tail=0.0) for event in events]
    cheaper = Certificate.from_ledger(Ledger(ideal), 1e-5)
    assert 0 < present(certificate.epsilon) - present(cheaper.epsilon) < 1e-8


def test_the_charge_for_the_sampler_does_not_depend_on_the_scale_of_the_noise() -> None:
    """Scales may depend on earlier releases; the charge must be known before the first."""
    fine = changed(sensitivity=QUERY.sensitivity * 1024)
    charges = {small_gate().plan(each.query, 0.1).sampler_charge() for each in (FIXED, fine)}
    assert len(charges) == 1


def test_releases_beyond_the_planned_extent_are_refused() -> None:
    with pytest.raises(BudgetExceeded, match="coordinates"):
        release(small_gate(), changed(coordinates=10**8), share=0.1)
    planned = Extent.of([QUERY, QUERY])
    for extent in (
        replace(planned, coordinates=planned.coordinates - 1),
        replace(planned, releases=1),
        replace(planned, numbers=planned.numbers - 1),
    ):
        gate = small_gate(extent=extent)
        with pytest.raises(BudgetExceeded, match="planned"):
            gate.plan_all([(QUERY, 0.1), (QUERY, 0.1)])
        release(gate, FIXED, share=0.1)
        with pytest.raises(BudgetExceeded, match="planned"):
            release(gate, FIXED, share=0.1)
        assert len(gate.ledger.events) == 1


@pytest.mark.parametrize("coordinates", [1, 1000, 10**6, 10**8])
def test_the_whole_extent_is_within_the_budget(coordinates: int) -> None:
    """The reserve for the sampler is enough, and hardly larger than needed."""
    extent = Extent(coordinates=coordinates, releases=10, numbers=2**20)
    budget = Budget.from_epsilon(0.5, 1e-6)
    gate = small_gate(budget=budget, extent=extent)
    query = replace(QUERY, coordinates=coordinates // 10 or 1)
    count = 10 if coordinates >= 10 else 1
    certificate = Certificate.from_ledger(
        Ledger(gate.plan_all([(query, (1 - 2.0**-40) / count)] * count)), budget.delta
    )
    assert 0.9999 * budget.epsilon < present(certificate.epsilon) <= budget.epsilon


@pytest.mark.parametrize(
    ("budget", "extent", "match"),
    [
        (Budget.from_epsilon(1e-9, 1e-5), SMALL, "epsilon"),
        (Budget.from_epsilon(1, 1e-19), SMALL, "delta"),
        (Budget.from_epsilon(1, 1e-40), SMALL, "delta"),
        (Budget.from_epsilon(1, 1e-5), replace(SMALL, numbers=2**35), "numbers"),
    ],
)
def test_budgets_that_sampler_and_cipher_do_not_allow_are_refused(
    budget: Budget, extent: Extent, match: str
) -> None:
    with pytest.raises(InvalidParameter, match=match):
        small_gate(budget=budget, extent=extent)


def test_test_noise_voids_the_certificate() -> None:
    gate = small_gate()
    release(gate, FIXED, share=1)
    assert Certificate.from_ledger(gate.ledger, 1e-5).status is Status.VOID


def test_results_do_not_depend_on_threads() -> None:
    sums = weighted_sums(2, rows=30_000, columns=5, width=12)
    values = random_values(sums)
    one = release(small_gate(threads=1), sums, values, share=0.1)
    for threads in (2, 4):
        assert np.array_equal(release(small_gate(threads=threads), sums, values, share=0.1), one)


def test_every_block_has_noise_of_its_own() -> None:
    rows = 5 * BLOCK // 2
    table = FixedSums(replace(QUERY, shape=(rows, 2)), np.zeros((rows, 2), dtype=np.int64))
    released = release(small_gate(threads=2), table, share=0.1).reshape(-1)
    blocks = released[: 5 * BLOCK].reshape(5, BLOCK)
    for first in range(5):
        for second in range(first):
            assert not np.array_equal(blocks[first, :100], blocks[second, :100])
    assert np.unique(released).size > 0.9 * released.size


def test_noise_belongs_to_one_gate() -> None:
    source = SecureNoise()
    small_gate(noise=source)
    with pytest.raises(NoiseReuse, match="another run"):
        small_gate(noise=source)
    with pytest.raises(NoiseReuse, match="copied"):
        pickle.dumps(source)
    with pytest.raises(NoiseReuse, match="copied"):
        copy.deepcopy(source)


def test_a_gate_cannot_be_copied() -> None:
    gate = small_gate()
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(NoiseReuse, match="copied"):
            duplicate(gate)


def test_an_address_in_memory_is_never_used_again() -> None:
    """Not even if the number of releases is reset, as in a copy."""
    gate = small_gate()
    release(gate, FIXED, share=0.1)
    gate._position = 0
    with pytest.raises(NoiseReuse):
        release(gate, FIXED, share=0.1)


def test_test_noise_cannot_pass_for_secure() -> None:
    with pytest.raises(AttributeError):
        InsecureTestNoise(1).kind = Noise.SECURE  # type: ignore[misc]


def test_threads_never_share_an_address() -> None:
    gate = small_gate(threads=1)
    with ThreadPoolExecutor(8) as pool:
        tasks = [pool.submit(release, gate, FIXED, share=0.01) for _ in range(60)]
        results = [task.result() for task in tasks]
    assert len(gate.ledger.events) == 60
    assert len({result.tobytes() for result in results}) == 60


def test_the_ledger_that_is_shown_is_a_copy() -> None:
    gate = small_gate()
    gate.ledger.append(gate.plan(QUERY, 0.5))
    assert gate.ledger.events == ()


def test_every_release_has_noise_of_its_own() -> None:
    gate = small_gate()
    first = release(gate, FIXED, share=0.1)
    second = release(gate, FIXED, share=0.1)
    assert (first != second).all()
    assert (release(small_gate(noise=SecureNoise()), FIXED, share=0.1) != first).all()


def test_the_event_is_recorded_before_noise_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing fails, like a crash between recording and drawing."""

    def integers(*args: Any, **options: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(SecureNoise, "_integers", integers)
    gate = small_gate(noise=SecureNoise())
    with pytest.raises(MemoryError):
        release(gate, FIXED, share=0.6)
    assert len(gate.ledger.events) == 1
    with pytest.raises(BudgetExceeded):
        release(gate, FIXED, share=0.6)


@pytest.mark.parametrize(
    ("table", "share"),
    [
        (changed(unit=Unit.USER), 0.1),
        (FIXED, 0.0),
        (FIXED, 1.5),
        (FIXED, math.nan),
        (FIXED, "a"),
        (FixedSums(QUERY, FIXED.sums[:-1]), 0.1),
        (FixedSums(QUERY, FIXED.sums.astype(np.float64)), 0.1),
        (changed(sensitivity=2.0), 0.1),
        (changed(sensitivity=2.0**60), 0.1),
    ],
)
def test_bad_releases_record_nothing(table: FixedSums, share: float) -> None:
    gate = small_gate()
    with pytest.raises(InvalidParameter):
        release(gate, table, share=share)
    assert gate.ledger.events == ()


def test_one_release_may_not_spend_too_much() -> None:
    gate = small_gate(budget=Budget.from_epsilon(200, 1e-5))
    with pytest.raises(InvalidParameter, match="divide the budget"):
        release(gate, FIXED, share=1)
    for _ in range(10):
        release(gate, FIXED, share=0.1)
    assert present(Certificate.from_ledger(gate.ledger, 1e-5).epsilon) <= 200


def test_a_completed_run_has_no_noise_left() -> None:
    source = SecureNoise()
    gate = small_gate(noise=source)
    release(gate, FIXED, share=0.1)
    gate.close()
    with pytest.raises(NoiseReuse, match="erased"):
        release(gate, FIXED, share=0.1)
    assert len(gate.ledger.events) == 1
    with pytest.raises(NoiseReuse):
        source._secret()
    gate.close()


def test_groups_beyond_the_range_of_the_sampler_get_no_guarantee() -> None:
    """A user table at a large budget: 100 ratings shift it further than the sampler's support."""
    gate = small_gate(budget=Budget.from_epsilon(60, 1e-5), noise=SecureNoise())
    release(gate, changed(rows=Rows.USERS), share=1)
    certificate = Certificate.from_ledger(gate.ledger, 1e-5)
    one, ten, hundred = certificate.group
    assert one.epsilon == certificate.epsilon and ten.epsilon is not None
    assert hundred.epsilon is None and "no guarantee" in certificate.to_text()
    (event,) = gaussian_events(gate.ledger)
    assert event.sampler_charge(10)[0] > 10 * event.sampler_charge()[0]
    assert replace(event, rows=Rows.ITEMS).sampler_charge(10)[0] == pytest.approx(
        10 * event.sampler_charge()[0]
    )


@dataclass(frozen=True)
class Together:
    """Several tables that are released together."""

    parts: tuple[FixedSums, ...]

    @property
    def queries(self) -> tuple[Any, ...]:
        return tuple(part.query for part in self.parts)

    def exact(self, values: Any, threads: int | None = None) -> Answer:
        return Answer(tuple(part.sums for part in self.parts))


BOTH = Together((FIXED, changed(rows=Rows.USERS, purpose="the other table")))


def test_tables_released_together_equal_those_released_apart() -> None:
    apart = small_gate()
    expected = [release(apart, part, share=0.1) for part in BOTH.parts]
    gate = small_gate()
    together = gate.release(BOTH, Direct(), shares=(0.1, 0.1)).tables
    assert all(np.array_equal(a, b) for a, b in zip(together, expected, strict=True))
    assert gate.ledger.events == apart.ledger.events and gate.position == 2


def test_a_joint_release_is_recorded_as_a_whole_or_not_at_all() -> None:
    gate = small_gate()
    with pytest.raises(BudgetExceeded):
        gate.release(BOTH, Direct(), shares=(0.6, 0.6))
    with pytest.raises(InvalidParameter, match="together"):
        gate.release(Together(()), Direct(), shares=())
    with pytest.raises(ValueError, match="shorter"):
        gate.release(BOTH, Direct(), shares=(0.1,))
    assert not gate.ledger.events and gate.position == 0


def test_a_flaw_makes_the_release_a_claim() -> None:
    gate = small_gate(noise=SecureNoise())
    release(gate, changed(flaw="the bound has no proof"), share=0.1)
    assert gate.ledger.status is Status.CLAIMED
    assert gate.ledger.reasons == ("the bound has no proof",)


@dataclass(frozen=True)
class Leaking(FixedSums):
    """A query spec whose answer also has a private by-product."""

    def exact(self, values: Any, threads: int | None = None) -> Answer:
        return Answer((self.sums,), private="an exact sum")


def test_only_a_claimed_query_may_hand_on_private_results() -> None:
    gate = small_gate()
    with pytest.raises(InvalidParameter, match="nothing but its tables"):
        release(gate, Leaking(QUERY, FIXED.sums), share=0.1)
    assert not gate.ledger.events
    claimed = Leaking(replace(QUERY, flaw="the bound has no proof"), FIXED.sums)
    released = gate.release(claimed, Direct(), shares=(0.1,))
    assert released.private == "an exact sum" and gate.ledger.status is not Status.PROVEN


def test_nothing_is_released_once_users_are_served_exact_profiles() -> None:
    gate = small_gate(noise=SecureNoise())
    release(gate, FIXED, share=0.1)
    before = gate.ledger.spend().mu
    gate.serve_by_fold_in("profiles")
    assert gate.ledger.is_served_by_fold_in and gate.ledger.status is Status.PROVEN
    assert gate.ledger.spend().mu == before
    with pytest.raises(InvalidParameter, match="users were served"):
        release(gate, FIXED, share=0.1)
