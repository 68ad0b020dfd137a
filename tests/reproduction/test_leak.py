"""The gap in the paper's proof: the counterexample, and privacy losses of transcripts."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.accounting.budget import Budget
from taciturn.accounting.units import Unit
from taciturn.audit import counterexample as four_users
from taciturn.audit.counterexample import counterexample, final_users, separation
from taciturn.audit.neighbours import id_index, neighbour, popular_items
from taciturn.data import load
from taciturn.errors import InvalidParameter
from taciturn.mechanisms.noise import InsecureTestNoise, NoiseSource
from taciturn.mechanisms.query import Released
from taciturn.queries.executor import LocalExecutor
from taciturn.queries.values import Centre
from taciturn.reproduction.draw_leak import write_leak
from taciturn.reproduction.leak import LeakSettings, measure_leak
from taciturn.reproduction.losses import delta_terms, gradient_loss, mean_lower, paper_losses
from taciturn.solvers.contract import PublicFacts, Seeds, Session
from taciturn.solvers.gradient import GradientSolver
from taciturn.solvers.loop import Training
from taciturn.solvers.paper import PaperAlgorithm, PaperSolver, PaperState
from tests.solvers.helpers import random_ratings


@pytest.mark.parametrize(("claimed", "true"), [(1.0, 3.4956), (13.1837, 77.878)])
def test_the_counterexample_has_known_epsilons(claimed: float, true: float) -> None:
    found = counterexample(claimed, 1e-5)
    assert found.true_epsilon == pytest.approx(true, abs=6e-4)
    assert separation() ** 2 == pytest.approx(519.80, abs=0.01)
    assert (found.claimed_mu * found.noise_scale) ** 2 == pytest.approx(32)


class FromTheStart(PaperAlgorithm):
    """Starts with the profiles of the counterexample."""

    def initial_state(self, seeds: Seeds) -> PaperState:
        return replace(
            super().initial_state(seeds),
            users=four_users.USER_STARTS[:, None].copy(),
            items=np.array([[four_users.ITEM_START]]),
        )


def trained_users(ratings: Any, noise: Any) -> tuple[Any, float]:
    """Final Θ of the solver under chosen noise, a row for each step, and its unit."""
    data = load((np.arange(4), np.zeros(4, dtype=int), ratings), scale="1:5:1")
    solver = PaperSolver(factors=1, iterations=2, step_size=four_users.STEP_SIZE, epsilon_i=0.9)
    algorithm = FromTheStart(solver, PublicFacts.of(data, Unit.VALUE), threads=1)

    def integers(self: NoiseSource, table: Any, *, event: int, **_: int) -> Any:
        return noise[event]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NoiseSource, "_integers", integers)
        session = Session(threads=1, noise=InsecureTestNoise(1))
        training = Training(algorithm, LocalExecutor(data, 1), session)
        (step,) = {done.released.spec.queries[0].step for done in training.steps()}
    return training.state.users[:, 0], step


@pytest.mark.parametrize("ratings", [four_users.RATINGS, four_users.NEIGHBOUR])
def test_the_formulas_give_the_final_profiles_of_the_solver(ratings: Any) -> None:
    """Θ is an affine function of the noise: a constant, and a factor for each of the two steps.

    The solver rounds item profiles, which moves both by less than 1 %.
    """
    mean, deviation = final_users(ratings)
    without, step = trained_users(ratings, np.zeros((2, 4), dtype=np.int64))
    assert without == pytest.approx(mean, rel=0.01)
    size = round(5 / step)
    factors = []
    for event in range(2):
        noise = np.zeros((2, 4), dtype=np.int64)
        noise[event, 1] = size
        moved = (trained_users(ratings, noise)[0] - without) / (size * step)
        assert moved[[0, 2, 3]] == pytest.approx(0, abs=1e-9)  # coordinates are independent
        factors.append(moved[1])
    assert math.hypot(*factors) == pytest.approx(deviation, rel=0.01)
    noise = np.random.default_rng(1).integers(-size, size, (2, 4))
    expected = without + (factors @ noise) * step
    assert trained_users(ratings, noise)[0] == pytest.approx(expected, rel=0.01)


POPULAR = random_ratings(5, users=60, items=8, density=0.6)


def dense_losses(
    solver: PaperSolver, ratings: Any, changed: Any, released: list[Any], scale: float, seed: int
) -> tuple[Any, Any, list[Any]]:
    """Q and L of an observer, with dense matrices in double precision."""

    def table(data: Any) -> tuple[Any, Any]:
        rated, values = np.zeros(data.shape[::-1]), np.zeros(data.shape[::-1])
        rated[data.by_user.columns, data.rows()] = 1
        values[data.by_user.columns, data.rows()] = data.values()
        if solver.centre is Centre.ITEM_MEAN:
            values -= rated * (values.sum(axis=1) / rated.sum(axis=1))[:, None]
        return rated, values

    def clip(rows: Any) -> Any:
        return rows / np.maximum(1, np.linalg.norm(rows, axis=1))[:, None]

    random = np.random.default_rng(seed)
    start = random.normal(size=(ratings.shape[1], solver.factors))
    theta = random.normal(size=(ratings.shape[0], solver.factors))
    start /= np.linalg.norm(start, axis=1)[:, None]
    theta /= np.linalg.norm(theta, axis=1)[:, None]
    profiles = [start.copy(), start.copy()]
    squares, losses, gaps = [], [], []
    for seen in released:
        gradients = []
        for place, data in enumerate((ratings, changed)):
            rated, values = table(data)
            errors = rated * (profiles[place] @ theta.T) - values
            gradients.append(errors.T @ clip(profiles[place]))
            profiles[place] = profiles[place] - solver.step_size * errors @ clip(theta)
        own, other = gradients
        squares.append(((own - other) ** 2).sum() / scale**2)
        losses.append((((seen - other) ** 2).sum() - ((seen - own) ** 2).sum()) / (2 * scale**2))
        gaps.append(np.abs(own - other).sum(axis=1))
        theta = theta - solver.step_size * seen
    return np.cumsum(squares), np.cumsum(losses), gaps


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("centre", list(Centre))
def test_losses_equal_those_of_dense_matrices(
    changed: bool, centre: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given the same transcript, with unrounded profiles of the other items."""
    solver = PaperSolver(
        factors=3, iterations=40, step_size=0.02, epsilon_i=5.0, centre=centre, tau=5.0
    )
    near = neighbour(POPULAR, popular_items(POPULAR)[0])
    released, scales = [], []
    original = PaperAlgorithm.update

    def update(self: Any, step: int, state: Any, seen: Released) -> Any:
        released.append(seen.tables[0].copy())
        scales.append(seen.noise_scales[0])
        return original(self, step, state, seen)

    monkeypatch.setattr(PaperAlgorithm, "update", update)
    (found,) = paper_losses(
        solver, POPULAR, [near], changed=changed, seed=7, noise=InsecureTestNoise(1)
    )
    datasets = (near.ratings, POPULAR) if changed else (POPULAR, near.ratings)
    squares, losses, gaps = dense_losses(solver, *datasets, released, scales[0], seed=7)
    assert np.allclose(found.squares, squares, rtol=0.02)
    assert np.allclose(found.loss, losses, atol=0.02 * max(1, np.abs(losses).max()))
    # Only raters of the item change: one user at first, unless the mean moves, then all.
    raters = np.zeros(60, dtype=bool)
    raters[near.raters] = True
    assert np.count_nonzero(gaps[0]) == (1 if centre is Centre.NONE else near.raters.size)
    assert all((gap[~raters] < 1e-12).all() for gap in gaps) and (gaps[-1][raters] > 0).all()


def test_one_run_serves_several_neighbours() -> None:
    solver = PaperSolver(factors=2, iterations=6, step_size=0.02, epsilon_i=0.5)
    datasets = [neighbour(POPULAR, item) for item in (0, 3, 5)]
    together = paper_losses(solver, POPULAR, datasets, noise=InsecureTestNoise(1))
    assert len(together) == 3 and all(found.loss.size == 6 for found in together)
    # The first step agrees with the proof: one row of one gradient moves, by at most τ.
    ratio = 0.5 / math.sqrt(2 * math.log(125))
    assert all(found.squares[0] <= ratio**2 * (1 + 1e-9) for found in together)


@pytest.mark.slow
def test_likelihood_ratios_have_mean_one() -> None:
    """E[e^{−L}] = 1 on the dataset of the run: the definition of a loss, for any algorithm."""
    solver = PaperSolver(factors=2, iterations=5, step_size=0.02, epsilon_i=0.8)
    near = neighbour(POPULAR, popular_items(POPULAR)[0])
    ratios = [
        math.exp(-found.loss[-1])
        for changed in (False, True)
        for seed in range(60)
        for found in paper_losses(
            solver, POPULAR, [near], changed=changed, noise=InsecureTestNoise(seed)
        )
    ]
    assert np.mean(ratios) == pytest.approx(
        1, abs=5 * float(np.std(ratios)) / math.sqrt(len(ratios))
    )


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from([0.5, 5.0, 20.0]), st.integers(0, 7))
def test_gradient_never_exceeds_its_ledger(seed: int, epsilon: float, item: int) -> None:
    budget = Budget.from_epsilon(epsilon, 1e-5)
    near = neighbour(POPULAR, item)
    found, recorded = gradient_loss(
        GradientSolver(factors=3, iterations=12), budget, POPULAR, near, seed=seed
    )
    assert math.sqrt(found.squares[-1]) <= recorded <= budget.mu
    assert (np.diff(found.squares) >= 0).all()


def test_the_paper_exceeds_its_claim_where_items_are_popular() -> None:
    """√Q exceeds the claimed μ, unlike that of `gradient`."""
    crowd = random_ratings(2, users=400, items=4, density=0.9)
    solver = PaperSolver(factors=2, iterations=30, step_size=0.015, epsilon_i=0.5)
    near = neighbour(crowd, popular_items(crowd)[0])
    claimed = 0.5 / math.sqrt(2 * math.log(125)) * math.sqrt(30)
    roots = [
        math.sqrt(found.squares[-1])
        for seed in range(6)
        for found in paper_losses(solver, crowd, [near], noise=InsecureTestNoise(seed))
    ]
    assert min(roots) > claimed and max(roots) > 1.5 * claimed


def test_neighbours_differ_in_one_value() -> None:
    near = neighbour(POPULAR, 3)
    differs = POPULAR.values() != near.ratings.values()
    assert differs.sum() == 1
    assert POPULAR.by_user.columns[differs] == 3
    assert (near.before, near.after) == (5.0, 1.0)
    own = POPULAR.by_item.columns[POPULAR.by_item.starts[3] : POPULAR.by_item.starts[4]]
    assert np.array_equal(own, near.raters)
    for part, data in zip(near.parts, (POPULAR, near.ratings), strict=True):
        entries = slice(data.by_item.starts[3], data.by_item.starts[4])
        assert np.array_equal(part.by_user.codes, data.by_item.codes[entries])


def test_an_item_with_only_lowest_ratings_gets_a_highest_one() -> None:
    lowest = load((np.arange(4), np.zeros(4, int), np.ones(4)), scale="1:5:1")
    near = neighbour(lowest, 0)
    assert (near.before, near.after) == (1.0, 5.0)


def test_items_are_found_by_id_and_popularity() -> None:
    counts = np.diff(POPULAR.by_item.starts)
    chosen = popular_items(POPULAR)
    assert counts[chosen[0]] == counts.max()
    assert list(counts[chosen]) == sorted(counts[chosen], reverse=True)
    assert id_index(POPULAR.item_ids, "item", "103") == 3
    with pytest.raises(InvalidParameter, match="no item"):
        id_index(POPULAR.item_ids, "item", "7")


def test_terms_of_delta_have_known_values() -> None:
    losses = np.array([-1e9, 0.0, 2.0, 2.0 + math.log(2), 1e9])
    assert np.allclose(delta_terms(2.0, losses), [0, 0, 0, 0.5, 1])


def test_the_lower_bound_rarely_exceeds_the_mean() -> None:
    """Known cases, and the stated false-positive rate."""
    assert mean_lower(np.ones(10), 0.99) == pytest.approx(0.01 ** (1 / 10))
    assert mean_lower(np.zeros(10), 0.99) == 0.0
    assert mean_lower(np.full(10**6, 0.5), 0.99) == pytest.approx(0.5, abs=0.002)
    random = np.random.default_rng(1)
    failures = sum(mean_lower(random.beta(0.3, 0.2, size=40), 0.9) > 0.6 for _ in range(2000))
    assert failures <= 200


@pytest.mark.slow
def test_a_small_measurement_is_complete_and_written(tmp_path: Path) -> None:
    options = LeakSettings(dataset="synthetic:100k", transcripts=2, iterations=5)
    leak = measure_leak(options, jobs=1)
    document = leak.to_dict()
    assert document["counterexample"]["claimed_epsilon"] == document["claimed_epsilon"]
    assert len(document["items"]) == 3 and document["items"][0]["raters"] > 100
    for item in document["items"]:
        assert 0 <= item["delta_at_claim_lower"] <= item["delta_at_claim"] <= 1
    assert document["gradient"]["sqrt_q_largest"] <= document["gradient"]["mu"]
    write_leak(tmp_path, leak)
    assert {path.name for path in tmp_path.iterdir()} == {"leak.json", "leak.png", "leak.svg"}


@pytest.mark.parametrize(
    "options", [{"transcripts": 0}, {"iterations": 0}, {"epsilon_i": 0}, {"protocol": "other"}]
)
def test_bad_settings_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        replace(LeakSettings(), **options)
