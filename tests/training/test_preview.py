"""A preview predicts the certificate, the releases and the time of a training."""

import time
from functools import lru_cache
from pathlib import Path

import pytest

from taciturn.accounting.events import GaussianRelease
from taciturn.accounting.ledger import Status
from taciturn.data import load_public_ratings
from taciturn.data.public_ratings import with_public_ratings
from taciturn.data.ratings import Ratings
from taciturn.data.synthetic import synthetic_ratings
from taciturn.scale import Scale
from taciturn.solvers.als import public_items
from taciturn.solvers.als.public_model import PublicModel, fit_public
from taciturn.solvers.catalog import CATALOG, make_solver
from taciturn.training.preview import preview
from taciturn.training.train import train
from tests.narrow import present
from tests.solvers.helpers import BUDGET, random_ratings, small_solver
from tests.training.helpers import RATINGS


@pytest.mark.parametrize("name", CATALOG)
def test_a_preview_predicts_status_epsilon_and_releases(name: str, tmp_path: Path) -> None:
    solver = small_solver(name, iterations=6)
    budget = BUDGET if solver.is_private else None
    seen = preview(RATINGS, solver, budget)
    done = train(RATINGS, solver, budget, output=tmp_path / "release")
    assert seen.status is done.certificate.status
    if seen.certificate is not None:
        # The ratios of `als` are rounded from other sensitivities.
        exact = done.certificate.epsilon
        assert seen.certificate.epsilon == (pytest.approx(exact) if name == "als" else exact)
        assert seen.certificate.not_protected == done.certificate.not_protected
        events = present(done.fit).ledger.events
        noisy = [event for event in events if isinstance(event, GaussianRelease)]
        assert seen.releases == len(noisy)
    else:
        assert seen.status is Status.NONE and seen.releases == 0
    assert seen.seconds > 0 and 2**25 < seen.memory < 2**34
    assert [path.name for path in tmp_path.iterdir()] == ["release"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "iterations"), [("gradient", 150), ("als", 12)])
def test_a_preview_estimates_the_time(tmp_path: Path, name: str, iterations: int) -> None:
    ratings = synthetic_ratings("100k")
    solver = make_solver(name, unit="value", iterations=iterations)
    expected = preview(ratings, solver, BUDGET).seconds
    taken = train(ratings, solver, BUDGET, output=tmp_path / "release").seconds
    assert taken / 8 < expected < taken * 8  # other processes affect both


def test_the_time_includes_a_public_model_that_is_fitted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fits: list[Ratings] = []

    def slow(ratings: Ratings, scale: Scale) -> PublicModel:
        fits.append(ratings)
        time.sleep(1.5)
        return fit_public(ratings, scale)

    monkeypatch.setattr(public_items, "fitted", lru_cache(maxsize=1)(slow))
    public = load_public_ratings(random_ratings(1).to_frame(), scale="1:5:1")
    ratings = with_public_ratings(random_ratings(), public)
    assert preview(ratings, make_solver("als", unit="user"), BUDGET).seconds > 1.5
    assert len(fits) == 1
