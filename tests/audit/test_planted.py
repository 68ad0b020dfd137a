"""Planted bugs that would silently break privacy: an audit catches each of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

from taciturn import _core
from taciturn.accounting.budget import Budget
from taciturn.accounting.events import Noise, Rows
from taciturn.accounting.units import Unit
from taciturn.audit.cases import chosen_pair
from taciturn.audit.checks import check_runs
from taciturn.audit.two_worlds import Plan, View, audit_two_worlds
from taciturn.audit.verdict import Verdict
from taciturn.data import load
from taciturn.data.ratings import Ratings
from taciturn.errors import BudgetExceeded
from taciturn.mechanisms import extent
from taciturn.mechanisms import gate as mechanism
from taciturn.mechanisms.noise import NoiseSource, SecureNoise
from taciturn.mechanisms.run_folder import RunFolder
from taciturn.queries import residuals, weighted_sums
from taciturn.solvers.bias import BiasSolver
from taciturn.solvers.catalog import make_solver
from taciturn.solvers.contract import PLAIN, Fit, Session
from taciturn.training.train import train
from tests.audit.helpers import CONFIDENCE, case
from tests.solvers.helpers import random_ratings

Patch = pytest.MonkeyPatch


RESUMING = ["resuming after a crash", "resuming after an interrupt"]


def failed(name: str, solver: Any = None, ratings: Ratings | None = None) -> list[str]:
    """Names of failed checks of single runs, on the worst case or on the given ratings."""
    each = case(name, solver=solver)
    if ratings is not None:
        each = replace(each, pair=chosen_pair(ratings))
    return [finding.name for finding in check_runs(each)[0] if not finding.passed]


def is_seen_by_scores(
    name: str, runs: int, view: View = View.TRANSCRIPT, solver: Any = None
) -> bool:
    """True if scores alone refute the claim, even at high confidence."""
    plan = Plan(runs=runs, view=view, confidence=CONFIDENCE)
    result = audit_two_worlds(case(name, epsilon=5, solver=solver), plan, jobs=1)
    return result.mu > result.claim.mu


def half_noise(patch: Patch) -> None:
    original = _core.Ziggurat
    patch.setattr(_core, "Ziggurat", lambda sigma: original(sigma / 2))


def noise_on_users_only(patch: Patch) -> None:
    class Draft(mechanism._Draft):
        def __init__(self, event: int, query: Any, facts: Any, sums: Any) -> None:
            super().__init__(event, query, facts, sums)
            self._is_noised = query.rows is not Rows.ITEMS

        def add_noise(self, source: NoiseSource, block: int) -> None:
            super().add_noise(source, block)
            if not self._is_noised:
                self.released[:] = self._sums * self._step

    patch.setattr(mechanism, "_Draft", Draft)


def no_range(patch: Patch) -> None:
    original = weighted_sums.sums_query

    def query(*facts: Any) -> Any:
        found = original(*facts)
        return replace(found, sensitivity=found.sensitivity / 4)

    patch.setattr(weighted_sums, "sums_query", query)


def no_clipping(patch: Patch) -> None:
    def of(self: residuals.Residuals, values: Any) -> Any:
        return values.clipped() - self.predictions

    original = weighted_sums.grid_sums

    def sums(pattern: Any, values: Any, ends: Any, features: Any, threads: int | None) -> Any:
        return original(pattern, values, (-(2**24), 2**24), features, threads)

    patch.setattr(residuals.Residuals, "of", of)
    patch.setattr(residuals, "grid_sums", sums)


def less_recorded(patch: Patch) -> None:
    """The gate scales every recorded sensitivity and noise scale by 0.8, consistently."""
    original = mechanism.Gate.plan

    def plan(self: Any, query: Any, share: float) -> Any:
        event = original(self, query, share)
        return replace(
            event, sensitivity=0.8 * event.sensitivity, noise_scale=0.8 * event.noise_scale
        )

    patch.setattr(mechanism.Gate, "plan", plan)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bias", "gradient", "als"])
def test_a_gate_that_records_less_than_a_query_states_is_caught(
    name: str, monkeypatch: Patch
) -> None:
    less_recorded(monkeypatch)
    assert {"differences within bounds", "recorded bounds"} <= set(failed(name))


@pytest.mark.parametrize(
    "change",
    [
        {"coordinates": 1},
        {"rows": Rows.ITEMS},
        {"purpose": "something else"},
        {"flaw": "there is a gap"},
    ],
)
def test_an_event_that_differs_from_its_query_is_caught(
    change: dict[str, Any], monkeypatch: Patch
) -> None:
    original = mechanism.Gate.plan
    monkeypatch.setattr(
        mechanism.Gate,
        "plan",
        lambda self, query, share: replace(original(self, query, share), **change),
    )
    assert "recorded bounds" in failed("als")


def changed_noise(patch: Patch, change: Callable[[Any], Any]) -> None:
    """Change the noise of every table before it is added."""
    original = NoiseSource._integers

    def add_noise(self: Any, source: NoiseSource, block: int) -> None:
        rows = slice(block * self._size, (block + 1) * self._size)
        sums = self._sums[rows]
        drawn = original(source, self._table, event=self._event, block=block, count=sums.size)
        noise = change(drawn.reshape(sums.shape).copy())
        self.released[rows] = (noise + sums) * self._step

    patch.setattr(mechanism._Draft, "add_noise", add_noise)


def copied_rows(noise: Any) -> Any:
    noise[1::2] = noise[: noise[1::2].shape[0] * 2 : 2]
    return noise


def opposite_halves(noise: Any) -> Any:
    half = len(noise) // 2
    noise[half : 2 * half] = -noise[:half]
    return noise


def last_row_without(noise: Any) -> Any:
    if len(noise) > 5:
        noise[-1] = 0
    return noise


@pytest.mark.parametrize("name", ["bias", "gradient", "als"])
@pytest.mark.parametrize(
    ("change", "check"),
    [
        (copied_rows, "fresh noise in every entry"),
        (opposite_halves, "fresh noise in every entry"),
        (last_row_without, "fresh noise in every entry"),
        (np.abs, "noise mean"),
    ],
)
def test_noise_that_is_not_independent_is_caught(
    change: Callable[[Any], Any], check: str, name: str, monkeypatch: Patch
) -> None:
    changed_noise(monkeypatch, change)
    assert check in failed(name, ratings=random_ratings(1))


def test_a_gate_that_forgets_the_sampler_is_caught(monkeypatch: Patch) -> None:
    original = mechanism.Gate.plan
    free: dict[str, Any] = {"sampler_error": 0.0, "sampler_tail": 0.0}
    monkeypatch.setattr(
        mechanism.Gate,
        "plan",
        lambda self, query, share: replace(original(self, query, share), **free),
    )
    assert failed("bias") == ["recorded bounds"]


def test_a_gate_that_spends_more_than_its_budget_is_caught(
    monkeypatch: Patch, tmp_path: Any
) -> None:
    original = extent.ideal_mu
    monkeypatch.setattr(mechanism, "ideal_mu", lambda *given: 2 * original(*given))
    assert failed("bias") == ["within budget"]
    with pytest.raises(BudgetExceeded, match="no release was written"):
        train(random_ratings(1), BiasSolver(), Budget.from_epsilon(1, 1e-5), output=tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_a_gate_that_is_honest_only_when_observed_is_caught(monkeypatch: Patch) -> None:
    original = mechanism._Draft.add_noise

    def add_noise(self: Any, source: NoiseSource, block: int) -> None:
        original(self, source, block)
        if mechanism._observer.get() is None:
            self.released[:] = self._sums * self._step

    monkeypatch.setattr(mechanism._Draft, "add_noise", add_noise)
    assert failed("bias") == ["same when unobserved"]


@pytest.mark.parametrize(
    ("plant", "name", "check"),
    [
        (half_noise, "bias", "noise size"),
        (half_noise, "gradient", "noise size"),
        (half_noise, "als", "noise size"),
        (noise_on_users_only, "bias", "noise size"),
        (noise_on_users_only, "gradient", "noise size"),
        (no_range, "bias", "differences within bounds"),
        (no_clipping, "als", "differences within bounds"),
    ],
)
def test_too_little_noise_is_caught_by_single_runs(
    plant: Callable[[Patch], None], name: str, check: str, monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    assert check in failed(name)


@pytest.mark.slow
@pytest.mark.parametrize(("plant", "name"), [(half_noise, "bias"), (no_clipping, "als")])
def test_too_little_noise_is_seen_by_scores_alone(
    plant: Callable[[Patch], None], name: str, monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    assert is_seen_by_scores(name, 500)


@pytest.mark.slow
@pytest.mark.parametrize("is_checkpoint_needed", [False, True])
def test_other_noise_after_resuming_is_caught(
    is_checkpoint_needed: bool, monkeypatch: Patch
) -> None:
    """Also if only runs that resume from a checkpoint draw other noise."""
    original = RunFolder.resume.__func__  # type: ignore[attr-defined]

    def resume(cls: type[RunFolder], path: Any, *, data: Any) -> RunFolder:
        folder: RunFolder = original(cls, path, data=data)
        if not is_checkpoint_needed or folder.read_state() is not None:
            folder._noise, folder._uses = SecureNoise(), dict.fromkeys(folder._uses, "")
            monkeypatch.setattr(folder, "bind", lambda first, uses: None)
        return folder

    monkeypatch.setattr(RunFolder, "resume", classmethod(resume))
    for name in ("bias", "gradient", "als"):
        assert failed(name) == (RESUMING[1:] if is_checkpoint_needed else RESUMING)


def same_noise(patch: Patch, reused: Callable[[int, int], tuple[int, int]]) -> None:
    original = NoiseSource._words

    def words(self: NoiseSource, event: int, block: int, count: int) -> Any:
        return original(self, *reused(event, block), count)

    patch.setattr(NoiseSource, "_words", words)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gradient", "als"])
def test_the_same_noise_in_two_rounds_is_caught(name: str, monkeypatch: Patch) -> None:
    same_noise(monkeypatch, lambda event, block: (event % 2, block))
    assert "fresh noise in every round" in failed(name)
    assert "fresh noise in every round" in failed(name, ratings=random_ratings(1))


@pytest.mark.parametrize("name", ["gradient", "bias"])
def test_the_same_noise_for_users_and_items_is_caught(name: str, monkeypatch: Patch) -> None:
    """Tables of different shapes."""
    same_noise(monkeypatch, lambda event, block: (event // 2, block))
    assert "fresh noise in every round" in failed(name, ratings=random_ratings(1))


def test_the_same_noise_in_two_blocks_is_caught(monkeypatch: Patch) -> None:
    """A table of more than 65,536 numbers has several streams."""
    same_noise(monkeypatch, lambda event, block: (event, 0))
    users = np.arange(70_000)
    frame = pl.DataFrame({"user_id": users, "item_id": users % 7, "rating": np.full(70_000, 3.0)})
    assert "fresh noise in every round" in failed("bias", ratings=load(frame, scale="1:5:1"))


@pytest.mark.slow
def test_a_predictable_generator_is_caught(monkeypatch: Patch) -> None:
    monkeypatch.setattr(SecureNoise, "__init__", lambda self: self._begin(bytes(32)))
    for name in ("bias", "gradient", "als"):
        assert "fresh noise in every run" in failed(name)


def test_noise_for_tests_is_caught(monkeypatch: Patch) -> None:
    monkeypatch.setattr(SecureNoise, "_kind", Noise.TEST)
    assert failed("bias") == ["secure source"]


@dataclass(frozen=True, kw_only=True)
class ExactMean(BiasSolver):
    """Publishes the exact mean beside its noisy biases."""

    name: ClassVar[str] = "bias"

    def fit(self, ratings: Ratings, budget: Budget | None = None, session: Session = PLAIN) -> Fit:
        fit = super().fit(ratings, budget, session)
        return replace(fit, model=replace(fit.model, mean=float(ratings.values().mean())))


@pytest.mark.slow
def test_an_exact_mean_in_the_release_is_caught_twice() -> None:
    assert failed("bias", ExactMean(unit=Unit.VALUE)) == ["nothing outside the gate"]
    assert is_seen_by_scores("bias", 100, View.RELEASE, ExactMean(unit=Unit.VALUE))
    assert not is_seen_by_scores("bias", 100, View.TRANSCRIPT, ExactMean(unit=Unit.VALUE))


@dataclass(frozen=True, kw_only=True)
class TellingSettings(BiasSolver):
    """Publishes an exact count among its settings."""

    name: ClassVar[str] = "bias"

    def fit(self, ratings: Ratings, budget: Budget | None = None, session: Session = PLAIN) -> Fit:
        fit = super().fit(ratings, budget, session)
        return replace(fit, settings={**fit.settings, "fives": int((ratings.values() == 5).sum())})


def test_an_exact_count_among_settings_is_caught() -> None:
    assert failed("bias", TellingSettings(unit=Unit.VALUE)) == ["nothing outside the gate"]


@pytest.mark.slow
def test_queries_that_depend_on_ratings_are_caught() -> None:
    """A run that stops early by its training error; the audit then scores releases.

    It stops after 14 to 30 rounds. Eight runs agree with probability below 1e-6.
    """
    options: dict[str, Any] = {"iterations": 60, "step_size": 0.05, "tolerance": 0.02}
    options["patience"] = 5
    solver = make_solver("paper", factors=2, **options)
    each = replace(case("paper", epsilon=100, solver=solver), pair=chosen_pair(random_ratings(1)))
    result = audit_two_worlds(each, Plan(runs=20), jobs=1)
    assert not result.findings[0].passed and result.plan.view is View.RELEASE
    assert result.verdict is Verdict.VIOLATED


@pytest.mark.slow
def test_floating_point_noise_is_caught(monkeypatch: Patch) -> None:
    def add_noise(self: Any, source: NoiseSource, block: int) -> None:
        rows = slice(block * self._size, (block + 1) * self._size)
        sums = self._sums[rows]
        noise = np.random.default_rng().normal(scale=self._table.sigma, size=sums.shape)
        self.released[rows] = (sums + noise) * self._step

    monkeypatch.setattr(mechanism._Draft, "add_noise", add_noise)
    for name in ("bias", "gradient"):
        assert "grid" in failed(name)
