"""Bugs that would harm people silently, planted one by one: each is caught."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from tacit import _core
from tacit.audit.checks import check_runs
from tacit.audit.two_worlds import Plan, View, audit_two_worlds
from tacit.data.ratings import Ratings
from tacit.privacy import clipped, mechanism, query
from tacit.privacy.budget import Budget
from tacit.privacy.events import Noise, Rows
from tacit.privacy.grid import ValueGrid
from tacit.privacy.noise.source import NoiseSource, SecureNoise
from tacit.privacy.run_folder import RunFolder
from tacit.solvers.bias import BiasSolver
from tacit.solvers.contract import PLAIN, Fit, Session
from tests.audit.helpers import CONFIDENCE, case

Patch = pytest.MonkeyPatch


def failed(name: str, solver: Any = None) -> list[str]:
    """Return the checks of single runs that a bug fails."""
    return [each.name for each in check_runs(case(name, solver=solver)) if not each.passed]


def is_seen_by_scores(name: str, view: View = View.TRANSCRIPT, solver: Any = None) -> bool:
    """Return whether runs alone show a bug, even at high confidence."""
    plan = Plan(runs=100 if name == "als" else 500, view=view, confidence=CONFIDENCE)
    result = audit_two_worlds(case(name, epsilon=5, solver=solver), plan, jobs=1)
    return result.mu > result.claim.mu


def half_noise(patch: Patch) -> None:
    original = _core.Ziggurat
    patch.setattr(mechanism._core, "Ziggurat", lambda sigma: original(sigma / 2))


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
    original = query.WeightedSums.__init__

    def init(self: Any, **facts: Any) -> None:
        original(self, **facts)
        self.query = replace(self.query, sensitivity=self.query.sensitivity / 4)

    patch.setattr(query.WeightedSums, "__init__", init)


def no_clipping(patch: Patch) -> None:
    def of(self: clipped.Residuals, values: Any) -> Any:
        return np.clip(values, self.grid.lowest, self.grid.highest) - self.predictions

    original = clipped.ClippedSums.__init__

    def init(self: Any, **facts: Any) -> None:
        original(self, **facts)
        wide = 2**24
        self._sums._grid = ValueGrid(exponent=self._sums._grid.exponent, lowest=-wide, highest=wide)

    patch.setattr(clipped.Residuals, "of", of)
    patch.setattr(clipped.ClippedSums, "__init__", init)


@pytest.mark.parametrize(
    ("plant", "name", "check"),
    [
        (half_noise, "bias", "noise size"),
        (half_noise, "gradient", "noise size"),
        (noise_on_users_only, "bias", "noise size"),
        (noise_on_users_only, "gradient", "noise size"),
        (no_range, "bias", "bounded"),
        (no_clipping, "als", "bounded"),
    ],
)
def test_too_little_noise_is_caught_twice(
    plant: Callable[[Patch], None], name: str, check: str, monkeypatch: Patch
) -> None:
    """By a check of single runs, and by nothing but scores."""
    plant(monkeypatch)
    assert check in failed(name)
    assert is_seen_by_scores(name)


def test_half_the_noise_of_the_lead_is_caught(monkeypatch: Patch) -> None:
    half_noise(monkeypatch)
    assert "noise size" in failed("als")


def test_other_noise_after_resuming_is_caught(monkeypatch: Patch) -> None:
    original = RunFolder.resume.__func__  # type: ignore[attr-defined]

    def resume(cls: type[RunFolder], path: Any, *, data: Any) -> RunFolder:
        folder: RunFolder = original(cls, path, data=data)
        folder.noise, folder._uses = SecureNoise(), {}
        return folder

    monkeypatch.setattr(RunFolder, "resume", classmethod(resume))
    for name in ("bias", "gradient", "als"):
        assert failed(name) == ["resuming"]


def test_the_same_noise_in_two_rounds_is_caught(monkeypatch: Patch) -> None:
    original = NoiseSource._words

    def words(self: NoiseSource, event: int, block: int, count: int) -> Any:
        return original(self, event % 2, block, count)

    monkeypatch.setattr(NoiseSource, "_words", words)
    for name in ("gradient", "als"):
        assert "fresh noise in every round" in failed(name)


def test_a_predictable_generator_is_caught(monkeypatch: Patch) -> None:
    monkeypatch.setattr(
        SecureNoise, "__init__", lambda self: NoiseSource.__init__(self, bytes(32), Noise.SECURE)
    )
    for name in ("bias", "gradient", "als"):
        assert "fresh noise in every run" in failed(name)


def test_noise_for_tests_is_caught(monkeypatch: Patch) -> None:
    original = SecureNoise.__init__

    def init(self: SecureNoise) -> None:
        original(self)
        self._kind = Noise.TEST

    monkeypatch.setattr(SecureNoise, "__init__", init)
    assert failed("bias") == ["secure source"]


@dataclass(frozen=True, kw_only=True)
class ExactMean(BiasSolver):
    """Publishes the exact mean beside its noisy biases."""

    name: ClassVar[str] = "bias"

    def fit(self, ratings: Ratings, budget: Budget | None = None, session: Session = PLAIN) -> Fit:
        return replace(super().fit(ratings, budget, session), mean=float(ratings.values().mean()))


def test_an_exact_mean_in_the_release_is_caught_twice() -> None:
    assert failed("bias", ExactMean()) == ["no other way out"]
    assert is_seen_by_scores("bias", View.RELEASE, ExactMean())
    assert not is_seen_by_scores("bias", View.TRANSCRIPT, ExactMean())


def test_float_noise_is_caught(monkeypatch: Patch) -> None:
    def add_noise(self: Any, source: NoiseSource, block: int) -> None:
        rows = slice(block * self._size, (block + 1) * self._size)
        sums = self._sums[rows]
        noise = np.random.default_rng().normal(scale=self._table.sigma, size=sums.shape)
        self.released[rows] = (sums + noise) * self._step

    monkeypatch.setattr(mechanism._Draft, "add_noise", add_noise)
    for name in ("bias", "gradient"):
        assert "grid" in failed(name)
