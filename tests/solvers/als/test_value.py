"""`als` under unit `value`: accuracy, uncertainty, pattern features and refused input."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from taciturn.accounting.budget import Budget
from taciturn.accounting.certificate import Certificate
from taciturn.accounting.events import PatternRelease
from taciturn.accounting.units import Unit
from taciturn.data import load
from taciturn.data.pattern import Axis
from taciturn.data.ratings import Ratings
from taciturn.data.splits import Split, random_split
from taciturn.data.synthetic import synthetic_ratings
from taciturn.errors import InvalidParameter
from taciturn.evaluate.metrics import coverage, rmse
from taciturn.mechanisms.noise import InsecureTestNoise
from taciturn.mechanisms.run_folder import RunFolder
from taciturn.solvers.als.inference import begin_factors, next_features
from taciturn.solvers.als.layout import Layout, usual_factors
from taciturn.solvers.als.pattern_features import compute_pattern_features
from taciturn.solvers.als.solver import AlsSolver
from taciturn.solvers.als.value_state import Used
from taciturn.solvers.catalog import make_solver
from taciturn.solvers.contract import Fit, PublicFacts, Seeds, Session
from tests.solvers.contract import LearnsCheckerboard, ValueContract
from tests.solvers.helpers import BUDGET, random_ratings


class TestAls(LearnsCheckerboard, ValueContract):
    name = "als"
    small: ClassVar = {"factors": 2, "iterations": 3}
    fixed_sensitivities = False
    # Clipping thresholds are so small that a rating that moves from one end of the scale to the
    # other attains the bound of some table.
    tightness = 0.9999


COVERED = (0.5, 0.9)


def fitted(ratings: Ratings, epsilon: float = 10, **options: Any) -> Fit:
    session = Session(noise=InsecureTestNoise(2))
    return AlsSolver(**({"unit": "value"} | options)).fit(
        ratings, Budget.from_epsilon(epsilon, 1e-5), session
    )


@pytest.fixture(scope="module")
def synthetic() -> Split:
    return random_split(synthetic_ratings("100k"), 0.1, seed=1)


@pytest.fixture
def movielens(real_ratings: Callable[[str], Ratings]) -> Split:
    return random_split(real_ratings("ml-100k"), 0.1, seed=5)


@pytest.mark.slow
def test_als_is_never_much_worse_than_biases(synthetic: Split) -> None:
    """The rating pattern is independent of the ratings here, and factors are below the noise.

    `als` has to fall back to biases.
    """
    train, test = synthetic
    for epsilon in (0.5, 2, 10):
        budget = Budget.from_epsilon(epsilon, 1e-5)
        session = Session(noise=InsecureTestNoise(2))
        bias = rmse(make_solver("bias", unit="value").fit(train, budget, session), test)
        assert rmse(fitted(train, epsilon), test) < bias + 0.002


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*official archive")
@pytest.mark.parametrize("epsilon", [1, 5, 10])
def test_deviations_have_their_nominal_coverage(movielens: Split, epsilon: float) -> None:
    train, test = movielens
    found = coverage(fitted(train, epsilon, uncertainty=True), test, COVERED)
    assert found == pytest.approx(COVERED, abs=0.04)


@pytest.mark.parametrize(
    ("levels", "chances"),
    [((0, 1), (0.9, 0.1)), ((1, 5), (0.2, 0.8)), ((1, 2, 3, 4, 5), (0.1, 0.04, 0.06, 0.1, 0.7))],
)
def test_skewed_ratings_are_predicted_without_bias(levels: Any, chances: Any) -> None:
    """Clipping shifts the mean of a skewed residual; the solver estimates and removes the shift."""
    random = np.random.default_rng(0)
    rows, columns = np.nonzero(random.random((400, 150)) < 0.15)
    values = random.choice(np.array(levels, dtype=float), rows.size, p=chances)
    frame = pl.DataFrame({"user_id": rows, "item_id": columns, "rating": values})
    train, test = random_split(load(frame, scale=f"{levels[0]}:{levels[-1]}:1"), 0.1, seed=1)
    fit = fitted(train, 5, uncertainty=True)
    deviation = test.values().std()
    assert rmse(fit, test) < 1.02 * deviation
    assert fit.model.residual_variance is not None
    assert np.sqrt(fit.model.residual_variance) == pytest.approx(deviation, rel=0.1)


def test_impossible_settings_are_refused_before_the_first_release(tmp_path: Path) -> None:
    """A budget that one release cannot spend, and variances too wide for a release."""
    cases: tuple[tuple[float, str, dict[str, Any], str], ...] = (
        (5000.0, "1:5:1", {}, "at most mu"),
        (5.0, "0:100000000", {"uncertainty": True}, "no wider"),
    )
    for epsilon, scale, options, word in cases:
        folder = RunFolder.create(tmp_path / word.replace(" ", "-"), data=[])
        budget = Budget.from_epsilon(epsilon, 1e-5)
        with pytest.raises(InvalidParameter, match=word):
            AlsSolver(**({"unit": "value"} | options)).fit(
                random_ratings(scale=scale), budget, Session(folder=folder)
            )
        assert folder.ledger.events == ()
        folder.close()


def test_deviations_follow_from_the_profiles() -> None:
    fit = fitted(random_ratings(1), uncertainty=True)
    users, items = np.array([0, 5], dtype=np.int32), np.array([1, 7], dtype=np.int32)
    assert fit.model.residual_variance is not None
    for place, deviation in enumerate(fit.model.standard_deviation_rows(users, items)):
        user, item = users[place], items[place]
        rows: list[npt.NDArray[Any]] = []
        for profiles, row in ((fit.model.user_profiles, user), (fit.model.item_profiles, item)):
            assert profiles.variances is not None and profiles.bias_variances is not None
            rows += [profiles.factors[row], profiles.variances[row], profiles.bias_variances[row]]
        u, vu, bu, i, vi, bi = rows
        variance = fit.model.residual_variance + bu + bi + (vu * i**2 + vi * u**2 + vu * vi).sum()
        assert deviation == pytest.approx(np.sqrt(variance), rel=1e-5)
    with pytest.raises(InvalidParameter, match="uncertainty=True"):
        fitted(random_ratings(1)).model.standard_deviation_rows(users, items)


def test_published_pattern_features_are_in_the_ledger_and_the_certificate() -> None:
    ratings = random_ratings(1)
    with_features, without = (fitted(ratings, pattern_features=each) for each in (True, False))
    events = with_features.ledger.events
    assert isinstance(events[-1], PatternRelease)
    certificate = Certificate.from_ledger(with_features.ledger, 1e-5)
    assert "inside the profiles" in certificate.to_text()
    assert not any(isinstance(event, PatternRelease) for event in without.ledger.events)
    assert "profiles" not in "".join(Certificate.from_ledger(without.ledger, 1e-5).not_protected)
    wide, narrow = (fit.model.user_profiles.factors.shape[1] for fit in (with_features, without))
    assert wide > narrow == usual_factors(30, 20, len(ratings))


def test_pattern_features_help_if_users_rate_what_they_like() -> None:
    """With few ratings, the rating pattern is more informative than noisy sums."""
    random = np.random.default_rng(0)
    group, kind = random.integers(0, 2, 300), random.integers(0, 2, 80)
    likes = group[:, None] == kind
    rows, columns = np.nonzero(random.random((300, 80)) < np.where(likes, 0.4, 0.1))
    values = np.where(likes[rows, columns], 4, 2) + random.integers(-1, 2, rows.size)
    frame = pl.DataFrame({"user_id": rows, "item_id": columns, "rating": values.astype(float)})
    train, test = random_split(load(frame, scale="1:5:1"), 0.1, seed=1)
    with_features, without = (
        rmse(fitted(train, pattern_features=used), test) for used in (True, False)
    )
    assert with_features < without - 0.1 and with_features < 1.0


@pytest.mark.parametrize(("users", "items"), [(1, 1), (1, 5), (5, 1), (2, 2), (3, 40)])
def test_tiny_sets_are_trained_on(users: int, items: int) -> None:
    rows, columns = (each.ravel() for each in np.indices((users, items)))
    frame = pl.DataFrame({"user_id": rows, "item_id": columns, "rating": np.full(rows.size, 3.0)})
    for used in (True, False):
        fit = fitted(load(frame, scale="1:5:1"), pattern_features=used, uncertainty=True)
        predicted = fit.owner_model.predict_rows(rows.astype(np.int32), columns.astype(np.int32))
        assert np.isfinite(predicted).all() and np.abs(predicted - 3).max() < 2.1


def test_pattern_features_are_standardised_and_independent_of_values() -> None:
    ratings = random_ratings(2, users=60, items=30)
    users, items = compute_pattern_features(ratings.pattern, 6)
    assert users.shape == (60, 6) and items.shape == (30, 6)
    for features, rows in ((users, ratings.by_user), (items, ratings.by_item)):
        weights = np.diff(rows.starts) / len(ratings)
        assert weights @ features[:, 0] == pytest.approx(0, abs=0.01)
        assert weights @ features[:, 0] ** 2 == pytest.approx(1, abs=0.01)
        # The others are shrunk in rows with few ratings.
        few = np.diff(rows.starts)
        back = features[:, 1:] * ((few + 20) / np.maximum(few, 1))[:, None]
        assert np.allclose(weights @ back, 0, atol=0.1)
        assert np.allclose(weights @ back**2, 1, atol=0.2)
    ones = ratings.to_frame().with_columns(rating=pl.lit(1.0))
    again = compute_pattern_features(load(ones, scale="1:5:1").pattern, 6)
    assert np.array_equal(users, again[0]) and np.array_equal(items, again[1])


def test_pattern_features_are_the_same_each_time() -> None:
    """Even if singular values coincide: a complete rating pattern, and a block-diagonal one."""
    rows, columns = (each.ravel() for each in np.indices((40, 30)))
    for keep in (rows >= 0, rows % 5 == columns % 5):
        frame = pl.DataFrame({"user_id": rows[keep], "item_id": columns[keep], "rating": 3.0})
        pattern = load(frame, scale="1:5:1").pattern
        first, second = (compute_pattern_features(pattern, 8) for _ in range(2))
        assert all(np.array_equal(one, two) for one, two in zip(first, second, strict=True))
        assert np.isfinite(first[0]).all() and np.isfinite(first[1]).all()


def test_pattern_features_separate_groups_of_users() -> None:
    """Two groups rate different items; the sign of the first singular vector separates them."""
    random = np.random.default_rng(1)
    rows, columns = np.nonzero(random.random((40, 30)) < 0.5)
    together = (rows % 2) == (columns % 2)
    rows, columns = rows[together], columns[together]
    frame = pl.DataFrame({"user_id": rows, "item_id": columns, "rating": np.ones(rows.size)})
    users, items = compute_pattern_features(load(frame, scale="1:5:1").pattern, 4)
    for features in (users, items):
        signs = np.sign(features[:, 1]) * np.where(np.arange(len(features)) % 2, 1, -1)
        assert abs(signs.sum()) == len(features)


def test_an_interrupted_run_gives_the_same_fit(tmp_path: Path) -> None:
    ratings = random_ratings(3)

    def run(folder: RunFolder, stop_at: int | None = None) -> Fit:
        def progress(done: int, total: int) -> None:
            if done == stop_at:
                raise KeyboardInterrupt

        session = Session(folder=folder, progress=progress)
        return AlsSolver(unit=Unit.VALUE, iterations=3).fit(ratings, BUDGET, session)

    whole = run(RunFolder.create(tmp_path / "a", data=[], noise=InsecureTestNoise(1)))
    for stop_at in (1, 3, 6):
        path = tmp_path / f"b{stop_at}"
        folder = RunFolder.create(path, data=[], noise=InsecureTestNoise(1))
        with pytest.raises(KeyboardInterrupt):
            run(folder, stop_at)
        folder.close()
        resumed = run(RunFolder.resume(path, data=[]))
        assert np.array_equal(
            whole.model.user_profiles.factors, resumed.model.user_profiles.factors
        )
        assert whole.ledger.events == resumed.ledger.events


def test_known_coefficients_get_no_weight_in_the_next_query() -> None:
    ratings = random_ratings(4, users=60, items=40)
    layout = Layout(PublicFacts.of(ratings, Unit.VALUE), 2, has_pattern_features=False)
    state = begin_factors(layout, layout.initial_state(Seeds()))
    state.items.variances[:, 1] = 1e-9
    features = next_features(layout, state, Axis.ITEMS, Used.ALL, noise=3.0)
    shares = (features**2).mean(axis=0)
    assert np.allclose(np.linalg.norm(features, axis=1), 1)
    assert shares[1] < 0.01 and shares[0] > 0.1 and shares[2] > 0.1


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"factors": 1000}, "factors"),
        ({"iterations": 100}, "iterations"),
        ({"pattern_features": "yes"}, "pattern_features"),
        ({"uncertainty": 1}, "uncertainty"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidParameter, match=word):
        AlsSolver(**({"unit": "value"} | options))
